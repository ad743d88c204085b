#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::HasSubstr;

class TargetRegistryTest : public testing::PluginTest {
 protected:
  static const TargetStatus* find(const std::vector<TargetStatus>& all, std::string_view name) {
    for (const TargetStatus& status : all) {
      if (status.name == name) return &status;
    }
    return nullptr;
  }
};

TEST_F(TargetRegistryTest, TheReferenceIsAlwaysThere) {
  TargetRegistry registry;
  auto backend = registry.open("reference");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  EXPECT_EQ((*backend)->name(), "reference");
  const auto all = registry.targets();
  ASSERT_NE(find(all, "reference"), nullptr);
  EXPECT_TRUE(find(all, "reference")->available);
  // What else this machine has may be better.
  const auto* best = find(all, registry.best_target());
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(best->available);
}

TEST_F(TargetRegistryTest, ABrokenFileOfThatNameDoesNotTakeTheReferenceAway) {
  write("reference.yaml", "tenon_target: 1\nname: reference\nplugin: [");
  EXPECT_TRUE(TargetRegistry().open("reference").ok());
  write("reference.yaml", "tenon_target: 1\nname: reference\nplugin: other\n");
  auto backend = TargetRegistry().open("reference");
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->description().plugin, "reference");
}

TEST_F(TargetRegistryTest, DescriptionsJoinTheirPlugins) {
  const auto path = describe("slow", "reference", "operators: {Neg: none}\n");
  describe("far", "nowhere-to-be-found");
  describe("broken", "reference", "colour: red\n");
  TargetRegistry registry;
  const auto all = registry.targets();
  ASSERT_TRUE(find(all, "slow") && find(all, "far") && find(all, "broken"));
  EXPECT_TRUE(find(all, "slow")->available);
  EXPECT_EQ(find(all, "slow")->yaml, path);
  EXPECT_FALSE(find(all, "far")->available);
  EXPECT_THAT(find(all, "far")->reason, HasSubstr("nowhere-to-be-found"));
  EXPECT_FALSE(find(all, "broken")->available);
  EXPECT_THAT(find(all, "broken")->reason, HasSubstr("colour"));

  for (const std::string& name : {std::string("slow"), path}) {
    auto backend = registry.open(name);
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    EXPECT_EQ((*backend)->name(), "slow");
    EXPECT_FALSE((*backend)->description().limits("Neg")->supported);
  }
  auto far = registry.open("far");
  ASSERT_FALSE(far.ok());
  EXPECT_THAT(far.error().message(), HasSubstr("nowhere-to-be-found"));
  EXPECT_FALSE(registry.open("broken").ok());
}

TEST_F(TargetRegistryTest, WhatIsLimitedIsDefined) {
  const auto path = describe("board", "reference", "operators:\n  Relu: any\n  Convv: {kernel: {max: 3}}\n");
  const auto said = [&](const std::string& text) {
    describe("board", "reference", text);
    const auto backend = TargetRegistry().open("board");
    return backend.ok() ? "" : backend.error().message();
  };
  const auto refused = TargetRegistry().open("board");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            path +
                ":6:3: neither Tenon nor plugin 'reference' defines an operator 'Convv'; did "
                "you mean 'Conv'?");
  EXPECT_EQ(find(TargetRegistry().targets(), "board")->reason, refused.error().message());
  EXPECT_THAT(said("operators: {nobody.MakesThis: none}\n"), HasSubstr(":4:13: neither Tenon nor plugin"));
  const std::string misspelt = said("operators: {Conv: {kernal: {max: 3}}}\n");
  EXPECT_THAT(misspelt,
              HasSubstr(":4:20: 'kernal' means nothing for Conv, where [kernel, stride, dilation, pad, groups, "
                        "batch, channels, dims, auto_pad, "));
  EXPECT_THAT(misspelt, HasSubstr("] can be limited; did you mean 'kernel'?"));
  EXPECT_EQ(said("operators: {Conv: {kernel: {max: 3}, group: 1, channels: any}}\n"), "");
  EXPECT_THAT(said("layouts: {wieght: OIHW}\n"),
              HasSubstr(":4:11: unknown key \"wieght\" in 'layouts'; did you mean 'weight'?"));
  EXPECT_THAT(said("options: {fuse: true}\n"), HasSubstr(":4:11: unknown key \"fuse\" in 'options'"));
  // What is there without any file stays there.
  describe("reference", "reference", "operators: {Convv: none}\n");
  EXPECT_TRUE(TargetRegistry().open("reference").ok());
}

TEST_F(TargetRegistryTest, WordsMeanSomethingForTheOperatorThatTheyLimit) {
  const auto said = [&](const std::string& limits) {
    describe("board", "reference", "operators:\n  " + limits + "\n");
    const auto backend = TargetRegistry().open("board");
    return backend.ok() ? "" : backend.error().message();
  };
  EXPECT_THAT(said("Relu: {batch: 1, groups: 1}"),
              HasSubstr(":5:20: 'groups' means nothing for Relu, where [batch, channels, dims] can be limited"));
  for (const char* word : {"kernel", "stride", "dilation", "pad"}) {
    EXPECT_THAT(said(str("MatMul: {", word, ": any}")), HasSubstr(str("'", word, "' means nothing for MatMul")));
  }
  EXPECT_THAT(said("AveragePool: {groups: 1}"), HasSubstr("'groups' means nothing for AveragePool"));
  EXPECT_EQ(said("AveragePool: {kernel: 1, stride: 1, dilation: 1, pad: 0, channels: 4}"), "");
  EXPECT_THAT(said("SequenceAt: {batch: 1}"), HasSubstr("'batch' means nothing for SequenceAt"));
  EXPECT_THAT(said("RandomNormal: {dims: 1}"), HasSubstr("'dims' means nothing for RandomNormal"));
  EXPECT_EQ(said("Identity: {dims: {max: 4}}"), "");
}

TEST_F(TargetRegistryTest, TheHighestRankThatIsAvailableIsBest) {
  describe("middle", "reference", "rank: 500\n");
  describe("low", "reference", "rank: 400\n");
  describe("none", "reference");
  EXPECT_EQ(TargetRegistry().best_target(), "middle");
  describe("high", "nowhere-to-be-found", "rank: 999\n");
  EXPECT_EQ(TargetRegistry().best_target(), "middle");
  describe("also", "reference", "rank: 500\n");
  EXPECT_EQ(TargetRegistry().best_target(), "also");
}

TEST_F(TargetRegistryTest, AnUnknownNameListsWhatThereIs) {
  auto missing = TargetRegistry().open("refrence");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::not_found);
  EXPECT_THAT(missing.error().message(), HasSubstr("did you mean 'reference'"));
  auto no_file = TargetRegistry().open("./nothing-here.yaml");
  ASSERT_FALSE(no_file.ok());
  EXPECT_THAT(no_file.error().message(), HasSubstr("nothing-here.yaml"));
}

}  // namespace
}  // namespace tenon
