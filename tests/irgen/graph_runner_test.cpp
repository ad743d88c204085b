#include <tenon/irgen/graph_runner.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <support_lib/random_ops.hpp>

#include "irgen/irgen_testing.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;
using tenon::testing::random_graph;
using tenon::testing::random_inputs;
using tenon::testing::usual_operators;
using ::testing::HasSubstr;

std::unique_ptr<GraphRunner> runner(const Graph& graph, const RunnerOptions& options = {}) {
  auto made = GraphRunner::prepare(graph, reference_kernels(), options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? *std::move(made) : nullptr;
}

// Compares results, or refusals, with those of the interpreter. Returns whether they ran.
bool expect_as_interpreted(const Graph& graph, const std::vector<Datum>& inputs, const RunnerOptions& options = {}) {
  const auto oracle = Interpreter::prepare(graph);
  EXPECT_TRUE(oracle.ok()) << oracle.error().to_string();
  const auto made = runner(graph, options);
  if (!oracle.ok() || !made) return false;
  const auto wanted = (*oracle)->run(inputs);
  for (int time = 0; time < 2; ++time) {
    const auto got = made->run(inputs);
    EXPECT_EQ(wanted.ok(), got.ok()) << (wanted.ok() ? got.error() : wanted.error()).to_string() << print(graph);
    if (!wanted.ok() || !got.ok()) return false;
    expect_identical(*wanted, *got, print(graph));
  }
  return true;
}

TEST(GraphRunner, RandomGraphsRunAsTheInterpreterRunsThem) {
  int ran = 0;
  size_t in_programs = 0, on_host = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto graph = random_graph({.seed = seed, .use = usual_operators(), .branch = seed % 3 == 0 ? "If" : ""});
    ran += expect_as_interpreted(*graph, random_inputs(*graph, seed));
    const auto made = runner(*graph);
    in_programs += made->report().program_ops;
    on_host += made->report().host_ops.size();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(in_programs, 4 * on_host);
  EXPECT_GT(on_host, 0u);
}

TEST(GraphRunner, EachOptimisationMayBeLeftOut) {
  for (uint64_t seed = 200; seed < 230; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto graph = random_graph({.seed = seed, .use = usual_operators()});
    for (int without = 0; without < 4; ++without) {
      const LowerOptions lower{
          .order_for_memory = without != 1, .in_place = without != 2, .share_memory = without != 3};
      expect_as_interpreted(*graph, random_inputs(*graph, seed), {.lower = lower});
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Each operand and each result is a part of another tensor: a view around the call, or a copy if there are too many.
TEST(GraphRunner, AnOperatorMayHaveAnyNumberOfOperands) {
  for (const int parts : {3, 256, 257, 600}) {
    SCOPED_TRACE(parts);
    std::string text = str("graph @g(%x: f32[", parts, ",5]) -> (%y, %z) {\n  ");
    std::string names;
    for (int i = 0; i < parts; ++i) names += str(i == 0 ? "%" : ", %", "p", i);
    text += str(names, " = Split %x {axis = 0, num_outputs = ", parts, "}\n  %y = Max ", names, "\n  %z = Concat ",
                names, ", %y {axis = 0}\n}");
    const auto graph = parsed(text);
    EXPECT_TRUE(expect_as_interpreted(*graph, random_inputs(*graph, 7)));
    EXPECT_EQ(runner(*graph)->report().host_ops.size(), 0u);
  }
}

TEST(GraphRunner, OneProgramForAllExtents) {
  const auto graph = parsed(R"(graph @net(%x: f32[N,4], %w: f32[4,3]) -> (%y, %s) {
      %a = MatMul %x, %w : f32[N,3]
      %b = Relu %a : f32[N,3]
      %y = Softmax %b : f32[N,3]
      %s = Shape %y : i64[2]
    })");
  const auto made = runner(*graph);
  EXPECT_EQ(made->report().programs, 1u);
  EXPECT_TRUE(made->report().host_ops.empty());
  std::mt19937 random(7);
  const Datum w(tenon::testing::random_tensor(random, kF32, {4, 3}, -2, 2));
  const auto oracle = Interpreter::prepare(*graph);
  for (const int64_t n : {3, 1, 8, 0, 3, 40, 8}) {
    const std::vector<Datum> inputs = {Datum(tenon::testing::random_tensor(random, kF32, {n, 4}, -2, 2)), w};
    const auto wanted = (*oracle)->run(inputs), got = made->run(inputs);
    ASSERT_TRUE(wanted.ok() && got.ok()) << n << (got.ok() ? "" : got.error().to_string());
    expect_identical(*wanted, *got, str("N = ", n));
  }
}

// More extents than are kept, from several threads at the same time.
TEST(GraphRunner, ExtentsDifferFromThreadToThread) {
  const auto graph = parsed(R"(graph @net(%x: f32[N,4]) -> (%y) {
      %a = Softmax %x : f32[N,4]
      %b = Transpose %a {perm = [1, 0]} : f32[4,N]
      %y = Concat %b, %b {axis = 0} : f32[8,N]
    })");
  const auto made = runner(*graph);
  const auto oracle = Interpreter::prepare(*graph);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60; ++i) {
        const auto n = static_cast<int64_t>(1 + random() % 40);
        const std::vector<Datum> inputs = {Datum(tenon::testing::random_tensor(random, kF32, {n, 4}, -2, 2))};
        const auto wanted = (*oracle)->run(inputs), got = made->run(inputs);
        ASSERT_TRUE(wanted.ok() && got.ok()) << n;
        expect_identical(*wanted, *got, str("N = ", n));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(made->arena_bytes(), 0u);
}

// Also while a run makes a program that needs more memory than earlier ones: what runs lend and what they do not must
// stay consistent.
TEST(GraphRunner, MemoryIsAskedForWhileRunsMakePrograms) {
  const auto graph = parsed(R"(graph @net(%x: f32[N,16], %w: f32[16,16]) -> (%y) {
      %a = Exp %x : f32[N,16]
      %b = Add %a, %x : f32[N,16]
      %n = Neg %b : f32[N,16]
      %y = MatMul %n, %w : f32[N,16]
    })");
  const Datum w(*Tensor::zeros(kF32, {16, 16}));
  for (int runners = 0; runners < 200; ++runners) {
    const auto made = runner(*graph);
    std::atomic<bool> over = false;
    std::array<size_t, 4> most = {};
    std::vector<std::thread> threads;
    for (size_t& of_thread : most)
      threads.emplace_back([&] {
        while (!over) of_thread = std::max(of_thread, made->arena_bytes());
      });
    for (const int64_t n : {1, 4, 16, 64, 256})
      EXPECT_TRUE(made->run(std::vector<Datum>{Datum(*Tensor::zeros(kF32, {n, 16})), w}).ok());
    over = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_LE(std::ranges::max(most), made->arena_bytes()) << "of runner " << runners;
  }
}

TEST(GraphRunner, LoopsAndSequencesAreBetweenPrograms) {
  const auto graph = parsed(R"(graph @net(%x: f32[4,2], %n: i64[]) -> (%y, %z) {
      %r = Relu %x : f32[4,2]
      %s = SplitToSequence %r {axis = 0} : seq(f32[*])
      %i = Constant {value = dense<i64[]: 1>} : i64[]
      %e = SequenceAt %s, %i : f32[*]
      %y = Neg %e : f32[*]
      %z = Neg %r : f32[4,2]
    })");
  const auto made = runner(*graph);
  EXPECT_EQ(made->report().host_ops.size(), 3u);
  EXPECT_EQ(made->report().program_ops, 2u);
  std::mt19937 random(11);
  expect_as_interpreted(
      *graph, {Datum(tenon::testing::random_tensor(random, kF32, {4, 2}, -2, 2)), Datum(Tensor::scalar<int64_t>(3))});
}

// Their bodies read values of the enclosing programs.
TEST(GraphRunner, LoopsAndScansAreStepsOfTheHost) {
  const auto graph = parsed(R"(graph @net(%x: f32[4], %rows: f32[3,4], %m: i64[]) -> (%y, %s) {
      %r = Relu %x : f32[4]
      %w = Loop %m, _, %r ((%i: i64[], %k: bool[], %a: f32[4]) -> (%k, %b) { %b = Add %a, %r : f32[4] }) : f32[4]
      %n = Neg %w : f32[4]
      %f, %s = Scan %n, %rows {num_scan_inputs = 1} ((%z: f32[4], %row: f32[4]) -> (%u, %v) {
        %u = Add %z, %row : f32[4]
        %v = Mul %u, %n : f32[4]
      }) : f32[4], f32[3,4]
      %y = Neg %f : f32[4]
    })");
  const auto made = runner(*graph);
  ASSERT_EQ(made->report().host_ops.size(), 2u);
  EXPECT_EQ(made->report().host_ops[0].op, "Loop");
  EXPECT_EQ(made->report().host_ops[1].op, "Scan");
  EXPECT_THAT(made->report().host_ops[0].reason, HasSubstr("graphs of its own"));
  EXPECT_EQ(made->report().program_ops, 3u);
  EXPECT_EQ(made->report().programs, 3u);
  std::mt19937 random(17);
  const auto floats = [&](Dims dims) {
    return Datum(tenon::testing::random_tensor(random, kF32, std::move(dims), -2, 2));
  };
  for (const int64_t trips : {0, 1, 5})
    EXPECT_TRUE(expect_as_interpreted(*graph, {floats({4}), floats({3, 4}), Datum(Tensor::scalar(trips))}));
}

TEST(GraphRunner, ExtentsThatTheRulesRefuseAreRefused) {
  const auto graph = parsed(R"(graph @net(%x: f32[N], %z: f32[5]) -> (%y) {
      %y = Add %x, %z : f32[5]
    })");
  const auto made = runner(*graph);
  const Datum z(Tensor::of<float>({5}, {1, 2, 3, 4, 5}));
  EXPECT_TRUE(made->run(std::vector<Datum>{z, z}).ok());
  EXPECT_TRUE(made->run(std::vector<Datum>{Datum(Tensor::of<float>({1}, {1})), z}).ok());
  const auto refused = made->run(std::vector<Datum>{Datum(Tensor::of<float>({2}, {1, 2})), z});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("Add"));
}

TEST(GraphRunner, ShapesThatDependOnDataAreBetweenPrograms) {
  const auto graph = parsed(R"(graph @net(%x: f32[2,5]) -> (%y, %z) {
      %r = Relu %x : f32[2,5]
      %i = NonZero %r : i64[2,M]
      %y = Add %i, %i : i64[2,M]
      %z = Neg %r : f32[2,5]
    })");
  const auto made = runner(*graph);
  ASSERT_EQ(made->report().host_ops.size(), 1u);
  EXPECT_EQ(made->report().host_ops[0].op, "NonZero");
  EXPECT_THAT(made->report().host_ops[0].reason, HasSubstr("depends on data"));
  EXPECT_EQ(made->report().programs, 2u);
  EXPECT_EQ(made->report().program_ops, 3u);
  std::mt19937 random(3);
  for (int i = 0; i < 5; ++i)
    expect_as_interpreted(*graph, {Datum(tenon::testing::random_tensor(random, kF32, {2, 5}, -9, 9))});
}

TEST(GraphRunner, InputsAndConstantsMayBeOutputsAndTwice) {
  const auto graph = parsed(R"(graph @net(%x: f32[2]) -> (a: %x, %y, b: %y) {
      %y = Neg %x : f32[2]
    })");
  const Datum x(Tensor::of<float>({2}, {1, 2}));
  expect_as_interpreted(*graph, {x});
  const auto outputs = runner(*graph)->run(std::vector<Datum>{x});
  ASSERT_TRUE(outputs.ok());
  EXPECT_NE((*outputs)[0].tensor().data(), x.tensor().data());
  EXPECT_NE((*outputs)[1].tensor().data(), (*outputs)[2].tensor().data());
}

TEST(GraphRunner, SeveralThreadsRunOneRunner) {
  const auto graph = random_graph({.seed = 5, .use = usual_operators(), .branch = "If"});
  const auto made = runner(*graph);
  const auto oracle = Interpreter::prepare(*graph);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20; ++i) {
        const auto inputs = random_inputs(*graph, 100 * t + i);
        const auto wanted = (*oracle)->run(inputs), got = made->run(inputs);
        ASSERT_EQ(wanted.ok(), got.ok());
        if (got.ok()) expect_identical(*wanted, *got, str("thread ", t));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(GraphRunner, ProfilesEachOperator) {
  const auto graph = parsed(R"(graph @net(%x: f32[2,5]) -> (%y) {
      %r = Relu %x : f32[2,5]
      %i = NonZero %r : i64[2,M]
      %y = Add %i, %i : i64[2,M]
    })");
  std::vector<OpProfile> profile;
  const Datum x(Tensor::of<float>({2, 5}, std::vector<float>(10, 1)));
  ASSERT_TRUE(runner(*graph)->run(std::vector<Datum>{x}, {.profile = &profile}).ok());
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[0].op, "Relu");
  EXPECT_EQ(profile[1].op, "NonZero");
  EXPECT_EQ(profile[2].op, "Add");
}

}  // namespace
}  // namespace tenon::irgen
