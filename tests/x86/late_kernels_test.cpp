// Reductions whose axes are an input of the graph, as machine code.
#include <gtest/gtest.h>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/canonical/decompose.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/backend.hpp"
#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

class Counting final : public irgen::SnippetCompiler {
 public:
  explicit Counting(Isa isa) : compiler_(testing::target_of(isa), **jitter_table(), {.contract = false}) {}
  Result<std::shared_ptr<const irgen::SnippetCode>> compile(const snippet::Body& body) override {
    ++compiled;
    return compiler_.compile(body);
  }
  int compiled = 0;

 private:
  Compiler compiler_;
};

class LateKernels : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};

std::unique_ptr<Graph> reduction(std::string_view op, ElementType element, bool keep) {
  const std::string type = element.to_string();
  auto graph = parse_graph(str("graph @net(%x: ", type, "[N,3,19], %axes: i64[K]) -> %y { %y = ", op,
                               " %x, %axes \"late\" {keepdims = ", keep ? 1 : 0,
                               ", noop_with_empty_axes = ", keep ? 1 : 0, "} : ", type, "[*] }"));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *std::move(graph);
}

// The sums of these tests have few terms, each of which adds one rounding of the partial sum.
double tolerance_of(ElementType element) {
  if (element == kF32) return 60 * 0x1p-23;
  return element == kF16 ? 0x1p-9 : element == kBF16 ? 0x1p-6 : 0;
}

TEST_P(LateKernels, EveryReductionOverEveryAxes) {
  std::mt19937 random(5);
  const std::vector<std::vector<int64_t>> values = {{0}, {1}, {-1}, {0, 2}, {2, 1}, {0, 1, 2}, {}};
  int ran = 0;
  for (const snippet::DecomposeRow* row : snippet::all_decompositions()) {
    if (row->value_operand != 1) continue;
    for (const ElementType element : {kF32, kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool}) {
      const bool unsigned_one = element.is_unsigned_int() || element.is_bool();
      for (const bool keep : {false, true}) {
        const auto compiler = std::make_shared<Counting>(GetParam());
        const irgen::SnippetKernels kernels("x86", compiler);
        const auto graph = reduction(row->op, element, keep);
        const auto oracle = Interpreter::prepare(*graph);
        const auto runner = irgen::GraphRunner::prepare(*graph, kernels);
        ASSERT_TRUE(runner.ok()) << runner.error().to_string();
        if ((*runner)->report().late_ops == 0) continue;
        // All axes for f32, some for each other type.
        for (size_t v = 0; v < values.size(); v += element == kF32 ? 1 : 3) {
          const std::vector<int64_t>& axes = values[(v + static_cast<size_t>(ran)) % values.size()];
          const std::vector<Datum> inputs{
              Datum(tenon::testing::random_tensor(random, element, {4, 3, 19}, unsigned_one ? 0 : -1,
                                                  element.is_bool() ? 1 : 3)),
              Datum(Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes))};
          const auto wanted = (*oracle)->run(inputs);
          if (!wanted.ok()) continue;  // the operator does not accept the element type
          const auto got = (*runner)->run(inputs);
          ASSERT_TRUE(got.ok()) << got.error().to_string();
          const double rtol = tolerance_of(element);
          const Comparison same = compare((*got)[0].tensor(), (*wanted)[0].tensor(), {.rtol = rtol, .atol = rtol / 8});
          EXPECT_TRUE(same.equal) << str(row->op, " of ", element, " axes ", axes, ": ") << same.difference;
          ++ran;
        }
        EXPECT_EQ(compiler->compiled, element == kF32 ? 7 : 3) << str(row->op, " of ", element);
      }
    }
  }
  EXPECT_GT(ran, 500);
}

TEST_P(LateKernels, AreTakenByTheTarget) {
  const auto target = create_backend(testing::target_of(GetParam()));
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  const auto refusal = [&](const Graph& graph) {
    const auto reason = (*target)->refuses(*graph.body().begin());
    return reason ? reason->reason : "none";
  };
  EXPECT_EQ(refusal(*reduction("ReduceL2", kF32, true)), "none");
  EXPECT_EQ(refusal(*reduction("ReduceLogSumExp", kF64, true)), "none");
}

INSTANTIATE_TEST_SUITE_P(Both, LateKernels, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
