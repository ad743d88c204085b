#include <tenon/target/load.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <support_lib/doc_example.hpp>

#include "target_files.hpp"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every file of tests/fixtures/yaml/bad opens with a comment that holds the error it must give, without the file's
// name. TENON_UPDATE_GOLDEN=1 rewrites these comments, for review in the diff.
class BadFile : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(BadFile, GivesItsError) {
  const auto text = test::read_bytes(GetParam());
  const auto line_end = text.find('\n');
  ASSERT_TRUE(text.starts_with("# expect:")) << GetParam();
  const auto expected = std::string(trim(text.substr(9, line_end - 9)));
  const auto target = parse_target(text, "f");
  ASSERT_FALSE(target.ok()) << GetParam();
  auto actual = target.error().message();
  ASSERT_THAT(actual, ::testing::MatchesRegex("f:[1-9][0-9]*:[1-9][0-9]*: .+")) << GetParam();
  actual = actual.substr(2);
  if (std::getenv("TENON_UPDATE_GOLDEN")) {
    test::write_bytes(GetParam(), "# expect: " + actual + text.substr(line_end));
  } else {
    EXPECT_EQ(actual, expected) << GetParam();
  }
}
INSTANTIATE_TEST_SUITE_P(Golden, BadFile, ::testing::ValuesIn(test::yaml_files("tests/fixtures/yaml/bad")),
                         [](const auto& info) { return info.param.stem().string(); });

TEST(LoadTarget, ShippedFilesLoadUnderTheirNames) {
  const auto paths = test::yaml_files("targets");
  EXPECT_GE(paths.size(), 9u);
  for (const auto& path : paths) {
    const auto target = load_target(path.string());
    ASSERT_TRUE(target.ok()) << target.error().to_string();
    EXPECT_EQ(target->name, path.stem().string());
    EXPECT_EQ(target->source, path.string());
  }
}

TEST(LoadTarget, VtaCarriesTheSampleMachine) {
  const auto vta = load_target(test::kSource + "/targets/vta-default.yaml");
  ASSERT_TRUE(vta.ok()) << vta.error().to_string();
  EXPECT_EQ(vta->plugin, "vta");
  EXPECT_EQ(vta->driver, "embedded");
  EXPECT_EQ(vta->clock_hz, 100'000'000u);
  // Element sizes follow from batch, block and the widths; depths are powers of two.
  const auto batch = *vta->options.integer("batch", 1, 64), block = *vta->options.integer("block", 1, 256);
  const auto bytes = [&](const char* key) { return *vta->options.quantity(key, Unit::bits, 8, 32) / 8; };
  EXPECT_EQ(vta->memory("inp")->element_bytes, batch * block * bytes("inp_width"));
  EXPECT_EQ(vta->memory("wgt")->element_bytes, block * block * bytes("wgt_width"));
  EXPECT_EQ(vta->memory("acc")->element_bytes, batch * block * bytes("acc_width"));
  EXPECT_EQ(vta->memory("acc")->size_bytes / vta->memory("acc")->element_bytes,
            vta->memory("out")->size_bytes / vta->memory("out")->element_bytes);
  EXPECT_EQ(vta->engine("gemm")->macs_per_cycle, static_cast<uint64_t>(batch * block * block));
  EXPECT_EQ(vta->memory("dram")->bandwidth, (Bandwidth{8, Bandwidth::Per::cycle}));
  EXPECT_EQ(vta->memory("dram")->latency_cycles, 64u);
}

TEST(LoadTarget, NvdlaBuffersAreBanksTimesEntriesTimesWidth) {
  const auto full = load_target(test::kSource + "/targets/nvdla-full.yaml");
  const auto small = load_target(test::kSource + "/targets/nvdla-small.yaml");
  ASSERT_TRUE(full.ok() && small.ok());
  EXPECT_EQ(full->memory("cbuf")->size_bytes, 16u * 256 * 128);
  EXPECT_EQ(small->memory("cbuf")->size_bytes, 32u * 512 * 8);
  EXPECT_EQ(full->memory("cbuf")->banks, 16u);
  EXPECT_EQ(small->memory("cbuf")->banks, 32u);
}

TEST(ParseTarget, LeavesOutWhatTheFileLeavesOut) {
  const auto target = parse_target(test::kHead, "f");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  TargetDescription expected;
  expected.name = "board";
  expected.plugin = "vta";
  EXPECT_EQ(*target, expected);
}

TEST(ParseTarget, LayoutsOfValuesByAnyName) {
  const auto target = parse_target(
      std::string(test::kHead) + "value_layouts: {conv1_out: NHWC, \"layer1/conv 0\": \"NCHW{16c}\"}\n", "f");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(target->value_layouts,
            (std::map<std::string, std::string>{{"conv1_out", "NHWC"}, {"layer1/conv 0", "NCHW{16c}"}}));
  const auto again = parse_target(to_yaml(*target), "g");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, *target);
  const auto wrong = parse_target(std::string(test::kHead) + "value_layouts:\n  x: [NHWC]\n", "f.yaml");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("f.yaml:5:6"));
}

TEST(ParseTarget, TakesDosLineEndsAndABlockForm) {
  const auto target = parse_target(
      "tenon_target: 1\r\nname: board\r\nplugin: 'vta'\r\nmemories:\r\n  dram:\r\n    size: \"1 KiB\"\r\n", "f");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(target->memory("dram")->size_bytes, 1024u);
}

TEST(ParseTarget, ReadsTheExampleOfTheDocumentation) {
  const auto target = parse_target(test::doc_example("target-yaml.md", "yaml"), "target-yaml.md");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_EQ(target->name, "vta-small-board");
}

TEST(ParseTarget, SaysWhichVersionItReads) {
  const auto target = parse_target("tenon_target: 2\nname: b\nlater: 1\n", "f.yaml");
  ASSERT_FALSE(target.ok());
  EXPECT_THAT(target.error().message(), HasSubstr("version 2"));
}

class FindTarget : public test::Scratch {
 protected:
  void add(const std::string& folder, const std::string& file, const std::string& name, const std::string& more = "") {
    std::filesystem::create_directories(folder_ / folder);
    test::write_bytes(folder_ / folder / file, "tenon_target: 1\nname: " + name + "\nplugin: vta\n" + more);
  }
};

TEST_F(FindTarget, FirstFolderWins) {
  add("a", "one.yaml", "one", "clock: 1 Hz\n");
  add("b", "one.yaml", "one", "clock: 2 Hz\n");
  add("b", "two.yaml", "two");
  const std::vector<std::string> folders{path("absent"), path("a"), path("b")};
  EXPECT_EQ(find_target("one", folders)->clock_hz, 1u);
  EXPECT_EQ(find_target("two", folders)->name, "two");
  const auto missing = find_target("tow", folders);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::not_found);
  EXPECT_THAT(missing.error().message(), HasSubstr("no target 'tow' in ["));
  EXPECT_THAT(missing.error().message(), HasSubstr("did you mean 'two'?"));
  EXPECT_THAT(find_target("x", {}).error().message(), HasSubstr("in any folder"));
}

TEST_F(FindTarget, PathsBypassTheFolders) {
  add("a", "any name.yaml", "one");
  add("a", "two.yml", "two");
  EXPECT_EQ(find_target(path("a/any name.yaml"), {})->name, "one");
  EXPECT_EQ(find_target(path("a/two.yml"), {})->name, "two");
  EXPECT_EQ(find_target("absent.yaml", {path("a")}).error().code(), Code::not_found);
  EXPECT_FALSE(find_target(path("a"), {}).ok());
}

TEST_F(FindTarget, FileAndTargetMustAgree) {
  add("a", "one.yaml", "other");
  EXPECT_THAT(find_target("one", {path("a")}).error().message(), HasSubstr("holds the target 'other'; rename"));
}

TEST_F(FindTarget, ListHasGoodAndBadOnce) {
  add("a", "one.yaml", "one", "clock: 1 Hz\n");
  add("a", "bad.yaml", "bad", "nonsense: 1\n");
  add("b", "one.yaml", "one", "clock: 2 Hz\n");
  add("b", "zed.yaml", "zed");
  add("b", "notes.txt", "notes");
  const auto targets = list_targets({path("a"), path("absent"), path("b")});
  std::vector<std::string> names;
  for (const auto& target : targets) names.push_back(target.name);
  EXPECT_THAT(names, ElementsAre("bad", "one", "zed"));
  EXPECT_FALSE(targets[0].description.ok());
  EXPECT_EQ(targets[1].description->clock_hz, 1u);
  EXPECT_EQ(targets[2].path, path("b/zed.yaml"));
}

TEST_F(FindTarget, EnvironmentComesBeforeTheInstallation) {
  add("a", "reference.yaml", "reference", "clock: 7 Hz\n");
  ::setenv("TENON_TARGET_PATH", ("relative:" + path("a") + "::" + path("absent")).c_str(), 1);
  const auto folders = target_search_paths();
  const auto found = find_target("reference");
  ::unsetenv("TENON_TARGET_PATH");
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0], path("a"));
  EXPECT_EQ(folders[1], path("absent"));
  for (const auto& folder : folders) EXPECT_TRUE(folder.starts_with('/')) << folder;
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->clock_hz, 7u);
}

// The build tree has the layout of an installation, so the files are found from the test program and from the library.
TEST(SearchPaths, BuildTreeServesTheShippedTargets) {
  ::unsetenv("TENON_TARGET_PATH");
  const auto folders = target_search_paths();
  ASSERT_EQ(folders.size(), 1u) << "program and library name one folder";
  EXPECT_THAT(folders[0], ::testing::EndsWith("/share/tenon/targets"));
  for (const char* name : {"reference", "x86-avx2", "x86-avx512", "opencl-cpu", "opencl-gpu", "vta-default",
                           "nvdla-small", "nvdla-full", "template"}) {
    const auto target = find_target(name);
    EXPECT_TRUE(target.ok()) << target.error().to_string();
  }
  for (const auto& target : list_targets()) EXPECT_TRUE(target.description.ok()) << target.path;
}

}  // namespace
}  // namespace tenon
