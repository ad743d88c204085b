// Graphs whose values have layouts give the same results as the plain graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

#include <support_lib/random_ops.hpp>
#include <support_lib/shredding_parallel.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr InterpreterOptions kPlain{PoisonPadding::none}, kOnes{PoisonPadding::ones}, kNan{PoisonPadding::nan};

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string()) << "\n" << text;
  if (!graph.ok()) return std::make_unique<Graph>();
  const auto verified = verify(**graph);
  EXPECT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << text;
  return *std::move(graph);
}

std::unique_ptr<Graph> without_layouts(const Graph& graph) {
  auto plain = graph.clone();
  for (size_t i = 0; i < plain->body().input_count(); ++i) plain->body().input(i)->set_layout(nullptr);
  for_each_op(plain->body(), [](Op& op) {
    for (size_t i = 0; i < op.result_count(); ++i) op.result(i)->set_layout(nullptr);
    for (size_t r = 0; r < op.region_count(); ++r) {
      for (size_t i = 0; i < op.region(r).input_count(); ++i) op.region(r).input(i)->set_layout(nullptr);
    }
    op.attributes().erase("layout.kernel");
  });
  return plain;
}

Result<std::vector<Datum>> run(const Graph& graph, const std::vector<Datum>& inputs,
                               const InterpreterOptions& options = {}, ParallelFor& parallel = serial()) {
  TENON_TRY(interpreter, Interpreter::prepare(graph, options));
  return interpreter->run(inputs, parallel);
}
std::string error_of(const Result<std::vector<Datum>>& result) {
  return result.ok() ? "no error" : result.error().to_string();
}

void expect_identical(const std::vector<Datum>& wanted, const std::vector<Datum>& got, const Graph& graph) {
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(wanted[i].tensor().identical(got[i].tensor())) << "output " << i << " of\n" << print(graph);
  }
}

void expect_as_plain(const Graph& graph, const std::vector<Datum>& inputs, const InterpreterOptions& options = {},
                     ParallelFor& parallel = serial()) {
  const auto wanted = run(*without_layouts(graph), inputs);
  const auto got = run(graph, inputs, options, parallel);
  ASSERT_TRUE(wanted.ok()) << error_of(wanted);
  ASSERT_TRUE(got.ok()) << error_of(got) << "\n" << print(graph);
  expect_identical(*wanted, *got, graph);
}
void expect_as_plain_with_any_poison(const Graph& graph, const std::vector<Datum>& inputs) {
  for (const InterpreterOptions& options : {kPlain, kOnes, kNan}) expect_as_plain(graph, inputs, options);
}

std::vector<Datum> inputs_of(const Graph& graph, uint64_t seed = 1) { return testing::random_inputs(graph, seed); }

// ---- Every way to run ----

TEST(LaidOut, ElementwiseOperatorsRunOnThePhysicalBytes) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,17,4,4] in "NCHW{16c}", %s: f32[]) -> (%d, %n) {
    %a = Sigmoid %x : f32[1,17,4,4] in "NCHW{16c}"
    %b = Mul %a, %x : f32[1,17,4,4] in "NCHW{16c}"
    %c = Add %b, %s : f32[1,17,4,4] in "NCHW{16c}"
    %d = Div %s, %c : f32[1,17,4,4] in "NCHW{16c}"
    %n = Greater %c, %x : bool[1,17,4,4] in "NCHW{16c}"
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph));
  // The arena has room for the padding: 2 blocks of 16 channels.
  const auto interpreter = Interpreter::prepare(*graph);
  ASSERT_TRUE(interpreter.ok());
  EXPECT_EQ((*interpreter)->arena_lower_bound_bytes(), size_t{2 * 32 * 16 * 4});
}

TEST(LaidOut, ReordersScrubsAndConstants) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,6,2,3]) -> (%d, %f) {
    %k = Constant {value = splat<f32[1,6,2,3]: 2.5>} : f32[1,6,2,3] in "NHWC"
    %kr = layout.Reorder %k : f32[1,6,2,3] in "NCHW{4c}" pad zero
    %ks = layout.Scrub %kr {bits = 7} : f32[1,6,2,3] in "NCHW{4c}" pad value 0x7
    %a = layout.Reorder %x : f32[1,6,2,3] in "NCHW{4c}"
    %b = Mul %a, %ks : f32[1,6,2,3] in "NCHW{4c}"
    %c = layout.Scrub %b : f32[1,6,2,3] in "NCHW{4c}" pad zero
    %e = layout.Reorder %c : f32[1,6,2,3] in "NHWC"
    %d = layout.Reorder %e : f32[1,6,2,3]
    %f = layout.Scrub %b {bits = 5} : f32[1,6,2,3] in "NCHW{4c}" pad value 0x5
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph));
}

TEST(LaidOut, RowMajorViewsAndSeveralResults) {
  const auto graph = parsed(R"(graph @g(%x: f32[2,6,4]) -> (%r, %p, %i, %t) {
    %v = Constant {value = dense<i64[2]: 12, 4>}
    %n = Constant {value = dense<i64[1]: 2>}
    %c = Identity %x : f32[2,6,4] in "CNW"
    %r = Reshape %c, %v : f32[12,4] in "BA" dims AB
    %a, %b = Split %c {axis = 1, num_outputs = 2} : f32[2,3,4] in "NWC{2c}", f32[2,3,4]
    %p, %i = TopK %a, %n : f32[2,3,2], i64[2,3,2] in "WCN"
    %t = Transpose %b {perm = [2, 0, 1]} : f32[4,2,3] in "CNW"
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph));
}

TEST(LaidOut, RegionsSeeAndMakeLaidOutValues) {
  const auto graph = parsed(R"(graph @g(%c: bool[] , %x: f32[2,3] in "CN{4n}") -> (%s, %l) {
    %s = If %c (() -> %t { %t = Neg %x : f32[2,3] in "CN" }, () -> %t {
      %k = Constant {value = splat<f32[2,3]: 1.5>} : f32[2,3] in "NC{2c}"
      %t = Add %x, %k : f32[2,3]
    }) : f32[2,3] in "[2n]NC"
    %trips = Constant {value = dense<i64[]: 3>}
    %go = Constant {value = dense<bool[]: true>}
    %l = Loop %trips, %go, %x ((%i: i64[], %in: bool[], %v: f32[2,3] in "CN{4n}") -> (%in, %w) {
      %w = Add %v, %s : f32[2,3] in "NC{4c}"
    }) : f32[2,3] in "CN"
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph, 1));
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph, 2));
}

TEST(LaidOut, ShapesOfTheRun) {
  const auto graph = parsed(R"(graph @g(%x: f32[N,C] in "NC{4c}", %y: f32[N,C]) -> (%b, %m) {
    %a = Sub %x, %y : f32[N,C] in "NC{4c}"
    %b = Exp %a : f32[N,C] in "NC{4c}"
    %t = Transpose %b : f32[C,N] in "NC{4c};align(N)=32B"
    %m = MatMul %b, %t : f32[N,N] in "CN{4n}"
  })");
  for (const InterpreterOptions& options : {kPlain, kOnes, kNan}) {
    const auto laid = Interpreter::prepare(*graph, options);
    const auto plain_graph = without_layouts(*graph);
    const auto plain = Interpreter::prepare(*plain_graph);
    ASSERT_TRUE(laid.ok() && plain.ok());
    std::mt19937 random(7);
    for (const Dims& dims : {Dims{3, 5}, Dims{3, 5}, Dims{1, 1}, Dims{8, 4}, Dims{2, 0}}) {
      const std::vector<Datum> inputs = {testing::random_tensor(random, kF32, dims),
                                         testing::random_tensor(random, kF32, dims)};
      const auto wanted = (*plain)->run(inputs), got = (*laid)->run(inputs);
      ASSERT_TRUE(wanted.ok() && got.ok()) << error_of(wanted) << error_of(got);
      expect_identical(*wanted, *got, *graph);
    }
  }
}

TEST(LaidOut, ManyRunsAtOnceAndManyThreads) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,19,16,16] in "NHWC") -> %c {
    %a = Relu %x : f32[1,19,16,16] in "NCHW{8c}"
    %b = Exp %a : f32[1,19,16,16] in "NCHW{8c}"
    %c = Add %b, %x : f32[1,19,16,16] in "[4h]NCHW"
  })");
  ThreadPool pool(4);
  expect_as_plain(*graph, inputs_of(*graph), kNan, pool);
  testing::ShreddingParallel shredding(3);
  expect_as_plain(*graph, inputs_of(*graph), kOnes, shredding);

  const auto interpreter = Interpreter::prepare(*graph, kOnes);
  ASSERT_TRUE(interpreter.ok());
  const auto inputs = inputs_of(*graph);
  const auto wanted = run(*without_layouts(*graph), inputs);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto got = (*interpreter)->run(inputs);
        wrong += !got.ok() || !(*got)[0].tensor().identical((*wanted)[0].tensor());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LaidOut, ObserversSeeElements) {
  const auto graph = parsed(R"(graph @g(%x: f32[2,3]) -> %b {
    %a = Neg %x : f32[2,3] in "CN{4n}"
    %b = Neg %a : f32[2,3]
  })");
  struct Seen : Interpreter::Observer {
    void before(const Op&) override {}
    void after(const Op&, std::span<const Datum> results) override { types.push_back(results[0].type().to_string()); }
    std::vector<std::string> types;
  } seen;
  const auto interpreter = Interpreter::prepare(*graph);
  ASSERT_TRUE(interpreter.ok());
  ASSERT_TRUE((*interpreter)->run(inputs_of(*graph), serial(), &seen).ok());
  EXPECT_THAT(seen.types, ::testing::ElementsAre("f32[2,3]", "f32[2,3]"));
}

// ---- Padding that takes part ----

// A convolution in blocks of 16 over 17 channels; its operand's padding depends on the activation.
std::string convolution(std::string_view activation) {
  return str(R"(graph @g(%x: f32[1,17,5,5] in "NCHW{16c}" pad zero, %w: f32[20,17,3,3] in "OIHW{16o16i}" pad zero, %b: f32[20]) -> %y {
    )", activation, R"(
    %y = Conv %a, %w, %b {pads = [1, 1, 1, 1], layout.kernel = "padded"} : f32[1,20,5,5] in "NCHW{16c}"
  })");
}

TEST(PaddedKernels, ConvolutionSumsOverPaddedChannels) {
  const auto keeps = parsed(convolution("%a = Relu %x : f32[1,17,5,5] in \"NCHW{16c}\" pad zero"));
  expect_as_plain_with_any_poison(*keeps, inputs_of(*keeps));

  const auto dirty = parsed(convolution("%a = Exp %x : f32[1,17,5,5] in \"NCHW{16c}\""));
  const auto inputs = inputs_of(*dirty);
  const auto wanted = run(*without_layouts(*dirty), inputs);
  // Weights of zero forgive exp(0) = 1, but not a NaN.
  const auto poisoned = run(*dirty, inputs, kNan);
  ASSERT_TRUE(wanted.ok() && poisoned.ok()) << error_of(poisoned);
  EXPECT_TRUE(std::isnan((*poisoned)[0].tensor().as<float>()[0]));
  EXPECT_FALSE(std::isnan((*wanted)[0].tensor().as<float>()[0]));

  const auto scrubbed = parsed(convolution(R"(%e = Neg %x : f32[1,17,5,5] in "NCHW{16c}"
    %a = layout.Scrub %e : f32[1,17,5,5] in "NCHW{16c}" pad zero)"));
  expect_as_plain_with_any_poison(*scrubbed, inputs_of(*scrubbed));
}

TEST(PaddedKernels, MatrixProductsAndReductions) {
  const auto graph = parsed(R"(graph @g(%a: f32[5,7] in "NC{4n4c}" pad zero, %b: f32[7,6] in "NC{4n4c}" pad zero, %c: f32[6]) -> (%m, %h, %s, %t) {
    %axes = Constant {value = dense<i64[1]: 1>}
    %rows = Constant {value = dense<i64[1]: 0>}
    %m = MatMul %a, %b {layout.kernel = "padded"} : f32[5,6] in "NC{4n4c}" pad zero
    %g = Gemm %a, %b, %c {layout.kernel = "padded"} : f32[5,6] in "NC{4n4c}"
    %h = Relu %g {layout.kernel = "padded"} : f32[5,6]
    %s = ReduceSum %m, %axes {layout.kernel = "padded", keepdims = 0} : f32[5] in "C{4c}"
    %t = ReduceMax %m, %rows {layout.kernel = "padded"} : f32[1,6]
  })");
  const auto inputs = inputs_of(*graph);
  const auto wanted = run(*without_layouts(*graph), inputs);
  const auto got = run(*graph, inputs, kOnes);
  ASSERT_TRUE(wanted.ok() && got.ok()) << error_of(wanted) << error_of(got);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE((*wanted)[i].tensor().identical((*got)[i].tensor())) << i;
  // The largest of a column and the zeros below it.
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*got)[3].tensor().double_at(i), std::max((*wanted)[3].tensor().double_at(i), 0.0));
  }
}

TEST(PaddedKernels, PoolsNormalizationAndBroadcastWorkPerChannel) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,5,4,4] in "NCHW{4c}", %s: f32[5], %v: f32[5,1,1]) -> (%p, %q, %n, %a) {
    %p = MaxPool %x {kernel_shape = [2, 2], layout.kernel = "padded"} : f32[1,5,3,3] in "NCHW{4c}"
    %q = GlobalAveragePool %x {layout.kernel = "padded"} : f32[1,5,1,1] in "NCHW{4c}"
    %abs = Abs %s
    %n = BatchNormalization %x, %s, %s, %s, %abs {layout.kernel = "padded"} : f32[1,5,4,4] in "NCHW{4c}"
    %a = Add %x, %v {layout.kernel = "padded"} : f32[1,5,4,4] in "NCHW{4c}"
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph));
}

TEST(PaddedKernels, WhatHasNoSuchKernelRunsInLogicalIndices) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,6,4,4] in "NCHW{4c}", %w: f32[6,1,3,3]) -> (%y, %s) {
    %y = Conv %x, %w {group = 6, layout.kernel = "padded"} : f32[1,6,2,2] in "NCHW{4c}"
    %s = Softmax %y {axis = 1, layout.kernel = "padded"} : f32[1,6,2,2] in "NCHW{4c}"
  })");
  expect_as_plain_with_any_poison(*graph, inputs_of(*graph));
}

TEST(Poison, FindsPaddingThatIsNotWhatWasPromised) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,3,2,2] in "NCHW{4c}" pad zero) -> %b {
    %a = Exp %x : f32[1,3,2,2] in "NCHW{4c}" pad zero
    %b = Neg %a : f32[1,3,2,2]
  })");
  EXPECT_EQ(error_of(run(*graph, inputs_of(*graph))), "no error");
  EXPECT_THAT(error_of(run(*graph, inputs_of(*graph), kOnes)),
              AllOf(HasSubstr("index [0, 3, 0, 0]"), HasSubstr("NCHW{4c}"), HasSubstr("padding zero"),
                    HasSubstr("value 'a'"), HasSubstr("Exp")));
}

TEST(Poison, ComesFromTheEnvironment) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,3,2,2] in "NCHW{4c}" pad zero) -> %b {
    %a = Exp %x : f32[1,3,2,2] in "NCHW{4c}" pad zero
    %b = Neg %a : f32[1,3,2,2]
  })");
  ::setenv("TENON_POISON_PADDING", "nan", 1);
  EXPECT_THAT(error_of(run(*graph, inputs_of(*graph))), HasSubstr("promised"));
  ::setenv("TENON_POISON_PADDING", "zero", 1);
  EXPECT_THAT(error_of(run(*graph, inputs_of(*graph))), HasSubstr("may be ones or nan"));
  ::unsetenv("TENON_POISON_PADDING");
}

// ---- Refusals at run time ----

TEST(LaidOut, ShapesThatALayoutCannotHoldAreErrors) {
  const auto graph = parsed(R"(graph @g(%x: f32[N,C]) -> %a { %a = Neg %x : f32[N,C] in "NC{4c!}" })");
  std::mt19937 random(1);
  EXPECT_TRUE(run(*graph, {testing::random_tensor(random, kF32, {2, 8})}).ok());
  EXPECT_THAT(error_of(run(*graph, {testing::random_tensor(random, kF32, {2, 6})})),
              AllOf(HasSubstr("E_NOT_DIVISIBLE"), HasSubstr("value 'a'")));
  const auto shared = parsed(R"(graph @g(%x: f32[N,C]) -> %a { %a = Neg %x : f32[N,C] in "NC;stride(N)=0" })");
  EXPECT_THAT(error_of(run(*shared, {testing::random_tensor(random, kF32, {2, 6})})), HasSubstr("share one slot"));
}

// ---- Worked layouts ----

ElementType element_of_bits(int64_t bits) {
  if (bits == 32) return kF32;
  return ElementType(ElementKind::uint, static_cast<uint8_t>(bits));
}

TEST(LaidOut, WorkedLayoutsHoldValues) {
  const YAML::Node vectors = YAML::LoadFile(TENON_SOURCE_DIR "/tests/fixtures/layout/vectors.yaml");
  int run_count = 0;
  for (const YAML::Node& one : vectors["layouts"]) {
    const auto text = one["layout"].as<std::string>(), dims = one["dims"].as<std::string>();
    SCOPED_TRACE(text);
    const auto element = element_of_bits(one["element_bits"].as<int64_t>());
    const Type type(element, Shape(one["shape"].as<Dims>()));
    Graph graph("vector");
    Value* x = graph.body().add_input("x", type);
    Builder b(graph.body());
    // Through the layout, into a permuted one, and back out of both.
    const auto a = b.op("Identity", {x});
    ASSERT_TRUE(a.ok()) << a.error().to_string();
    const auto c = b.op("Concat", {*a, *a}, {{"axis", 0}});
    graph.body().add_output(*a, "a");
    if (c.ok()) graph.body().add_output(*c, "c");
    const auto set = set_layout(**a, text, dims);
    if (one["injective"].as<bool>()) {
      ASSERT_TRUE(set.ok()) << set.error().to_string();
    } else {
      EXPECT_FALSE(set.ok());
      continue;
    }
    ASSERT_TRUE(set_layout(*x, text, dims).ok());
    expect_as_plain_with_any_poison(graph, inputs_of(graph, 3));
    ++run_count;
  }
  EXPECT_GE(run_count, 20);
}

// ---- Random layouts of random graphs ----

// Dims in any order, blocks, words of several elements, banks, pitches, fills; often one that is invalid.
std::string random_layout(std::mt19937_64& random, size_t rank, int64_t bits) {
  const auto draw = [&](uint64_t below) { return random() % below; };
  std::string order;
  for (size_t d = 0; d < rank; ++d) order.insert(draw(order.size() + 1), 1, static_cast<char>('A' + d));
  const auto digit = [&] { return str(2 + draw(4), static_cast<char>('a' + draw(rank))); };
  std::string text = rank > 0 && draw(4) == 0 ? "[" + digit() + "]" : "";
  text += order;
  if (rank > 0 && draw(2) == 0) text += "{" + digit() + (draw(3) == 0 ? digit() : "") + "}";
  if (rank > 0 && draw(4) == 0) text += str("<", digit(), draw(2) ? str(":", 8 * bits) : "", ">");
  if (draw(8) == 0) text += str(";size=", 64 << draw(2), "B");
  if (rank > 0 && draw(8) == 0) text += str(";align(", order[0], ")=32B");
  if (draw(6) == 0) text += ";fill=1";
  if (draw(8) == 0) text += ";fill=undef";
  return text;
}

void lay_out_some(Region& region, std::mt19937_64& random, int& count) {
  const auto lay_out = [&](Value& value) {
    const Type& type = value.type();
    if (!type.is_tensor() || !type.shape().ranked() || type.element().is_string() || random() % 2) return;
    const auto rank = static_cast<size_t>(type.shape().rank());
    const std::string text = random_layout(random, rank, type.element().bits());
    if (!set_layout(value, text, std::string("ABCDEFG").substr(0, rank)).ok()) return;
    ++count;
  };
  for (size_t i = 0; i < region.input_count(); ++i) lay_out(*region.input(i));
  for (Op& op : region) {
    for (size_t i = 0; i < op.region_count(); ++i) lay_out_some(op.region(i), random, count);
    for (size_t i = 0; i < op.result_count(); ++i) lay_out(*op.result(i));
  }
}

TEST(LaidOut, RandomGraphsInRandomLayouts) {
  constexpr uint64_t kGraphs = 800;
  int ran = 0, laid_out = 0;
  for (uint64_t seed = 0; seed < kGraphs && !HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    testing::RandomGraphOptions options;
    options.seed = seed;
    options.ops = 24;
    options.use = testing::usual_operators();
    // Branches may hold shapes that contradict, and most of these graphs do not run.
    if (seed % 4 == 0) options.branch = "If";
    const auto graph = testing::random_graph(options);
    std::mt19937_64 random(seed);
    lay_out_some(graph->body(), random, laid_out);
    const auto verified = verify(*graph);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    const auto back = parse_graph(print(*graph));
    ASSERT_TRUE(back.ok() && same_graph(*graph, **back)) << print(*graph);
    const auto inputs = inputs_of(*graph, seed);
    const auto wanted = run(*without_layouts(*graph), inputs);
    if (!wanted.ok()) continue;  // extents that turn out not to go together
    ++ran;
    for (const InterpreterOptions& poison : {kPlain, kOnes, kNan}) {
      const auto got = run(*graph, inputs, poison);
      ASSERT_TRUE(got.ok()) << error_of(got) << print(*graph);
      expect_identical(*wanted, *got, *graph);
    }
  }
  EXPECT_GE(ran, 500);
  EXPECT_GE(laid_out, 5000);
}

}  // namespace
}  // namespace tenon
