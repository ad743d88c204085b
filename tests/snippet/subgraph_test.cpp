#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/evaluated.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/statistics.hpp>

namespace tenon::snippet {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText =
    "graph @g(%x: f32[2,N], %b: f32[N]) -> (%y, %s) {\n"
    "  %y, %s = snippet.Subgraph %x, %b \"scaled\" ((%0: f32[2,N], %1: f32[N]) -> (%3, %4) {\n"
    "    %2 = Constant {value = dense<f32[]: 0.5>} : f32[]\n"
    "    %3 = Add %0, %1 : f32[2,N]\n"
    "    %4 = Mul %3, %2 : f32[2,N]\n"
    "  }) : f32[2,N], f32[2,N]\n"
    "}\n";

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *std::move(graph) : nullptr;
}

std::string refusal(std::string_view text) {
  auto graph = parse_graph(text);
  if (!graph.ok()) return graph.error().to_string();
  const auto verified = verify(**graph);
  return verified.ok() ? "no error" : verified.error().to_string();
}

TEST(Subgraph, ItsTextReadsBackAndVerifies) {
  const auto graph = parsed(kText);
  ASSERT_TRUE(verify(*graph).ok()) << verify(*graph).error().to_string();
  const std::string text = print(*graph);
  const auto again = parsed(text);
  EXPECT_EQ(print(*again), text);
  std::string difference;
  EXPECT_TRUE(same_graph(*graph, *again, {.names = true}, &difference)) << difference;
}

TEST(Subgraph, TypesOfResultsFollowFromOperands) {
  const auto graph = parsed(
      "graph @g(%x: f32[2,7]) -> %y {\n"
      "  %y = snippet.Subgraph %x ((%0: f32[2,?]) -> %2 {\n"
      "    %1 = Neg %0\n"
      "    %2 = Neg %1\n"
      "  })\n"
      "}\n");
  EXPECT_EQ(graph->body().output(0)->type().to_string(), "f32[2,7]");
}

TEST(Subgraph, RunsAsItsRegionDoes) {
  const auto graph = parsed(kText);
  auto interpreter = Interpreter::prepare(*graph);
  ASSERT_TRUE(interpreter.ok());
  const auto outputs =
      (*interpreter)->run(std::vector<Datum>{Tensor::of<float>({2, 2}, {1, 2, 3, 4}), Tensor::of<float>({2}, {1, 3})});
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_EQ((*outputs)[0].tensor().to_string(), Tensor::of<float>({2, 2}, {2, 5, 4, 7}).to_string());
  EXPECT_EQ((*outputs)[1].tensor().to_string(), Tensor::of<float>({2, 2}, {1, 2.5, 2, 3.5}).to_string());
}

TEST(Subgraph, DecomposesIntoTheOperatorsOfItsRegion) {
  const auto graph = parsed(kText);
  Op& op = *graph->body().first();
  Builder b(graph->body(), &op);
  auto values = op.def()->decompose_fn()(b, op);
  ASSERT_TRUE(values.ok()) << values.error().to_string();
  for (size_t i = 0; i < values->size(); ++i) op.result(i)->replace_all_uses_with((*values)[i]);
  op.erase();
  ASSERT_TRUE(verify(*graph).ok());
  EXPECT_THAT(print(*graph), ::testing::AllOf(HasSubstr("Add %x, %b"), ::testing::Not(HasSubstr("snippet"))));
}

TEST(Subgraph, RefusesValuesFromAroundAndWrongCounts) {
  EXPECT_THAT(refusal("graph @g(%x: f32[2], %b: f32[2]) -> %y {\n"
                      "  %y = snippet.Subgraph %x ((%0: f32[2]) -> %1 { %1 = Add %0, %b })\n}\n"),
              HasSubstr("from around the region"));
  EXPECT_THAT(refusal("graph @g(%x: f32[2]) -> %y {\n"
                      "  %y = snippet.Subgraph %x ((%0: f32[2]) -> %x { })\n}\n"),
              HasSubstr("output 0 of the region is a value from around it"));
  EXPECT_THAT(refusal("graph @g(%x: f32[2], %b: f32[2]) -> %y {\n"
                      "  %y = snippet.Subgraph %x, %b ((%0: f32[2]) -> %1 { %1 = Neg %0 })\n}\n"),
              HasSubstr("1 inputs and 1 outputs, the operator 2 operands"));
  EXPECT_THAT(refusal("graph @g(%x: f32[2]) -> %y {\n"
                      "  %y = snippet.Subgraph %x ((%0: f32[3]) -> %1 { %1 = Neg %0 })\n}\n"),
              HasSubstr("input 0 of the region"));
}

// ---- Statistics ----

TEST(Statistics, CountBytesOfEachOperatorAgainstThoseOfTheSnippet) {
  const auto graph = parsed(kText);
  const SubgraphStatistics s = statistics_of(*graph->body().first());
  EXPECT_EQ(s.name, "scaled");
  EXPECT_EQ(s.operators, 2u);
  EXPECT_EQ(s.parameters, 2u);
  EXPECT_EQ(s.results, 2u);
  EXPECT_EQ(s.constants, 1u);
  const Expr n = Expr::symbol("N");
  EXPECT_EQ(s.bytes_unfused, 4 * (2 * n + n + 2 * n) + 4 * (2 * n + 2 * n));
  EXPECT_EQ(s.bytes_fused, 4 * (2 * n + n + 2 * n + 2 * n));
  EXPECT_TRUE(s.exact);
  EXPECT_THAT(to_string(snippet_statistics(*graph)), HasSubstr("1 snippets"));
}

}  // namespace
}  // namespace tenon::snippet
