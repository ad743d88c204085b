#include <tenon/passes/standard.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

// A block as exporters write it: separate normalisation and padding, channels last for the activation, a shape computed
// from the input, a branch on a constant, repeated work.
constexpr std::string_view kBlock = R"(graph @block(%x: f32[1,2,4,4]) -> (%y, probe: %p) {
  %pads = Constant {value = dense<i64[8]: 0, 0, 1, 1, 0, 0, 1, 1>}
  %padded = Pad %x, %pads "pad"
  %w = Constant {value = splat<f32[2,2,3,3]: 0.5>}
  %conv = Conv %padded, %w "conv"
  %one = Constant {value = dense<f32[2]: 1, 2>}
  %norm = BatchNormalization %conv, %one, %one, %one, %one "norm" {epsilon = 0.0}
  %last = Transpose %norm {perm = [0, 2, 3, 1]}
  %act = Relu %last "act"
  %first = Transpose %act {perm = [0, 3, 1, 2]}
  %same = Dropout %first
  %shape = Shape %same
  %axis = Constant {value = dense<i64[]: 0>}
  %batch = Gather %shape, %axis
  %zero = Constant {value = dense<i64[1]: 0>}
  %batches = Unsqueeze %batch, %zero
  %rest = Constant {value = dense<i64[1]: -1>}
  %to = Concat %batches, %rest {axis = 0}
  %flat = Reshape %same, %to "flat"
  %is_one = Equal %batch, %axis
  %y = If %is_one (() -> %n { %n = Neg %flat }, () -> %a { %a = Exp %flat "exp" })
  %p = Exp %flat
})";

std::unique_ptr<Graph> block() {
  auto graph = parse_graph(kBlock);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

// Only when both casts are one value is their maximum that value, and only then can the cast back be removed.
TEST(StandardPasses, NothingIsLeftOfWorkThatUndoesItself) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok()) << passes.error().to_string();
  auto graph = parse_graph(R"(graph @back(%x: f16[3,5]) -> %y {
    %a = Cast %x {to = type<f32[*]>}
    %b = Cast %x {to = type<f32[*]>}
    %most = Max %a, %b
    %back = Cast %most {to = type<f16[*]>}
    %y = Relu %back
  })");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto report = passes->run(**graph, {.verify_each = true});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ((*graph)->body().output(0)->producer()->operand(0), (*graph)->body().input(0)) << print(**graph);
}

// A difference is 0 once its operands are one value; what is computed from it is then known, and its users simplify.
TEST(StandardPasses, WhatRulesKnowIsFoldedOn) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok()) << passes.error().to_string();
  auto graph = parse_graph(R"(graph @known(%x: f32[3,5], %z: i32[3,5]) -> (%known, %y) {
    %a = Cast %x {to = type<i8[*]>}
    %b = Cast %x {to = type<i8[*]>}
    %zero = Sub %a, %b
    %negative = Neg %zero
    %least = Min %negative, %zero
    %known = Cast %least {to = type<i32[*]>}
    %sum = Add %z, %known
    %y = Neg %sum
  })");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto report = passes->run(**graph, {.verify_each = true});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  const Region& body = (*graph)->body();
  EXPECT_TRUE(body.output(0)->producer()->is("Constant")) << print(**graph);
  EXPECT_EQ(body.output(1)->producer()->operand(0), body.input(1)) << print(**graph);
  EXPECT_EQ(body.op_count(), 2u) << print(**graph);
}

// Each difference is known only after the previous one: then its operands become one value, it is 0, and the addition
// of it is removed.
TEST(StandardPasses, AsManyRoundsAsAChainOfKnowledgeHasLinks) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok()) << passes.error().to_string();
  for (const int links : {1, 2, 3, 5, 10}) {
    std::string text = "graph @chain(%x: i32[3,5]) -> %y {\n  %a0 = Abs %x\n  %b0 = Abs %x\n  %d0 = Sub %a0, %b0\n";
    for (int i = 1; i < links; ++i) {
      text +=
          str("  %s", i, " = Sub %x, %d", i - 1, "\n  %n", i, " = BitwiseNot %s", i, "\n  %a", i, " = Neg %n", i,
              "\n  %m", i, " = BitwiseNot %x\n  %b", i, " = Neg %m", i, "\n  %d", i, " = Sub %a", i, ", %b", i, "\n");
    }
    auto graph = parse_graph(str(text, "  %y = Add %x, %d", links - 1, "\n}"));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const auto report = passes->run(**graph, {.verify_each = true});
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ((*graph)->body().output(0), (*graph)->body().input(0)) << links << " links: " << print(**graph);
    EXPECT_EQ((*graph)->body().op_count(), 0u) << links << " links";
  }
}

TEST(StandardPasses, LeaveWhatABlockComputes) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok()) << passes.error().to_string();
  const auto graph = block();
  const auto report = passes->run(*graph, {.verify_each = true});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  std::vector<std::string> ops;
  for (const Op& op : graph->body()) {
    if (!op.is("Constant")) ops.push_back(op.describe());
  }
  // The %a of the branch and %p are one value.
  EXPECT_THAT(ops, ::testing::ElementsAre(HasSubstr("Conv 'pad+conv+norm'"), HasSubstr("Relu 'act'"),
                                          HasSubstr("Reshape"), HasSubstr("Exp 'exp'")));
  EXPECT_EQ(graph->body().output(0), graph->body().output(1));
  EXPECT_EQ(graph->body().output_name(0), "y");
  EXPECT_EQ(graph->body().output_name(1), "probe");
  EXPECT_EQ(graph->body().output(0)->type().to_string(), "f32[1,32]");
}

TEST(StandardPasses, FindNothingMoreTheSecondTime) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok());
  const auto graph = block();
  ASSERT_TRUE(passes->run(*graph).ok());
  const std::string once = print(*graph);
  ASSERT_TRUE(passes->run(*graph).ok());
  EXPECT_EQ(print(*graph), once);
}

TEST(StandardPasses, EveryRegisteredPassSaysWhatItDoes) {
  ASSERT_GE(all_passes().size(), 11u);
  for (const Pass* pass : all_passes()) {
    if (pass->name.find('.') != std::string::npos) continue;  // of tests
    EXPECT_GE(pass->contract.size(), 40u) << pass->name;
    EXPECT_NE(pass->contract.find('\n'), std::string::npos) << pass->name;
  }
}

}  // namespace
}  // namespace tenon::testing
