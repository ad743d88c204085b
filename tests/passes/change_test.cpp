#include <tenon/passes/change.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::unique_ptr<Graph> graph_of(std::string_view text) {
  register_test_ops();
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}
// The operator of the body that makes the value `name`.
Op& op_of(Graph& graph, std::string_view name) {
  for (Op& op : graph.body()) {
    if (op.result_count() > 0 && op.result()->name() == name) return op;
  }
  TENON_CHECK(false, "no value %", name);
}

TEST(Effects, ArePerTraitAndRegion) {
  const auto g = graph_of(R"(graph @g(%x: f32[2], %c: bool[]) -> %x {
  %pure = Neg %x
  %random = RandomNormalLike %x
  %quiet = test.If %c (() -> %a { %a = Neg %x }, () -> %x {})
  %loud = test.If %c (() -> %x { test.Log %x }, () -> %x {})
  %dice = test.If %c (() -> %b { %b = RandomNormalLike %x }, () -> %x {})
})");
  const auto effects = [&](std::string_view name) {
    return std::pair(has_no_effect(op_of(*g, name)), is_repeatable(op_of(*g, name)));
  };
  EXPECT_EQ(effects("pure"), std::pair(true, true));
  EXPECT_EQ(effects("random"), std::pair(true, false));
  EXPECT_EQ(effects("quiet"), std::pair(true, true));
  EXPECT_EQ(effects("loud"), std::pair(false, false));
  EXPECT_EQ(effects("dice"), std::pair(true, false));
  Op& unknown = g->body().create("nobody.Knows", {}, {});
  EXPECT_FALSE(has_no_effect(unknown));
  EXPECT_FALSE(is_repeatable(unknown));
}

TEST(ReplaceValue, KeepsWhatIsKnownAndNames) {
  const auto g = graph_of(R"(graph @g(%x: f32[?]) -> (out: %b) {
  %a = Neg %x
  %b = Relu %a : f32[4]
  %c = Abs %x
})");
  Value& b = *op_of(*g, "b").result();
  Value& c = *op_of(*g, "c").result();
  c.set_name("");
  ASSERT_TRUE(replace_value(b, c).ok());
  EXPECT_EQ(c.type().to_string(), "f32[4]");
  EXPECT_EQ(c.name(), "b");
  EXPECT_EQ(g->body().output(0), &c);
  EXPECT_EQ(g->body().output_name(0), "out");
  // The declaration of an input stands.
  ASSERT_TRUE(replace_value(c, *g->body().input(0)).ok());
  EXPECT_EQ(g->body().input(0)->type().to_string(), "f32[?]");
  EXPECT_EQ(g->body().input(0)->name(), "x");
}

TEST(ReplaceValue, RefusesAnotherType) {
  const auto g = graph_of("graph @g(%x: f32[2], %z: f32[3]) -> %a { %a = Neg %x }");
  const auto replaced = replace_value(*g->body().output(0), *g->body().input(1));
  ASSERT_FALSE(replaced.ok());
  EXPECT_EQ(replaced.error().code(), Code::internal);
  EXPECT_THAT(replaced.error().message(), HasSubstr("%a of type f32[2] cannot become %z of type f32[3]"));
  EXPECT_EQ(g->body().output(0)->name(), "a");
}

TEST(EraseDead, TakesWhatOnlyTheDeadUsed) {
  const auto g = graph_of(R"(graph @g(%x: f32[2], %c: bool[]) -> %kept {
  %kept = Neg %x
  %a = Exp %x
  %b = Add %a, %a
  %twice = Add %b, %kept
  %dead = test.If %c (() -> %d { %e = Add %twice, %a  
 %d = Neg %e }, () -> %b {})
  test.Log %x
})");
  std::vector<std::string> erased;
  erase_dead(op_of(*g, "dead"), [&](Op& op) { erased.push_back(op.result()->name()); });
  EXPECT_THAT(erased, UnorderedElementsAre("dead", "twice", "b", "a"));
  EXPECT_EQ(print(*g, {.types = false}),
            "graph @g(%x: f32[2], %c: bool[]) -> %kept {\n  %kept = Neg %x\n  test.Log %x\n}\n");
  erased.clear();
  erase_dead(op_of(*g, "kept"), [&](Op& op) { erased.push_back(op.result()->name()); });
  EXPECT_THAT(erased, IsEmpty());
}

TEST(EraseDead, FromInsideARegionOutwards) {
  const auto g = graph_of(R"(graph @g(%x: f32[2], %c: bool[]) -> %y {
  %a = Exp %x
  %y = test.If %c (() -> %x { %dead = Neg %a }, () -> %x {})
})");
  erase_dead(*op_of(*g, "y").region(0).first());
  EXPECT_EQ(g->body().op_count(), 1u);
  EXPECT_TRUE(verify(*g).ok());
}

}  // namespace
}  // namespace tenon::testing
