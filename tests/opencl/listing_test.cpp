// The output of `tenon emit`: golden files of the source with the operators next to its lines. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <tenon/compile/snippet_passes.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/str.hpp>

#include "opencl/emitters/emitters.hpp"
#include "opencl/listing.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::HasSubstr;

// A fictitious device, so that the golden files are the same on every machine.
Compiler some_compiler() {
  TargetDescription target;
  target.name = "opencl-some";
  return Compiler(target, **jitter_table(), {.lanes = 4});
}

// A device with sub-groups, for which kernels request a size of 16 items.
Compiler compiler_with_sub_groups() {
  TargetDescription target;
  target.name = "opencl-some";
  target.features = {std::string(kSubGroups), std::string(kSubGroupShuffle)};
  return Compiler(target, **jitter_table(), {.lanes = 4, .work_group = 64, .sub_group_size = 16});
}

std::string listed(std::string_view text, const Compiler& compiler = some_compiler()) {
  auto graph = parse_graph(text);
  if (!graph.ok()) return graph.error().to_string();
  snippet::TokenizeOptions options;
  options.can_emit = [&](const codegen::Signature& s) { return compiler.can_emit(s); };
  options.can_access = [&](ElementType element) { return compiler.can_access(element); };
  PassManager passes;
  if (auto added = passes.add(tokenize_snippets_pass(std::move(options))); !added.ok())
    return added.error().to_string();
  if (auto ran = passes.run(**graph); !ran.ok()) return ran.error().to_string();
  const auto made = listing((*graph)->body(), compiler, "some device");
  return made.ok() ? *made : made.error().to_string();
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = str(TENON_GOLDEN_DIR, "/", name);
  if (std::getenv("TENON_UPDATE_GOLDEN")) std::ofstream(path, std::ios::binary) << text;
  std::stringstream expected;
  expected << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text, expected.str()) << path << " (TENON_UPDATE_GOLDEN=1 rewrites it)";
}

TEST(OpenclListing, OfAProductWithItsEpilogue) {
  expect_golden("gemm_relu.cl", listed("graph @g(%rows: f32[40,9], %weights: f32[9,8]) -> %z {\n %y = MatMul %rows, "
                                       "%weights \"dense\"\n %z = Relu %y \"positive\"\n}"));
}

TEST(OpenclListing, OfAGather) {
  expect_golden(
      "gather.cl",
      listed("graph @g(%table: f32[40,9], %words: i64[3]) -> %rows { %rows = Gather %table, %words \"embed\" }"));
}

// Sums by sub-group functions, a product by shuffles, and the maximum of floats through integers, so that no NaN is
// lost.
TEST(OpenclListing, OfFoldsBySubGroups) {
  expect_golden("folds_by_sub_groups.cl", listed(R"(graph @g(%x: f32[9,200]) -> (%all, %most, %times) {
  %axis = Constant {value = dense<i64[1]: 1>} : i64[1]
  %all = ReduceSum %x, %axis "all"
  %most = ReduceMax %x, %axis "most"
  %times = ReduceProd %x, %axis "times"
})",
                                                 compiler_with_sub_groups()));
}

// Items of adjacent slices are adjacent, and their sub-group adds their sums.
TEST(OpenclListing, OfAProductOfFewRowsBySubGroups) {
  expect_golden("gemv_by_sub_groups.cl",
                listed("graph @g(%row: f32[1,512], %weights: f32[40,512]) -> %y {\n %y = Gemm %row, %weights \"dense\" "
                       "{transB = 1}\n}",
                       compiler_with_sub_groups()));
}

// Every line that computes names its operator; a label cannot end its comment.
TEST(OpenclListing, NamesTheOperatorBesideEachLine) {
  const std::string text = listed(
      "graph @g(%x: f32[1,2,5,5], %p: f32[1,3,3,2]) -> %y { %y = GridSample %x, %p \"warp\\\\\" {mode = \"cubic\"} }");
  std::stringstream lines(text.substr(text.find("void tenon_compute(")));
  std::string line;
  bool inside = false;
  size_t named = 0;
  while (std::getline(lines, line)) {
    inside = inside || line.find("for (long item") != std::string::npos;
    if (!inside || line.find_first_not_of(" {};") == std::string::npos) continue;
    // The first line is the loop over items, which belongs to no operator.
    if (named++ > 0) {
      EXPECT_THAT(line, HasSubstr("// GridSample warp"));
    }
  }
  EXPECT_GT(named, 20u) << text;
  EXPECT_THAT(text, HasSubstr("reads %p"));
  EXPECT_THAT(text, HasSubstr("reads %x"));
  EXPECT_THAT(text, HasSubstr("writes %y"));
  EXPECT_EQ(text.find("warp\\"), std::string::npos);
}

}  // namespace
}  // namespace tenon::opencl::testing
