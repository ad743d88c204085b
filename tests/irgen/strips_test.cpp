#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include <tenon/ir/text.hpp>
#include <tenon/irgen/reference_strips.hpp>
#include <tenon/target/load.hpp>

#include "irgen/irgen_testing.hpp"
#include "irgen/strips_support.hpp"
#include "support_lib/random_tensor.hpp"

namespace tenon::irgen {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Why the operator with that name is in no chain.
std::string why_whole(const Graph& graph, std::string_view op,
                      const StripOptions& options = {.mode = StripMode::always}) {
  for (const auto& [whole, why] : find_chains(graph, options).whole)
    if (whole->is(Name(op))) return why;
  return "";
}

constexpr const char* kConvReluPool = R"(
graph @chain(%x: f32[1,2,12,6], %w: f32[3,2,3,3]) -> %y {
  %c = Conv %x, %w {pads = [1, 1, 1, 1]}
  %r = Relu %c
  %y = MaxPool %r {kernel_shape = [2, 2], strides = [2, 2]}
}
)";

// ---- What is read ----

TEST(StripReads, OfAConvolutionAreTheRowsAround) {
  const auto graph = graph_of(kConvReluPool);
  const Op& conv = *graph->body().first();
  const auto reads = strip_reads(conv, 0, {2});
  ASSERT_TRUE(reads.ok()) << reads.error().to_string();
  const StripWindow& rows = reads->operands[0][2];
  EXPECT_EQ(rows.first, max(Expr(0), strip_symbol(0) - 1));
  EXPECT_EQ(rows.last, min(Expr(11), strip_symbol(0) + 1));
  EXPECT_EQ(rows.loop, 0);
  EXPECT_EQ(rows.span, 3);
  EXPECT_THAT(reads->moved_dims(0, 1), ElementsAre(2));
  EXPECT_THAT(reads->moved_dims(1, 1), ElementsAre(-1)) << "weights are read whole";
}

TEST(StripReads, RefuseWhatIsComputedAtOnceOrHasOtherBitsInParts) {
  const auto softmax = graph_of("graph @g(%x: f32[4,6]) -> %y { %y = Softmax %x {axis = 1} }");
  EXPECT_TRUE(strip_reads(*softmax->body().first(), 0, {0}).ok());
  EXPECT_THAT(strip_reads(*softmax->body().first(), 0, {1}).error().message(), HasSubstr("computes all of dim 1"));
  const auto unknown = graph_of("graph @g(%x: f32[N,6]) -> %y { %y = Relu %x }");
  EXPECT_THAT(strip_reads(*unknown->body().first(), 0, {0}).error().message(), HasSubstr("not known before a run"));
  const auto depthwise =
      graph_of(R"(graph @g(%x: f32[1,4,8,8], %w: f32[4,1,3,3]) -> %y { %y = Conv %x, %w {group = 4} })");
  EXPECT_TRUE(strip_reads(*depthwise->body().first(), 0, {2}).ok());
  EXPECT_THAT(strip_reads(*depthwise->body().first(), 0, {1}).error().message(),
              HasSubstr("gives other bits in strips"));
}

// ---- Which operators ----

TEST(Chains, TakeBranchesThatComeTogether) {
  const auto graph = graph_of(R"(
graph @residual(%x: f32[1,4,16,16], %w: f32[4,4,3,3]) -> %y {
  %a = Relu %x
  %c = Conv %a, %w {pads = [1, 1, 1, 1]}
  %d = Conv %c, %w {pads = [1, 1, 1, 1]}
  %s = Sigmoid %a
  %p = Mul %d, %s
  %y = Add %p, %a
})");
  const Chains found = find_chains(*graph, {.mode = StripMode::always, .step = 4});
  ASSERT_EQ(found.chains.size(), 1u);
  EXPECT_THAT(ops_of(found.chains[0]), ElementsAre("Relu", "Conv", "Conv", "Sigmoid", "Mul", "Add"));
  EXPECT_TRUE(found.whole.empty());
}

TEST(Chains, BreakAtOutputsAndAtUsesOutside) {
  const auto output = graph_of(R"(
graph @g(%x: f32[1,4,16,16]) -> (%a, %y) {
  %a = Relu %x
  %b = Sigmoid %a
  %y = Tanh %b
})");
  EXPECT_THAT(why_whole(*output, "Relu"), HasSubstr("is an output of the graph"));
  const auto outside = graph_of(R"(
graph @g(%x: f32[1,1,16,1]) -> (%y, %z) {
  %a = Relu %x
  %b = Sigmoid %a
  %y = Tanh %b
  %z = ReduceMax %a {keepdims = 0}
})");
  const Chains found = find_chains(*outside, {.mode = StripMode::always});
  ASSERT_EQ(found.chains.size(), 1u);
  EXPECT_THAT(ops_of(found.chains[0]), ElementsAre("Sigmoid", "Tanh"));
  EXPECT_THAT(why_whole(*outside, "Relu"), HasSubstr("is used outside of the chain"));
}

TEST(Chains, BreakWhereAnOperatorNeedsAllOfADim) {
  const auto graph = graph_of(R"(
graph @g(%x: f32[1,1,16,1]) -> %y {
  %a = Relu %x
  %b = Softmax %a {axis = 2}
  %c = Sigmoid %b
  %y = Tanh %c
})");
  const Chains found = find_chains(*graph, {.mode = StripMode::always});
  ASSERT_EQ(found.chains.size(), 1u);
  EXPECT_THAT(ops_of(found.chains[0]), ElementsAre("Sigmoid", "Tanh"));
  EXPECT_THAT(why_whole(*graph, "Softmax"), HasSubstr("computes all of dim 2"));
  // With another dim to go along there is nothing to break.
  const auto wide = graph_of(R"(
graph @g(%x: f32[1,8,16,1]) -> %y {
  %a = Relu %x
  %b = Softmax %a {axis = 2}
  %y = Sigmoid %b
})");
  const Chains all = find_chains(*wide, {.mode = StripMode::always});
  ASSERT_EQ(all.chains.size(), 1u);
  EXPECT_EQ(all.chains[0].loops, (std::vector<ChainLoop>{{1, all.chains[0].loops[0].step}}));
}

TEST(Chains, BreakAtOperatorsWithoutARule) {
  const auto graph = graph_of(R"(
graph @g(%x: f32[4,16]) -> %y {
  %a = Relu %x
  %b = RandomNormalLike %a
  %c = Sigmoid %b
  %y = Tanh %c
})");
  const Chains found = find_chains(*graph, {.mode = StripMode::always});
  ASSERT_EQ(found.chains.size(), 1u);
  EXPECT_THAT(ops_of(found.chains[0]), ElementsAre("Sigmoid", "Tanh"));
  EXPECT_THAT(why_whole(*graph, "RandomNormalLike"), HasSubstr("has no bounds rule"));
}

// ---- Whether it pays ----

std::string elementwise_chain(int64_t height) {
  return str("graph @g(%x: f32[1,16,", height,
             ",64]) -> %y {\n%a = Relu %x\n%b = Sigmoid %a\n%c = Tanh %b\n%y = Neg %c\n}");
}

TEST(Chains, RunInStripsWhereWhatTheyHandOnLeavesTheCache) {
  const CostModel model{{{"cache", 1e6, 50e9}, {"memory", 0, 5e9}}, 1e-6};
  const auto small = graph_of(elementwise_chain(16)), large = graph_of(elementwise_chain(4096));  // 64 KiB, 16 MiB
  EXPECT_TRUE(find_chains(*small, {.model = model}).chains.empty());
  EXPECT_EQ(find_chains(*small, {.mode = StripMode::always, .model = model}).chains.size(), 1u);
  const Chains found = find_chains(*large, {.model = model});
  ASSERT_EQ(found.chains.size(), 1u);
  const Chain& chain = found.chains[0];
  EXPECT_EQ(chain.ops.size(), 4u);
  EXPECT_LT(chain.strips.seconds, chain.whole.seconds);
  EXPECT_LE(chain.strips.peak_bytes, 1000000);
  EXPECT_GE(chain.whole.peak_bytes, 16 << 20);
  // 8 times 16 MiB through memory against 2 times.
  EXPECT_NEAR(chain.whole.moved_bytes[1] / chain.strips.moved_bytes[1], 4, 0.01);
  EXPECT_TRUE(find_chains(*large, {.mode = StripMode::never, .model = model}).chains.empty());
}

TEST(Chains, KeepWithinTheBytesThatAreAllowed) {
  const auto graph = graph_of(elementwise_chain(4096));
  const auto step_within = [&](int64_t bytes) {
    return find_chains(*graph, {.mode = StripMode::always, .bytes = bytes}).chains.at(0);
  };
  const Chain tight = step_within(40000), wide = step_within(400000);
  EXPECT_LE(tight.strips.peak_bytes, 40000);
  EXPECT_LE(wide.strips.peak_bytes, 400000);
  EXPECT_LT(tight.loops.back().step, wide.loops.back().step);
}

// A model may state such an extent; the planner must not try it by counting.
TEST(Chains, EndTheirSearchForAStepWhateverTheExtent) {
  const auto graph = graph_of(elementwise_chain(INT64_MAX));
  const Chain chain = find_chains(*graph, {.mode = StripMode::always}).chains.at(0);
  EXPECT_EQ(chain.ops.size(), 4u);
  for (const ChainLoop& loop : chain.loops) EXPECT_GT(loop.step, 0);
}

TEST(Chains, TakeTheMemoriesOfATarget) {
  const auto target = parse_target(
      "tenon_target: 1\nname: t\nplugin: p\nclock: 1 GHz\nmemories:\n"
      "  host: {size: 1 GiB}\n  pad: {size: 64 KiB, bandwidth: 16 B/cycle}\n",
      "t.yaml");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  const CostModel model = strip_model(*target);
  ASSERT_EQ(model.memories.size(), 2u);
  EXPECT_EQ(model.memories[0].name, "pad");
  EXPECT_EQ(model.memories[0].bytes_per_second, 16e9);
  EXPECT_EQ(model.memories[1].bytes, 0) << "the largest holds anything";
  EXPECT_EQ(strip_model(TargetDescription{}).memories.size(), CostModel::host().memories.size());
}

TEST(Chains, TakeTheCachesOfAUsualHostWhereATargetStatesNone) {
  const auto target =
      parse_target("tenon_target: 1\nname: t\nplugin: p\nmemories:\n  host: {size: 64 GiB}\n", "t.yaml");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  const CostModel model = strip_model(*target), host = CostModel::host();
  ASSERT_EQ(model.memories.size(), host.memories.size());
  EXPECT_EQ(model.memories[0].bytes, host.memories[0].bytes);
  EXPECT_GT(model.seconds_per_call, host.seconds_per_call) << "an operator's call costs more than a stage's";
}

// ---- Programs ----

TEST(Strips, OfConvReluPoolAreThisProgram) {
  const auto graph = graph_of(kConvReluPool);
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 2});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_EQ(program::print(run->program), R"(program @strips() {
  input %x : f32 rank 4
  input %w : f32 rank 4
  output %y : f32 rank 4
  allocate %strip_workspace : u8[0 +: 640] {
    allocate %r_memory : f32[0 +: 6, 0 +: 4, 0 +: 3, 0 +: 1] {
      allocate %c_memory : f32[0 +: 6, 0 +: 4, 0 +: 3, 0 +: 1] {
        for at2_0 in [0, 6) step 2 {
          let at2_0_hi = min(4, at2_0) + 1 {
            view %c : f32 = %c_memory at 0 [0 +: 6 stride c_memory.stride0, 2*at2_0 +: -2*min(1, at2_0 - at2_0_hi) + 2 stride c_memory.stride1, 0 +: 3 stride c_memory.stride2, 0 +: 1 stride c_memory.stride3] {
              view %r : f32 = %r_memory at 0 [0 +: 6 stride r_memory.stride0, 2*at2_0 +: -2*min(1, at2_0 - at2_0_hi) + 2 stride r_memory.stride1, 0 +: 3 stride r_memory.stride2, 0 +: 1 stride r_memory.stride3] {
                call strips.Conv(in %x[0 +: 6, max(1, 2*at2_0) - 1 +: min(9, 2*at2_0_hi) - max(1, 2*at2_0) + 4, 0 +: 2, 0 +: 1], in %w[0 +: 3, 0 +: 3, 0 +: 2, 0 +: 3], out %c[0 +: 6, 2*at2_0 +: -2*at2_0 + 2*at2_0_hi + 2, 0 +: 3, 0 +: 1], out %strip_workspace) as "Conv"
                call strips.Relu(in %c[0 +: 6, 2*at2_0 +: -2*at2_0 + 2*at2_0_hi + 2, 0 +: 3, 0 +: 1], out %r[0 +: 6, 2*at2_0 +: -2*at2_0 + 2*at2_0_hi + 2, 0 +: 3, 0 +: 1], out %strip_workspace) as "Relu"
                call strips.MaxPool(in %r[0 +: 6, 2*at2_0 +: -2*at2_0 + 2*at2_0_hi + 2, 0 +: 3, 0 +: 1], out %y[0 +: 3, at2_0 +: -at2_0 + at2_0_hi + 1, 0 +: 3, 0 +: 1], out %strip_workspace) as "MaxPool"
              }
            }
          }
        }
      }
    }
  }
}
)");
  expect_same_bits(*graph, *run);
}

TEST(Strips, ComputeNothingTwice) {
  const auto graph = graph_of(R"(
graph @g(%x: f32[1,2,20,8], %w: f32[2,2,3,3]) -> %y {
  %a = Conv %x, %w {pads = [1, 1, 1, 1]}
  %b = Conv %a, %w {pads = [1, 1, 1, 1]}
  %c = Relu %b
  %y = Add %c, %a
})");
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 3});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u);
  const program::RunStatistics statistics = expect_same_bits(*graph, *run);
  for (const auto& [stage, counts] : statistics.stages) EXPECT_EQ(counts.elements, 2 * 20 * 8) << stage;
}

std::string convolutions(int64_t height) {
  std::string text = str("graph @six(%x: f32[1,2,", height, ",16], %w: f32[2,2,3,3]) -> %y {\n");
  for (int i = 0; i < 6; ++i)
    text +=
        str(i == 5 ? "%y" : str("%c", i), " = Conv ", i == 0 ? "%x" : str("%c", i - 1), ", %w {pads = [1, 1, 1, 1]}\n");
  return text + "}";
}

TEST(Strips, OfSixConvolutionsTakeMemoryOfAStripWhateverTheHeight) {
  std::vector<int64_t> peaks;
  std::string last_program;
  for (const int64_t height : {40, 160}) {
    const auto graph = graph_of(convolutions(height));
    auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 4});
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    ASSERT_EQ(run->chains.size(), 1u);
    EXPECT_EQ(run->chains[0].chain().ops.size(), 6u);
    last_program = program::print(run->program);
    peaks.push_back(expect_same_bits(*graph, *run, false).heap_peak);
    EXPECT_EQ(peaks.back(), run->report.rows[0].peak_bytes);
  }
  EXPECT_EQ(peaks[0], peaks[1]);
  // Of 128 bytes a row: windows, which the first strip makes larger than 4 + 2 rows for values further up, and what the
  // first convolution packs then: 10 rows to 9, and weights.
  EXPECT_LE(peaks[0], (6 + 6 + 7 + 8 + 9) * 128 + (10 + 9) * 128 + 192) << last_program;
}

TEST(Strips, OfImagesAreTakenOneByOne) {
  const auto graph = graph_of(R"(
graph @g(%x: f32[3,2,10,8], %w: f32[2,2,3,3]) -> %y {
  %a = Conv %x, %w {pads = [1, 1, 1, 1]}
  %b = Conv %a, %w {pads = [1, 1, 1, 1]}
  %y = Relu %b
})");
  // Not even an image fits: rows of one image.
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .bytes = 1500, .dim = 2, .step = 2});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u);
  EXPECT_EQ(run->chains[0].chain().loops, (std::vector<ChainLoop>{{0, 1}, {2, 2}}));
  expect_same_bits(*graph, *run);
}

TEST(Strips, LeaveOperatorsWholeThatHaveNoKernelForParts) {
  const auto graph = graph_of(elementwise_chain(8));
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .step = 2}, "Sigmoid");
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u);
  EXPECT_THAT(ops_of(run->chains[0].chain()), ElementsAre("Tanh", "Neg"));
  EXPECT_THAT(run->report.to_string(), HasSubstr("no kernel for parts of Sigmoid"));
  expect_same_bits(*graph, *run);
}

TEST(Strips, AreAStatementOfALoweredGraph) {
  const auto graph = graph_of(convolutions(12));
  StripReport report;
  const GraphProgram program =
      lowered(*graph, {.grouping = strip_grouping({.mode = StripMode::always, .dim = 2, .step = 4}, &report)});
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_THAT(program::print(program.program), HasSubstr("for at2_0 in [0, 12) step 4"));
  std::mt19937 random(3);
  const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {1, 2, 12, 16})),
                                  Datum(tenon::testing::random_tensor(random, kF32, {2, 2, 3, 3}))};
  const auto expected = (*Interpreter::prepare(*graph))->run(inputs);
  const auto made = interpreted(program, inputs, true);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  expect_identical(*expected, *made, "six convolutions");
  // Without a reason to, nothing runs in strips.
  EXPECT_THAT(program::print(lowered(*graph, {.grouping = strip_grouping()}).program),
              ::testing::Not(HasSubstr("for ")));
}

// The last window of 4 rows begins at row 4 of 7: its part is smaller than the window.
TEST(Strips, OfPoolsThatRoundUpHaveALastWindowOfTheirOwn) {
  constexpr std::string_view kPool = R"(
graph @pool(%x: f32[1,1,7,6]) -> %y {
  %a = Relu %x
  %y = MaxPool %a {kernel_shape = [4, 1], strides = [2, 1], ceil_mode = 1, pads = [0, 0, 0, 0]}
}
)";
  for (const std::string_view mean : {"", ", count_include_pad = 0", ", count_include_pad = 1"}) {
    std::string text(kPool);
    if (!mean.empty()) {
      text.replace(text.find("MaxPool"), 7, "AveragePool");
      text.insert(text.find("}\n}"), mean);
    }
    SCOPED_TRACE(text);
    const auto graph = graph_of(text);
    auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 1});
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    const bool counts_padding = mean.ends_with("1");
    ASSERT_EQ(run->chains.size(), counts_padding ? 0u : 1u) << run->report.to_string();
    if (counts_padding) {
      EXPECT_THAT(run->report.to_string(), HasSubstr("behind the padding that the mean counts"));
    }
    expect_same_bits(*graph, *run);
  }
}

TEST(Strips, AreReported) {
  const auto graph = graph_of(kConvReluPool);
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 2});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  const std::string text = run->report.to_string();
  EXPECT_THAT(text, HasSubstr("strips of 2 of 6 in dim 2, 3 operators"));
  EXPECT_THAT(text, HasSubstr("whole:  "));
  EXPECT_EQ(run->report.rows[0].kernels, run->chains[0].kernel_count());
}

// ---- What the reference's kernels take ----

TEST(ReferenceStrips, OperatorsThatReadMuchForAnElementAreNotAllSlow) {
  const auto graph = graph_of(R"(
graph @costs(%x: f32[1,4,8,8], %w: f32[8,4,3,3], %g: f32[8,2,3,3], %d: f32[4,1,3,3], %t: f32[1000,8], %i: i64[4]) -> %y {
  %c = Conv %x, %w
  %grouped = Conv %x, %g {group = 2}
  %depthwise = Conv %x, %d {group = 4}
  %s = Softmax %x
  %e = Gather %t, %i
  %y = Relu %e
}
)");
  const auto arithmetic = reference_strips({}, 1).arithmetic;
  std::map<std::string, ArithmeticCost> costs;
  for (const Op& op : graph->body())
    if (op.result_count() == 1) costs[std::string(op.result()->name())] = arithmetic(op);
  EXPECT_EQ(costs["grouped"].seconds_per_read, costs["c"].seconds_per_read);
  EXPECT_GT(costs["depthwise"].seconds_per_read, costs["c"].seconds_per_read);
  // Of a row of which each element reads all, of a table of which one row is chosen.
  EXPECT_EQ(costs["s"].seconds_per_read, 0);
  EXPECT_EQ(costs["e"].seconds_per_read, 0);
  EXPECT_GT(costs["s"].seconds_per_element, 0);
  EXPECT_GT(costs["e"].seconds_per_element, 0);
}

}  // namespace
}  // namespace tenon::irgen
