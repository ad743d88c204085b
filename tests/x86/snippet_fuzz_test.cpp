// Random graphs as machine code compared with the reference: every snippet on buffers that end at guard pages, with its
// work divided into pieces, on both instruction sets.
//
// TENON_FUZZ_SEEDS sets the number of seeds of each test, TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>

#include <cstdlib>

#include <support_lib/environment.hpp>
#include <support_lib/on_reference.hpp>
#include <support_lib/random_dag.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/guarded_graph.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::on_reference;
using testing::GuardedGraph;

class SnippetFuzz : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  int lanes() const { return lanes_of(GetParam(), kF32); }
  static snippet::TokenizeOptions again() {
    snippet::TokenizeOptions options;
    options.stores_again = [](const Value&) { return true; };
    return options;
  }
  // Other seeds may be too few for kernels of all forms.
  static bool are_usual_seeds() { return !std::getenv("TENON_FUZZ_FIRST") && !std::getenv("TENON_FUZZ_SEEDS"); }
};

// Without contraction and reordered sums, results are equal bit for bit, except for the bits of a NaN.
TEST_P(SnippetFuzz, ExactOperatorsHaveTheBitsOfTheReference) {
  GuardedGraph runner(testing::target_of_machine(GetParam()), {.contract = false, .bounds = false});
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(60);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed, .exact = true, .lanes = lanes(), .crops = true, .again = true});
    auto graph = dag.build();
    const std::vector<Datum> inputs = dag.inputs(*graph);
    const std::vector<Tensor> expected = on_reference(*graph, inputs);
    auto fused = graph->clone();
    runner.tokenize(*fused, again());
    ASSERT_TRUE(verify(*fused).ok()) << verify(*fused).error().to_string();
    std::mt19937 random(seed);
    const std::vector<Tensor> got = runner.run(*fused, inputs, random);
    for (size_t i = 0; i < got.size(); ++i) {
      const Comparison comparison = compare(got[i], expected[i], {.rtol = 0, .atol = 0});
      ASSERT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference << "\n"
                                    << print(*graph) << print(*fused);
    }
  }
  EXPECT_GT(runner.snippets, seeds / 2);
  EXPECT_GT(runner.non_temporal, seeds / 20);
  if (are_usual_seeds()) {
    EXPECT_GT(runner.whole_rows, 0u);
    EXPECT_GT(runner.joined_rows, 0u);
    EXPECT_GT(runner.any_rows, 0u);
    EXPECT_GT(runner.in_stages, 0u);
    EXPECT_GT(runner.crops, seeds / 20);
    EXPECT_GT(runner.written_parts, seeds / 10);
  }
  RecordProperty("whole_rows", static_cast<int>(runner.whole_rows));
  RecordProperty("joined_rows", static_cast<int>(runner.joined_rows));
  RecordProperty("any_rows", static_cast<int>(runner.any_rows));
  RecordProperty("snippets", static_cast<int>(runner.snippets));
}

// With functions of limited accuracy, reordered sums and contraction, each result of each snippet is within the bounds
// that follow from the accuracies stated by the rows of the emitters.
TEST_P(SnippetFuzz, SmoothOperatorsKeepToTheStatedAccuracies) {
  GuardedGraph runner(testing::target_of_machine(GetParam()), {});
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(60);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed, .exact = false, .lanes = lanes(), .crops = true, .again = true});
    auto graph = dag.build();
    const std::vector<Datum> inputs = dag.inputs(*graph);
    runner.tokenize(*graph, again());
    std::mt19937 random(seed);
    runner.run(*graph, inputs, random);
    ASSERT_FALSE(HasFatalFailure()) << print(*graph);
  }
  EXPECT_GT(runner.snippets, seeds / 2);
  EXPECT_GT(runner.non_temporal, seeds / 20);
  if (are_usual_seeds()) {
    EXPECT_GT(runner.whole_rows, 0u);
    EXPECT_GT(runner.joined_rows, 0u);
    EXPECT_GT(runner.any_rows, 0u);
    EXPECT_GT(runner.in_stages, 0u);
    EXPECT_GT(runner.merged, 0u);
    // Only a small part of the results has loose bounds or none. With few other seeds, one large graph may be half.
    EXPECT_LT(runner.open + runner.loose, runner.elements / 20);
  }
  RecordProperty("merged", static_cast<int>(runner.merged));
  RecordProperty("whole_rows", static_cast<int>(runner.whole_rows));
  RecordProperty("joined_rows", static_cast<int>(runner.joined_rows));
  RecordProperty("any_rows", static_cast<int>(runner.any_rows));
  RecordProperty("snippets", static_cast<int>(runner.snippets));
}

INSTANTIATE_TEST_SUITE_P(Both, SnippetFuzz, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
