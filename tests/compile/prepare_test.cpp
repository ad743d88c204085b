// What targets do to the whole graph before operators are placed.
#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::HasSubstr;

class PrepareTest : public testing::PluginTest {
 protected:
  static constexpr std::string_view kGraph = "graph @g(%x: f32[N]) -> (%y) { %a = Relu %x %y = Neg %a }";

  static Tensor output(const CompiledModel& model) {
    const auto made = model.run(std::vector<Datum>{Tensor::of<float>({2}, {1, -2})});
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return (*made)[0].tensor();
  }
};

TEST_F(PrepareTest, TheTargetsPassesSeeTheWholeGraphAndAreReported) {
  install("preparing");
  TargetRegistry registry;
  std::vector<Preparation> preparations;
  auto model = compile(graph(kGraph), registry, {.targets = {"preparing"}, .preparations = &preparations});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  // The Relu runs elsewhere, and was changed all the same.
  EXPECT_TRUE(output(**model).identical(Tensor::of<float>({2}, {-2, -0.0f})));
  ASSERT_EQ(preparations.size(), 1u);
  EXPECT_EQ(preparations[0].target, "preparing");
  EXPECT_THAT(preparations[0].passes.to_string(), HasSubstr("double-relus"));
  EXPECT_EQ(preparations[0].before->body().op_count(), 2u);
  EXPECT_EQ(preparations[0].after->body().op_count(), 3u);
}

TEST_F(PrepareTest, NothingToReportWhereNothingChanges) {
  install("preparing");
  TargetRegistry registry;
  std::vector<Preparation> preparations;
  auto model = compile(graph("graph @g(%x: f32[N]) -> (%y) { %y = Neg %x }"), registry,
                       {.targets = {"preparing"}, .preparations = &preparations});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_TRUE(preparations.empty());
}

TEST_F(PrepareTest, TargetsThatNobodyWantsPrepareNothing) {
  install("preparing");
  TargetRegistry registry;
  auto model = compile(graph(kGraph), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_TRUE(output(**model).identical(Tensor::of<float>({2}, {-1, -0.0f})));
}

}  // namespace
}  // namespace tenon
