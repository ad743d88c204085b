#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon::testing {
namespace {

using namespace tenon::pattern;
using ::testing::HasSubstr;

void register_fused() {
  register_test_ops();
  if (find_op("test.Fused")) return;
  const auto registered = register_ops({OpDef("test.Fused")
                                            .variadic_operands("xs", "T", 1)
                                            .optional_attribute("act", AttributeKind::text)
                                            .variadic_results("ys", "T", 1)
                                            .types("T", kAnyTensor)
                                            .infer(same_as_operand(0))});
  TENON_CHECK(registered.ok(), registered.error().to_string());
}

// The graph after the rewrites, without types; or the error.
std::string rewritten(std::string_view text, const std::vector<Rewrite>& rewrites) {
  register_fused();
  auto graph = parse_graph(text);
  if (!graph.ok()) return graph.error().to_string();
  const auto change = apply_rewrites(**graph, rewrites);
  const auto verified = verify(**graph);
  EXPECT_TRUE(verified.ok()) << (verified.ok() ? "" : verified.error().to_string());
  if (!change.ok()) return change.error().to_string();
  return print(**graph, {.types = false});
}
// Expects that nothing changes.
void expect_kept(std::string_view text, const std::vector<Rewrite>& rewrites) {
  EXPECT_EQ(rewritten(text, rewrites), rewritten(text, {}));
}

std::vector<Rewrite> sum_act() {
  return {Rewrite("sum-act")
              .match(op({"Relu", "Abs"}, {op("Add", {any("x"), constant("b")})}).as("act"))
              .into("test.Fused", {"x", "b"}, [](const Match& m) {
                return Attributes{{"act", m.op("act").name().str()}};
              })};
}

TEST(Rewrite, MakesOneOperatorOfAChainWithNamesAndLabels) {
  EXPECT_EQ(rewritten(R"(graph @g(%x: f32[2]) -> (%y, z: %r) {
  %b = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %b "sum"
  %y = Relu %a "act"
  %c = Add %b, %y
  %r = Abs %c
})",
                      sum_act()),
            R"(graph @g(%x: f32[2]) -> (%y, z: %r) {
  %b = Constant {value = dense<f32[2]: 1.0, 2.0>}
  %y = test.Fused %x, %b "sum+act" {act = "Relu"}
  %r = test.Fused %y, %b {act = "Abs"}
}
)");
}

TEST(Rewrite, LeavesInnerValuesThatOthersUse) {
  const auto rewrites = sum_act();
  expect_kept(R"(graph @twice(%x: f32[2], %b: f32[2]) -> (%y, %a) {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %c
  %y = Relu %a
})",
              rewrites);
  expect_kept(R"(graph @two_users(%x: f32[2]) -> (%y, %z) {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %c
  %y = Relu %a
  %z = Neg %a
})",
              rewrites);
  expect_kept(R"(graph @captured(%x: f32[2], %p: bool[]) -> (%y, %z) {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %c
  %y = Relu %a
  %z = test.If %p (() -> %n { %n = Neg %a }, () -> %x {})
})",
              rewrites);
  expect_kept(R"(graph @no_constant(%x: f32[2], %c: f32[2]) -> %y {
  %a = Add %x, %c
  %y = Relu %a
})",
              rewrites);
  expect_kept(R"(graph @other_region(%x: f32[2], %p: bool[]) -> %z {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %c
  %z = test.If %p (() -> %n { %n = Relu %a }, () -> %x {})
})",
              rewrites);
}

TEST(Rewrite, WorksInsideRegionsOnValuesFromOutside) {
  EXPECT_THAT(rewritten(R"(graph @inside(%x: f32[2], %p: bool[]) -> %z {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %z = test.If %p (() -> %n { %a = Add %x, %c   
 %n = Relu %a }, () -> %x {})
})",
                        sum_act()),
              HasSubstr("%n = test.Fused %x, %c {act = \"Relu\"}"));
}

TEST(Rewrite, SharedInnerOperatorsStayForTheirOtherUsers) {
  const std::vector<Rewrite> rewrites = {
      Rewrite("shared").match(op("Relu", {op("Neg", {any("x")}).shared()})).into("test.Fused", {"x"})};
  EXPECT_EQ(rewritten("graph @g(%x: f32[2]) -> (%y, %n) { %n = Neg %x  \n %y = Relu %n }", rewrites),
            "graph @g(%x: f32[2]) -> (%y, %n) {\n  %n = Neg %x\n  %y = test.Fused %x\n}\n");
}

TEST(Rewrite, OneOperandTwice) {
  const std::vector<Rewrite> same = {
      Rewrite("double").match(op("Add", {any("x"), any("x")})).into("test.Fused", {"x"})};
  EXPECT_THAT(rewritten("graph @g(%x: f32[2]) -> %y { %y = Add %x, %x }", same), HasSubstr("%y = test.Fused %x\n"));
  expect_kept("graph @g(%x: f32[2], %z: f32[2]) -> %y { %y = Add %x, %z }", same);
  // Both operands are one operator, which has two uses and is matched twice.
  const std::vector<Rewrite> pair = {
      Rewrite("pair")
          .match(op("Add", {op("Neg", {any("x")}).shared(), op("Neg", {any("z")}).shared()}))
          .into("test.Fused", {"x", "z"})};
  EXPECT_EQ(rewritten("graph @g(%x: f32[2]) -> %y { %n = Neg %x  \n %y = Add %n, %n }", pair),
            "graph @g(%x: f32[2]) -> %y {\n  %y = test.Fused %x, %x\n}\n");
  const std::vector<Rewrite> single = {
      Rewrite("single").match(op("Add", {op("Neg", {any("x")}), any("z")})).into("test.Fused", {"x", "z"})};
  expect_kept("graph @g(%x: f32[2]) -> %y { %n = Neg %x  \n %y = Add %n, %n }", single);
}

TEST(Rewrite, CommutativeOperandsInBothOrdersWithBacktracking) {
  // The first order fits alone, but then the test on the whole fails.
  const std::vector<Rewrite> rewrites = {
      Rewrite("ordered").match(op("Sub", {any("a"), constant("k")})).into("test.Fused", {"a"}),
      Rewrite("deep")
          .match(op("Add", {op("Mul", {any("a"), any("b")}), any("c")}))
          .when([](const Match& m) { return m.value("a")->name() == "p" && m.value("c")->name() == "r"; })
          .into("test.Fused", {"a", "b", "c"})};
  for (const char* text : {"%m = Mul %p, %q  \n %y = Add %m, %r", "%m = Mul %q, %p  \n %y = Add %r, %m"}) {
    EXPECT_THAT(rewritten(str("graph @g(%p: f32[2], %q: f32[2], %r: f32[2]) -> %y {", text, "}"), rewrites),
                HasSubstr("%y = test.Fused %p, %q, %r\n"));
  }
  expect_kept("graph @g(%p: f32[2]) -> %y { %k = Constant {value = dense<f32[2]: 1, 2>} \n %y = Sub %k, %p }",
              rewrites);
}

TEST(Rewrite, OrderOfCommutativeOperandsCanBeFixedOrFreed) {
  const std::vector<Rewrite> fixed = {
      Rewrite("fixed").match(op("Add", {any("a"), constant()}).in_order()).into("test.Fused", {"a"})};
  const std::vector<Rewrite> free = {
      Rewrite("free").match(op("Sub", {any("a"), constant()}).in_any_order()).into("test.Fused", {"a"})};
  expect_kept("graph @g(%p: f32[2]) -> %y { %k = Constant {value = dense<f32[2]: 1, 2>} \n %y = Add %k, %p }", fixed);
  EXPECT_THAT(
      rewritten("graph @g(%p: f32[2]) -> %y { %k = Constant {value = dense<f32[2]: 1, 2>} \n %y = Sub %k, %p }", free),
      HasSubstr("%y = test.Fused %p\n"));
}

TEST(Rewrite, OptionalOperandsFurtherOperandsAndAlternatives) {
  const std::vector<Rewrite> rewrites = {
      Rewrite("clip")
          .match(op("test.Clip", {one_of({op("Relu", {any("x")}), any("x")}), any("low").optional(), any("high")}))
          .when([](const Match& m) { return !m.has("low"); })
          .into("test.Fused", {"x", "high"})};
  const auto clip = [&](const char* body) {
    return rewritten(str("graph @g(%x: f32[2], %h: f32[]) -> %y {", body, "}"), rewrites);
  };
  EXPECT_THAT(clip("%r = Relu %x \n %y = test.Clip %r, _, %h"), HasSubstr("{\n  %y = test.Fused %x, %h\n"));
  EXPECT_THAT(clip("%y = test.Clip %x, _, %h"), HasSubstr("%y = test.Fused %x, %h\n"));
  EXPECT_THAT(clip("%y = test.Clip %x, %h, %h"), HasSubstr("%y = test.Clip"));
  EXPECT_THAT(clip("%y = test.Clip %x, _"), HasSubstr("%y = test.Clip"));  // `high` is not optional

  const std::vector<Rewrite> exact = {Rewrite("one").match(op("test.Sum", {any("x")})).into("test.Fused", {"x"})};
  const std::vector<Rewrite> more = {
      Rewrite("more").match(op("test.Sum", {any("x")}).and_more()).into("test.Fused", {"x"})};
  const char* text = "graph @g(%x: f32[2]) -> %y { %y = test.Sum %x, %x }";
  expect_kept(text, exact);
  EXPECT_THAT(rewritten(text, more), HasSubstr("test.Fused %x\n"));
}

TEST(Rewrite, OperatorsOfSeveralResults) {
  const std::vector<Rewrite> root = {Rewrite("split")
                                         .match(op("test.Split", {any("x")}))
                                         .with_all([](Builder& b, const Match& m) -> Result<std::vector<Value*>> {
                                           const std::vector<Value*> operands = {m.value("x")};
                                           TENON_TRY(first, b.op("test.Fused", operands));
                                           (void)first;  // unused: goes again
                                           TENON_TRY(made, b.ops("test.Split", operands, 2, {{"axis", int64_t{0}}}));
                                           return made;
                                         })};
  // It matches what it makes, so it goes on until it is stopped.
  EXPECT_THAT(rewritten("graph @g(%x: f32[4,4]) -> (%a, %b) { %a, %b = test.Split %x }", root),
              HasSubstr("rewrites undo each other for ever, or grow the graph without end: 'split'"));
  const std::vector<Rewrite> inner = {
      Rewrite("second").match(op("Neg", {op("test.Split", {any("x")}).result(1)})).into("test.Fused", {"x"})};
  expect_kept("graph @g(%x: f32[4]) -> %n { %a, %b = test.Split %x \n %n = Neg %a }", inner);
  expect_kept("graph @g(%x: f32[4]) -> (%n, %a) { %a, %b = test.Split %x \n %n = Neg %b }", inner);
}

TEST(Rewrite, OperatorsNobodyUsesAreLeftToOthers) {
  expect_kept(R"(graph @dead(%x: f32[2]) -> %x {
  %c = Constant {value = dense<f32[2]: 1, 2>}
  %a = Add %x, %c
  %y = Relu %a
})",
              sum_act());
}

TEST(Rewrite, LargerPatternsFirst) {
  const std::vector<Rewrite> rewrites = {
      Rewrite("small").match(op("Relu", {op("Neg", {any("x")})})).into("test.Fused", {"x"}),
      Rewrite("large")
          .match(op("Abs", {op("Relu", {op("Neg", {any("x")})})}))
          .into("test.Fused", {"x"}, [](const Match&) {
            return Attributes{{"act", "large"}};
          })};
  EXPECT_EQ(rewritten("graph @g(%x: f32[2]) -> %y { %n = Neg %x \n %r = Relu %n \n %y = Abs %r }", rewrites),
            "graph @g(%x: f32[2]) -> %y {\n  %y = test.Fused %x {act = \"large\"}\n}\n");
}

TEST(Rewrite, WhatOneRewriteMakesTheNextTakes) {
  // Neg(Neg(x)) -> x, many times; afterwards the Relus meet.
  const std::vector<Rewrite> rewrites = {
      Rewrite("neg").match(op("Neg", {op("Neg", {any("x")})})).with([](Builder&, const Match& m) -> Result<Value*> {
        return m.value("x");
      }),
      Rewrite("relu").match(op("Relu", {op("Relu", {any("x")})})).with([](Builder& b, const Match& m) {
        return b.op("Relu", {m.value("x")});
      })};
  std::string text = "graph @g(%x: f32[2]) -> %y { %v0 = Relu %x \n";
  for (int i = 0; i < 100; ++i) text += str("%v", i + 1, " = Neg %v", i, "\n");
  EXPECT_EQ(rewritten(text + "%y = Relu %v100 }", rewrites), "graph @g(%x: f32[2]) -> %y {\n  %y = Relu %x\n}\n");
}

TEST(Rewrite, WhatIsDeclinedLeavesNoTrace) {
  const std::vector<Rewrite> rewrites = {
      Rewrite("no").match(op("Relu", {any("x")})).with([](Builder& b, const Match& m) -> Result<Value*> {
        TENON_TRY(made, b.op("Neg", {m.value("x")}));
        TENON_TRY(further, b.op("Abs", {made}));
        return further->name() == "never" ? further : nullptr;
      })};
  expect_kept("graph @g(%x: f32[2]) -> %y { %y = Relu %x }", rewrites);
}

TEST(Rewrite, RewritesThatUndoEachOtherAreNamed) {
  const auto swap = [](const char* from, const char* to) {
    return Rewrite(str(from, "-to-", to)).match(op(from, {any("x")})).with([to](Builder& b, const Match& m) {
      return b.op(to, {m.value("x")});
    });
  };
  const std::string error =
      rewritten("graph @g(%x: f32[2]) -> %y { %y = Relu %x }", {swap("Relu", "Abs"), swap("Abs", "Relu")});
  EXPECT_THAT(error, HasSubstr("'Abs-to-Relu', 'Relu-to-Abs'"));
}

TEST(Rewrite, WrongRewritesAreErrorsAndLeaveTheGraphWhole) {
  const auto build = [](Rewrite::BuildFn fn) {
    return rewritten("graph @g(%x: f32[2]) -> %y { %y = Relu %x }",
                     {Rewrite("wrong").match(op("Relu", {any("x")}).as("r")).with(std::move(fn))});
  };
  EXPECT_THAT(build([](Builder& b, const Match& m) {
                return b.op("Cast", {m.value("x")}, {{"to", Type(kF16, Shape())}});
              }),
              HasSubstr("it gives a value of type f16[2] for one of type f32[2]"));
  EXPECT_THAT(build([](Builder& b, const Match& m) { return b.op("Neg", {m.value("r")}); }),
              HasSubstr("it builds Neg on the operator that it replaces"));
  EXPECT_THAT(build([](Builder&, const Match& m) -> Result<Value*> { return m.value("r"); }),
              HasSubstr("it gives the operator itself back"));
  const std::string unknown = build([](Builder& b, const Match& m) { return b.op("test.Nowhere", {m.value("x")}); });
  EXPECT_THAT(unknown, HasSubstr("test.Nowhere"));
  EXPECT_THAT(unknown, HasSubstr("rewrite 'wrong' at Relu (%y)"));
}

TEST(Rewrite, APassOfRewritesBringsWhatItNeeds) {
  register_fused();
  PassManager manager;
  ASSERT_TRUE(manager.add(rewrite_pass("fuse-sum-act", "Fuses.", sum_act())).ok());
  ASSERT_EQ(manager.passes().size(), 2u);
  EXPECT_EQ(manager.passes()[0].name, "infer-types");
}

}  // namespace
}  // namespace tenon::testing
