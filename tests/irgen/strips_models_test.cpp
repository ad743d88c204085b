// Chains of networks in strips: products by rows, operators with several results, extents known only at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>

#include "irgen/strips_support.hpp"

namespace tenon::irgen {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string feed_forward(const std::string& rows) {
  return str("graph @mlp(%x: f32[", rows, R"(,24], %w1: f32[24,96], %b1: f32[96], %w2: f32[96,24], %b2: f32[24], %s: f32[24]) -> %y {
  %h = MatMul %x, %w1
  %hb = Add %h, %b1
  %g = Gelu %hb
  %o = MatMul %g, %w2
  %ob = Add %o, %b2
  %r = Add %ob, %x
  %y = LayerNormalization %r, %s {axis = -1}
})");
}

std::string attention(const std::string& length) {
  return str("graph @attention(%q: f32[2,", length, ",8], %k: f32[2,8,", length, "], %v: f32[2,", length,
             R"(,8], %scale: f32[]) -> %y {
  %s = MatMul %q, %k
  %d = Div %s, %scale
  %p = Softmax %d {axis = -1}
  %y = MatMul %p, %v
})");
}

// ---- Products ----

TEST(StripsOfProducts, HoldTheWidePartOfAFeedForwardBlockAFewRowsAtATime) {
  const auto graph = graph_of(feed_forward("50"));
  // Steps of up to three rows, which the product takes another way, and of more; a last one of two rows.
  for (const int64_t step : {1, 3, 4, 16}) {
    SCOPED_TRACE(step);
    auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 0, .step = step});
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    ASSERT_EQ(run->chains.size(), 1u) << run->report.to_string();
    EXPECT_THAT(ops_of(run->chains[0].chain()),
                ElementsAre("MatMul", "Add", "Gelu", "MatMul", "Add", "Add", "LayerNormalization"));
    const program::RunStatistics statistics = expect_same_bits(*graph, *run);
    EXPECT_LT(statistics.heap_peak, 3 * step * 96 * 4 + 5 * step * 24 * 4 + 2 * 24 * 96 * 4);
  }
}

TEST(StripsOfProducts, NeverHoldAllScoresOfAttention) {
  const auto graph = graph_of(attention("40"));
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 1, .step = 4});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u) << run->report.to_string();
  EXPECT_THAT(ops_of(run->chains[0].chain()), ElementsAre("MatMul", "Div", "Softmax", "MatMul"));
  const program::RunStatistics statistics = expect_same_bits(*graph, *run);
  for (const auto& [stage, counts] : statistics.stages) EXPECT_LE(counts.elements, 2 * 40 * 40) << "computed twice";
  EXPECT_LT(run->report.rows[0].peak_bytes, 2 * 40 * 40 * 4);
}

TEST(StripsOfProducts, GoAlongRowsOfATransposedFirstFactor) {
  const auto graph = graph_of(R"(
graph @gemm(%a: f32[7,30], %b: f32[11,7], %c: f32[30,1]) -> %y {
  %p = Gemm %a, %b, %c {transA = 1, transB = 1, alpha = 0.5}
  %y = Tanh %p
})");
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 0, .step = 4});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u) << run->report.to_string();
  expect_same_bits(*graph, *run);
}

TEST(StripsOfProducts, AreTakenForTheirMemoryWhereThatIsAskedFor) {
  const CostModel model{{{"near", 1e3, 100e9}, {"cache", 32e3, 50e9}, {"memory", 0, 5e9}}, 1e-6};
  const auto graph = graph_of(attention("400"));
  const Chains found = find_chains(*graph, {.mode = StripMode::memory, .model = model});
  ASSERT_EQ(found.chains.size(), 1u);
  EXPECT_THAT(ops_of(found.chains[0]), ElementsAre("MatMul", "Div", "Softmax", "MatMul"));
  EXPECT_LT(found.chains[0].strips.peak_bytes, 400 * 400 * 4);
  // Nothing is held less where everything is written in place.
  const auto in_place = graph_of("graph @g(%x: f32[400,400]) -> %y {\n%a = Relu %x\n%b = Tanh %a\n%y = Neg %b\n}");
  EXPECT_TRUE(find_chains(*in_place, {.mode = StripMode::memory, .model = model}).chains.empty());
}

// ---- Several results ----

TEST(StripsOfSeveralResults, ComputeEachThatIsUsed) {
  const auto graph = graph_of(R"(
graph @gated(%x: f32[1,12,20]) -> %y {
  %a = Relu %x
  %l, %g = Split %a {axis = 2, num_outputs = 2}
  %s = Sigmoid %g
  %y = Mul %l, %s
})");
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 1, .step = 4});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u) << run->report.to_string();
  EXPECT_THAT(ops_of(run->chains[0].chain()), ElementsAre("Relu", "Split", "Split", "Sigmoid", "Mul"));
  EXPECT_EQ(run->chains[0].ops().size(), 4u);
  expect_same_bits(*graph, *run);
}

TEST(StripsOfSeveralResults, LeaveOutThoseThatNobodyUses) {
  const auto graph = graph_of(R"(
graph @unused(%x: f32[1,2,12,8], %s: f32[8]) -> %y {
  %p, %places = MaxPool %x {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %n, %mean, %deviation = LayerNormalization %p, %s {axis = -1}
  %c = Sub %n, %mean
  %y, %mask = Dropout %c
})");
  auto run = StripRun::make(*graph, {.mode = StripMode::always, .dim = 2, .step = 4});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  ASSERT_EQ(run->chains.size(), 1u) << run->report.to_string();
  EXPECT_THAT(ops_of(run->chains[0].chain()), Contains("MaxPool"));
  expect_same_bits(*graph, *run, false);
}

TEST(StripsOfSeveralResults, AreWholeWhereOneHasNoParts) {
  const auto graph = graph_of(R"(
graph @places(%x: f32[1,2,12,8]) -> (%y, %z) {
  %a = Relu %x
  %p, %places = MaxPool %a {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %f = Cast %places {to = type<f32[*]>}
  %s = Add %p, %f
  %y = Relu %s
  %z = Neg %p
})");
  const Chains found = find_chains(*graph, {.mode = StripMode::always, .dim = 2, .step = 4});
  for (const Chain& chain : found.chains) EXPECT_THAT(ops_of(chain), Not(Contains("MaxPool")));
}

// ---- Extents of a run ----

// Runs with many values of a symbolic extent; returns the number of chains for each.
std::vector<size_t> chains_at(const std::string& text, const std::vector<int64_t>& extents, StripOptions options) {
  const auto graph = graph_of(text);
  StripReport report;
  RunnerOptions with;
  with.lower.grouping = strip_grouping(std::move(options), &report);
  const auto runner = GraphRunner::prepare(*graph, reference_kernels(), with);
  EXPECT_TRUE(runner.ok()) << runner.error().to_string();
  const auto oracle = Interpreter::prepare(*graph);
  EXPECT_TRUE(report.rows.empty()) << "found before extents are known";
  std::vector<size_t> chains;
  for (const int64_t extent : extents) {
    SCOPED_TRACE(extent);
    std::mt19937 random(static_cast<uint32_t>(extent));
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph->body().input_count(); ++i) {
      Dims dims;
      for (const Dim& d : graph->body().input(i)->type().shape().dims())
        dims.push_back(d.is_static() ? d.value() : extent);
      inputs.emplace_back(tenon::testing::random_tensor(random, kF32, dims));
    }
    const auto expected = (*oracle)->run(inputs);
    EXPECT_TRUE(expected.ok()) << expected.error().to_string();
    const size_t before = report.rows.size();
    for (int time = 0; time < 2; ++time) {
      const auto made = (*runner)->run(inputs);
      EXPECT_TRUE(made.ok()) << made.error().to_string();
      if (made.ok() && expected.ok()) {
        EXPECT_TRUE((*made)[0].tensor().identical((*expected)[0].tensor()));
      }
    }
    chains.push_back(report.rows.size() - before);
  }
  return chains;
}

TEST(StripsOfOpenExtents, AreFoundWhenARunKnowsThem) {
  const StripOptions options{.mode = StripMode::always, .step = 4};
  // Of one row there are no strips; everything else is found once for each extent, however often it runs.
  EXPECT_THAT(chains_at(feed_forward("N"), {3, 4, 5, 61, 4}, {.mode = StripMode::always, .dim = 0, .step = 4}),
              ElementsAre(1, 1, 1, 1, 0));
  chains_at(feed_forward("N"), {1, 0, 2}, options);
  chains_at(attention("L"), {1, 3, 4, 5, 70}, options);
}

TEST(StripsOfOpenExtents, GoAlongRowsOfImages) {
  const std::string text = R"(
graph @images(%x: f32[1,2,H,9], %w: f32[2,2,3,3]) -> %y {
  %a = Conv %x, %w {pads = [1, 1, 1, 1]}
  %b = Relu %a
  %c = Conv %b, %w {pads = [1, 1, 1, 1], strides = [2, 2]}
  %y = AveragePool %c {kernel_shape = [2, 2]}
})";
  const auto chains = chains_at(text, {7, 8, 9, 64}, {.mode = StripMode::always, .dim = 2, .step = 4});
  EXPECT_EQ(chains.back(), 1u);
}

TEST(StripsOfOpenExtents, AreOfTheModelsOpinion) {
  const CostModel model{{{"cache", 1e6, 50e9}, {"memory", 0, 5e9}}, 1e-6};
  const std::string text =
      "graph @g(%x: f32[1,16,H,64]) -> %y {\n%a = Relu %x\n%b = Sigmoid %a\n%c = Tanh %b\n%y = Neg %c\n}";
  EXPECT_THAT(chains_at(text, {16, 4096}, {.model = model}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace tenon::irgen
