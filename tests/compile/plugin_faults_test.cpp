// The errors of a model when a plugin's code breaks its contract at run time.
#include <tenon/compile/compile.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PluginFaultsTest : public testing::PluginTest {
 protected:
  void expect_faults_named() {
    install("throwing");
    TargetRegistry registry;
    // The faulty value is read by a second segment, and is an output.
    const auto model = compile(graph("graph @g(%x: f32[2,1]) -> (%a, %y) { %a = Neg %x %y = Exp %a }"), registry,
                               {.targets = {"throwing"}, .optimize = false});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const std::vector<Datum> inputs{Tensor::of<float>({2, 1}, {1, -2})};
    ASSERT_TRUE((*model)->run(inputs).ok());
    const std::pair<const char*, const char*> cases[] = {
        {"made extents", "output 'a' is declared f32[2,1] and made as f32[7]: another rank"},
        {"made element", "output 'a' is declared f32[2,1] and made as f64[2,1]"},
        {"made nothing", "output 'a' is declared f32[2,1] and made as nothing"}};
    for (const auto& [what, sentence] : cases) {
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
