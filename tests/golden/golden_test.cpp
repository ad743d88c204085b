#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include <golden/golden.hpp>
#include <support_lib/test_ops.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

Result<void> run_registered(Graph& graph, std::span<const std::string> names) {
  PassManager manager;
  TENON_OK(manager.add_all({names.begin(), names.end()}));
  PassOptions options;
  options.verify_each = true;
  TENON_OK(manager.run(graph, options));
  return {};
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, BecomesWhatIsWritten) {
  register_test_ops();
  const std::string path = str(TENON_GOLDEN_DIR, "/", GetParam());
  auto golden = read_golden(slurp(path));
  ASSERT_TRUE(golden.ok()) << path << ": " << golden.error().to_string();
  const std::string output = golden_output(*golden, run_registered);
  if (output == golden->expected) return;
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  if (!update || std::string_view(update) != "1") {
    FAIL() << path << " gives\n"
           << output << "instead of\n"
           << golden->expected << "(TENON_UPDATE_GOLDEN=1 rewrites the file)";
  }
  std::ofstream(path, std::ios::binary) << golden_text(*golden, output);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(golden_files(TENON_GOLDEN_DIR)), test_name);

Result<void> no_passes(Graph&, std::span<const std::string>) { return {}; }

TEST(GoldenDriver, ReadsHeadProgramAndExpectation) {
  const auto golden = read_golden("# why\n# passes: a, b-c ,\ngraph() -> () {}\n----\nlower\n");
  ASSERT_TRUE(golden.ok());
  EXPECT_EQ(golden->passes, (std::vector<std::string>{"a", "b-c"}));
  EXPECT_EQ(golden->expected, "lower\n");
  EXPECT_EQ(golden_text(*golden, "new\n"), "# why\n# passes: a, b-c ,\ngraph() -> () {}\n----\nnew\n");
  EXPECT_THAT(read_golden("# passes:\ngraph() -> () {}\n").error().message(), HasSubstr("----"));
  EXPECT_THAT(read_golden("graph() -> () {}\n----\n").error().message(), HasSubstr("# passes:"));
}

TEST(GoldenDriver, GivesThePassesTheirNamesAndShowsTheirErrors) {
  const auto golden = read_golden("# passes: one, two\ngraph(%x: f32[2]) -> %x {}\n----\n");
  std::vector<std::string> seen;
  const auto rename = [&](Graph& graph, std::span<const std::string> names) -> Result<void> {
    seen.assign(names.begin(), names.end());
    graph.set_name("done");
    return {};
  };
  EXPECT_EQ(golden_output(*golden, rename), "graph @done(%x: f32[2]) -> %x {}\n");
  EXPECT_EQ(seen, golden->passes);
  const auto fail = [](Graph&, std::span<const std::string>) -> Result<void> {
    return error(Code::unsupported, "not today").with_frame("pass 'one'");
  };
  EXPECT_EQ(golden_output(*golden, fail), "error: not today\n  in pass 'one'\n");
}

TEST(GoldenDriver, APassThatBreaksTheGraphIsAnError) {
  const auto golden = read_golden("# passes: one\ngraph(%x: f32[2]) -> %x {}\n----\n");
  const auto drop_name = [](Graph& graph, std::span<const std::string>) -> Result<void> {
    graph.body().set_outputs(std::vector<Value*>{graph.body().input(0)}, {""});
    return {};
  };
  EXPECT_THAT(golden_output(*golden, drop_name), HasSubstr("after the passes"));
  EXPECT_EQ(golden_output(*golden, no_passes), "graph (%x: f32[2]) -> %x {}\n");
}

}  // namespace
}  // namespace tenon::testing
