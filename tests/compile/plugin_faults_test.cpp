// The errors of a model when a plugin's code breaks its contract at run time.
#include <tenon/compile/compile.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What is made wrongly is read by a second segment, and is an output.
constexpr std::string_view kTwoSegments = "graph @g(%x: f32[2,1]) -> (%a, %y) { %a = Neg %x %y = Exp %a }";
constexpr std::pair<const char*, const char*> kFaults[] = {
    {"made extents", "output 'a' is declared f32[2,1] and made as f32[7]: another rank"},
    {"made element", "output 'a' is declared f32[2,1] and made as f64[2,1]"},
    {"made nothing", "output 'a' is declared f32[2,1] and made as nothing"}};

class PluginFaultsTest : public testing::PluginTest {
 protected:
  void expect_faults_named() {
    install("throwing");
    TargetRegistry registry;
    const auto model = compile(graph(kTwoSegments), registry, {.targets = {"throwing"}, .optimize = false});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const std::vector<Datum> inputs{Tensor::of<float>({2, 1}, {1, -2})};
    ASSERT_TRUE((*model)->run(inputs).ok());
    for (const auto& [what, sentence] : kFaults) {
      const testing::Environment asked("FIXTURE_BREAK", what);
      const auto ran = (*model)->run(inputs);
      ASSERT_FALSE(ran.ok()) << what;
      EXPECT_EQ(ran.error().code(), Code::plugin) << what;
      EXPECT_THAT(ran.error().to_string(), AllOf(HasSubstr(sentence), HasSubstr("target 'throwing'")));
    }
  }
};

TEST_F(PluginFaultsTest, OutputsThatAreNotAsDeclaredEndTheRun) { expect_faults_named(); }

TEST_F(PluginFaultsTest, OutputsOfRunsAtOnceThatAreNotAsDeclaredEndTheRun) {
  const testing::Environment at_once("FIXTURE_AT_ONCE", "1");
  expect_faults_named();
}

// A plugin's own way of running on the same memory again and again.
TEST_F(PluginFaultsTest, OutputsOfBoundRunsThatAreNotAsDeclaredEndTheRun) {
  install("throwing");
  const testing::Environment at_once("FIXTURE_AT_ONCE", "1");
  TargetRegistry registry;
  const auto model = compile(graph(kTwoSegments), registry, {.targets = {"throwing"}, .optimize = false});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<Datum> inputs{Tensor::of<float>({2, 1}, {1, -2})};
  for (const auto& [what, sentence] : kFaults) {
    const auto bound = (*model)->bind(inputs);
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    ASSERT_TRUE((*bound)->run().ok());  // binds
    const testing::Environment asked("FIXTURE_BREAK", what);
    const auto ran = (*bound)->run();
    ASSERT_FALSE(ran.ok()) << what;
    EXPECT_EQ(ran.error().code(), Code::plugin) << what;
    EXPECT_THAT(ran.error().to_string(), AllOf(HasSubstr(sentence), HasSubstr("target 'throwing'")));
  }
  const testing::Environment asked("FIXTURE_BREAK", "bound extents");
  const auto bound = (*model)->bind(inputs);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const auto ran = (*bound)->run();
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), HasSubstr(kFaults[0].second));
}

TEST_F(PluginFaultsTest, WhatBoundRunsThrowBecomesAnError) {
  install("throwing");
  const testing::Environment at_once("FIXTURE_AT_ONCE", "1");
  TargetRegistry registry;
  const auto model = compile(graph(kTwoSegments), registry, {.targets = {"throwing"}, .optimize = false});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto runs = [&]() -> Result<void> {
    TENON_TRY(bound, (*model)->bind({Tensor::of<float>({2, 1}, {1, -2})}));
    TENON_OK(bound->run());
    return bound->run();
  };
  for (const std::string place : {"bind", "bound run"}) {
    const testing::Environment asked("FIXTURE_THROW", place);
    const auto ran = runs();
    ASSERT_FALSE(ran.ok()) << place;
    EXPECT_THAT(ran.error().to_string(), HasSubstr("out of paper")) << place;
  }
  const testing::Environment asked("FIXTURE_THROW", "settled");  // run() is asked, then
  EXPECT_TRUE(runs().ok());
}

// Before the plugin is called, which would throw.
TEST_F(PluginFaultsTest, InputsOfRunsAtOnceAreLookedAt) {
  install("throwing");
  const testing::Environment at_once("FIXTURE_AT_ONCE", "1"), asked("FIXTURE_THROW", "run");
  TargetRegistry registry;
  const auto model = compile(graph("graph @g(%x: f32[2,1]) -> (%y) { %y = Neg %x }"), registry,
                             {.targets = {"throwing"}, .optimize = false});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto ran = (*model)->run(std::vector<Datum>{*Tensor::zeros(kF32, {2, 3})});
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message(), "input 'x' is declared f32[2,1] and given f32[2,3]: dim 1 differs");
}

// Each segment sees one of them only.
TEST_F(PluginFaultsTest, SymbolsOfInputsAgreeOverSegments) {
  install("throwing");
  TargetRegistry registry;
  const testing::Environment asked("FIXTURE_REFUSE", "Exp");
  const auto model = compile(graph("graph @g(%x: f32[N,1], %z: f32[N,1]) -> (%a, %b) { %a = Neg %x %b = Exp %z }"),
                             registry, {.targets = {"throwing"}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  ASSERT_EQ((*model)->segments().size(), 2u);
  const auto given = [&](int64_t x, int64_t z) {
    const auto ran = (*model)->run(std::vector<Datum>{*Tensor::zeros(kF32, {x, 1}), *Tensor::zeros(kF32, {z, 1})});
    return ran.ok() ? "no error" : ran.error().message();
  };
  EXPECT_EQ(given(3, 3), "no error");
  EXPECT_EQ(given(3, 4), "input 'z' is declared f32[N,1] and given f32[4,1]: N is 3 elsewhere and 4 here");
}

}  // namespace
}  // namespace tenon
