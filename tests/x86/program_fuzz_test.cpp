// Whole graphs as programs: snippets on memory that the program plans, with results in place of operands. Random graphs
// are compared with the reference, bit for bit except for the bits of a NaN.
//
// TENON_FUZZ_SEEDS sets the number of seeds of each test, TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <support_lib/environment.hpp>
#include <support_lib/on_reference.hpp>
#include <support_lib/random_dag.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::on_reference;

// The kernels of snippets; counts those with results that became parts of other tensors.
class CountingKernels final : public irgen::KernelSource {
 public:
  explicit CountingKernels(std::shared_ptr<Compiler> compiler) : snippets_("x86", std::move(compiler)) {}
  std::string_view name() const override { return snippets_.name(); }
  Result<irgen::KernelChoice> kernel(const irgen::KernelRequest& request) const override {
    auto choice = snippets_.kernel(request);
    parts += choice.ok() && std::ranges::any_of(request.result_wholes, &Shape::ranked);
    return choice;
  }
  mutable size_t parts = 0;

 private:
  const irgen::SnippetKernels snippets_;
};

class ProgramFuzz : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
    compiler_ = std::make_shared<Compiler>(testing::target_of(GetParam()), **jitter_table(),
                                           CompilerOptions{.contract = false});
  }

  // Runs twice, the second time on memory that the first run has written.
  void expect_same(const Graph& graph, const Graph& fused, const std::vector<Datum>& inputs) {
    const std::vector<Tensor> expected = on_reference(graph, inputs);
    const CountingKernels kernels(compiler_);
    const auto runner = irgen::GraphRunner::prepare(fused, kernels);
    ASSERT_TRUE(runner.ok()) << runner.error().to_string() << "\n" << print(fused);
    parts_ += kernels.parts;
    for (int run = 0; run < 2; ++run) {
      const auto got = (*runner)->run(inputs);
      ASSERT_TRUE(got.ok()) << got.error().to_string() << "\n" << print(fused);
      for (size_t i = 0; i < got->size(); ++i) {
        const Comparison comparison = compare((*got)[i].tensor(), expected[i], {.rtol = 0, .atol = 0});
        ASSERT_TRUE(comparison.equal) << "run " << run << ", output " << i << ": " << comparison.difference << "\n"
                                      << print(graph) << print(fused);
      }
    }
  }

  static bool stores_again(const Op& op) {
    if (!isa<snippet::Subgraph>(op)) return false;
    std::set<const Value*> values;
    for (size_t r = 0; r < op.result_count(); ++r) values.insert(op.region(0).output(r));
    return values.size() < op.result_count();
  }

  std::shared_ptr<Compiler> compiler_;
  size_t parts_ = 0;
};

TEST_P(ProgramFuzz, RandomGraphsHaveTheBitsOfTheReference) {
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(60);
  size_t again = 0;
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed,
                                   .exact = true,
                                   .lanes = lanes_of(GetParam(), kF32),
                                   .crops = true,
                                   .joins = true,
                                   .again = true});
    const auto graph = dag.build();
    const std::vector<Datum> inputs = dag.inputs(*graph);
    const auto fused = graph->clone();
    const auto made = snippet::tokenize_snippets(
        *fused, {.can_emit = [&](const codegen::Signature& s) { return compiler_->can_emit(s); },
                 .stores_again = [](const Value&) { return true; }});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (const Op& op : fused->body()) again += stores_again(op);
    expect_same(*graph, *fused, inputs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(parts_, seeds / 10);
  EXPECT_GE(again, seeds / 10);
}

// The last snippet reads %f twice: before the loop over rows to compute %c, and in it to compute %w.
TEST_P(ProgramFuzz, ResultsOfFewerDimsDoNotLieOnWhatTheRestReads) {
  const auto fused = parse_graph(R"(graph @g(%x: f32[1,7], %big: f32[15,7]) -> (%c, %w) {
  %f = snippet.Subgraph %x ((%x0: f32[1,7]) -> %f0 {
    %f0 = Abs %x0 : f32[1,7]
  }) : f32[1,7]
  %c, %w = snippet.Subgraph %f, %big ((%f1: f32[1,7], %big1: f32[15,7]) -> (%c1, %w1) {
    %c1 = Neg %f1 : f32[1,7]
    %w1 = Add %big1, %f1 : f32[15,7]
  }) : f32[1,7], f32[15,7]
})");
  ASSERT_TRUE(fused.ok()) << fused.error().to_string();
  std::mt19937 random(1);
  const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {1, 7})),
                                  Datum(tenon::testing::random_tensor(random, kF32, {15, 7}))};
  expect_same(**fused, **fused, inputs);
}

INSTANTIATE_TEST_SUITE_P(Both, ProgramFuzz, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
