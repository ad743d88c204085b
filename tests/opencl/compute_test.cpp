// Compute kernels compared with the reference: one graph per case, with values and extents that reach the ends of
// tiles.
#include <gmock/gmock.h>

#include "compute_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::HasSubstr;

TEST_P(OpenclCompute, IsTheReference) { expect_reference(GetParam()); }

constexpr double kSums = 2e-5;  // sums of some hundred products in another order

const ComputeCase kProducts[] = {
    {"MatMulTiles", "graph @g(%a: f32[19,33], %b: f32[33,37]) -> %y { %y = MatMul %a, %b }", kSums},
    {"MatMulBatches", "graph @g(%a: f32[2,1,5,7], %b: f32[3,7,18]) -> %y { %y = MatMul %a, %b }", kSums},
    {"MatMulRowByMatrix", "graph @g(%a: f32[40], %b: f32[2,40,3]) -> %y { %y = MatMul %a, %b }", kSums},
    {"MatMulMatrixByColumn", "graph @g(%a: f32[2,6,40], %b: f32[40]) -> %y { %y = MatMul %a, %b }", kSums},
    {"MatMulIntegers", "graph @g(%a: i32[9,5], %b: i32[5,17]) -> %y { %y = MatMul %a, %b }"},
    {"MatMulDoubles", "graph @g(%a: f64[9,5], %b: f64[5,17]) -> %y { %y = MatMul %a, %b }", 1e-12},
    {"MatMulHalves", "graph @g(%a: f16[9,20], %b: f16[20,17]) -> %y { %y = MatMul %a, %b }", 2e-3},
    {"Gemm",
     "graph @g(%a: f32[9,21], %b: f32[21,18], %c: f32[18]) -> %y { %y = Gemm %a, %b, %c {alpha = 0.5, beta = "
     "2.0} }",
     kSums},
    {"GemmTransposed",
     "graph @g(%a: f32[37,9], %b: f32[21,37], %c: f32[9,1]) -> %y { %y = Gemm %a, %b, %c {transA = "
     "1, transB = 1} }",
     kSums},
    {"GemmOfPackedColumns", "graph @g(%a: f32[70,37], %b: f32[21,37]) -> %y { %y = Gemm %a, %b {transB = 1} }", kSums},
    {"GemmOfOneRow", "graph @g(%a: f32[1,600], %b: f32[600,1030]) -> %y { %y = Gemm %a, %b }", 1e-4},
    {"GemmOfColumns", "graph @g(%a: f32[9,37], %b: f32[21,37]) -> %y { %y = Gemm %a, %b {transB = 1} }", kSums},
};
INSTANTIATE_TEST_SUITE_P(Products, OpenclCompute, ::testing::ValuesIn(kProducts), name_of);

const ComputeCase kWindows[] = {
    {"Conv",
     "graph @g(%x: f32[2,3,11,37], %w: f32[9,3,3,3], %b: f32[9]) -> %y { %y = Conv %x, %w, %b {pads = [1, 1, 1, "
     "1]} }",
     kSums},
    {"ConvStrides",
     "graph @g(%x: f32[1,4,13,14], %w: f32[6,2,3,2]) -> %y { %y = Conv %x, %w {strides = [2, 3], dilations "
     "= [2, 1], group = 2, pads = [0, 1, 2, 1]} }",
     kSums},
    {"ConvPlain", "graph @g(%x: f32[2,5,7,9], %w: f32[11,5,1,1]) -> %y { %y = Conv %x, %w }", kSums},
    {"ConvDepthwise",
     "graph @g(%x: f32[1,6,9,20], %w: f32[6,1,3,3]) -> %y { %y = Conv %x, %w {group = 6, auto_pad = "
     "\"SAME_UPPER\"} }",
     kSums},
    {"ConvDepthwiseSteps",
     "graph @g(%x: f32[2,5,13,37], %w: f32[10,1,3,4], %b: f32[10]) -> %y { %y = Conv %x, %w, %b {group = 5, strides = "
     "[2, 2], dilations = [1, 3], pads = [2, 1, 0, 7]} }",
     kSums},
    // Longer than a job's block, and shorter than a vector.
    {"ConvDepthwiseLine",
     "graph @g(%x: f32[1,3,40001], %w: f32[3,1,5]) -> %y { %y = Conv %x, %w {group = 3, strides = [3]} }", kSums},
    {"ConvDepthwiseSmall",
     "graph @g(%x: f64[2,7,3,2], %w: f64[7,1,3,3]) -> %y { %y = Conv %x, %w {group = 7, pads = [1, 1, 1, 1]} }", 1e-12},
    {"ConvLine", "graph @g(%x: f32[2,3,40], %w: f32[4,3,5]) -> %y { %y = Conv %x, %w }", kSums},
    {"ConvCube",
     "graph @g(%x: f32[1,2,5,6,7], %w: f32[3,2,2,3,2]) -> %y { %y = Conv %x, %w {pads = [1, 0, 1, 0, 1, 0]} "
     "}",
     kSums},
    {"ConvTranspose",
     "graph @g(%x: f32[2,4,5,6], %w: f32[4,3,3,3], %b: f32[3]) -> %y { %y = ConvTranspose %x, %w, %b "
     "{strides = [2, 3], pads = [1, 0, 0, 1], output_padding = [1, 2]} }",
     kSums},
    {"ConvTransposeGroups",
     "graph @g(%x: f32[1,4,9], %w: f32[4,2,3]) -> %y { %y = ConvTranspose %x, %w {group = 2, "
     "dilations = [2]} }",
     kSums},
    {"MaxPool",
     "graph @g(%x: f32[2,3,9,10]) -> (%y, %i) { %y, %i = MaxPool %x {kernel_shape = [3, 2], strides = [2, 2], "
     "pads = [1, 0, 1, 1], storage_order = 1} }"},
    {"MaxPoolBytes",
     "graph @g(%x: i8[1,3,9]) -> %y { %y = MaxPool %x {kernel_shape = [4], dilations = [2], ceil_mode = "
     "1} }"},
    {"MaxPoolPlanes",
     "graph @g(%x: f32[2,3,19,50]) -> %y { %y = MaxPool %x {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, "
     "1]} }"},
    {"MaxPoolLine",
     "graph @g(%x: f64[1,2,30000]) -> %y { %y = MaxPool %x {kernel_shape = [3], dilations = [5], pads = [4, 2]} }"},
    {"MaxPoolCube", "graph @g(%x: f32[1,2,4,5,6]) -> %y { %y = MaxPool %x {kernel_shape = [2, 3, 2]} }"},
    {"AveragePoolOfInputs",
     "graph @g(%x: f32[2,3,9,40]) -> %y { %y = AveragePool %x {kernel_shape = [3, 3], strides = [1, 3], pads = [1, 2, "
     "2, 1]} }",
     1e-6},
    {"AveragePool",
     "graph @g(%x: f32[2,3,9,10]) -> %y { %y = AveragePool %x {kernel_shape = [3, 2], strides = [2, 2], "
     "pads = [1, 0, 1, 1], count_include_pad = 1, ceil_mode = 1} }",
     1e-6},
    {"LpPool", "graph @g(%x: f32[1,2,9,9]) -> %y { %y = LpPool %x {kernel_shape = [2, 2], p = 3} }", 1e-6},
    {"LRN", "graph @g(%x: f32[2,7,3,3]) -> %y { %y = LRN %x {size = 4} }", 1e-6},
};
INSTANTIATE_TEST_SUITE_P(Windows, OpenclCompute, ::testing::ValuesIn(kWindows), name_of);

const ComputeCase kPlaces[] = {
    {"Gather", "graph @g(%x: i8[4,5,6], %i: i64[3,2]) -> %y { %y = Gather %x, %i {axis = 1} }", 0, 5},
    {"GatherElements", "graph @g(%x: f64[4,5], %i: i64[4,7]) -> %y { %y = GatherElements %x, %i {axis = -1} }", 0, 5},
    {"GatherND", "graph @g(%x: f32[3,4,5,6], %i: i64[3,7,2]) -> %y { %y = GatherND %x, %i {batch_dims = 1} }", 0, 4},
    {"ScatterElements",
     "graph @g(%x: f32[4,5], %i: i64[3,4], %u: f32[3,4]) -> %y { %y = ScatterElements %x, %i, %u {axis "
     "= 1, reduction = \"add\"} }",
     0, 5},
    {"ScatterND",
     "graph @g(%x: i32[4,5,3], %i: i64[6,1], %u: i32[6,5,3]) -> %y { %y = ScatterND %x, %i, %u {reduction = "
     "\"max\"} }",
     0, 4},
    {"TopK",
     "graph @g(%x: f32[3,20,2]) -> (%v, %i) {\n %k = Constant {value = dense<i64[1]: 5>} : i64[1]\n %v, %i = TopK "
     "%x, %k {axis = 1}\n}"},
    {"CumSum",
     "graph @g(%x: i32[3,9,2]) -> %y {\n %a = Constant {value = dense<i64[]: 1>} : i64[]\n %y = CumSum %x, %a "
     "{exclusive = 1, reverse = 1}\n}"},
    {"Pad",
     "graph @g(%x: f32[3,4]) -> %y {\n %p = Constant {value = dense<i64[4]: 1, 2, 3, -1>} : i64[4]\n %y = Pad %x, "
     "%p {mode = \"reflect\"}\n}"},
    {"SliceBackwards",
     "graph @g(%x: i16[9,8]) -> %y {\n %b = Constant {value = dense<i64[2]: 7, -1>} : i64[2]\n %e = "
     "Constant {value = dense<i64[2]: 1, -9>} : i64[2]\n %d = Constant {value = dense<i64[2]: 0, 1>} : "
     "i64[2]\n %s = Constant {value = dense<i64[2]: -2, -3>} : i64[2]\n %y = Slice %x, %b, %e, %d, "
     "%s\n}"},
    {"Trilu", "graph @g(%x: f32[2,5,7]) -> %y { %y = Trilu %x }"},
    {"SpaceToDepth", "graph @g(%x: f32[1,2,4,6]) -> %y { %y = SpaceToDepth %x {blocksize = 2} }"},
};
INSTANTIATE_TEST_SUITE_P(Places, OpenclCompute, ::testing::ValuesIn(kPlaces), name_of);

const ComputeCase kOthers[] = {
    {"ResizeLinear",
     "graph @g(%x: f32[1,2,5,6]) -> %y {\n %s = Constant {value = dense<i64[4]: 1, 2, 9, 4>} : i64[4]\n "
     "%y = Resize %x, _, _, %s {mode = \"linear\"}\n}",
     1e-6},
    {"ResizeCubic",
     "graph @g(%x: f32[1,1,5,6]) -> %y {\n %s = Constant {value = dense<f32[4]: 1, 1, 1.7, 0.6>} : "
     "f32[4]\n %y = Resize %x, _, %s {mode = \"cubic\", exclude_outside = 1}\n}",
     1e-5},
    {"NegativeLogLikelihood",
     "graph @g(%x: f32[3,5,2], %c: i64[3,2], %w: f32[5]) -> %y { %y = NegativeLogLikelihoodLoss "
     "%x, %c, %w {reduction = \"none\", ignore_index = -1} }",
     1e-6, 1},
    {"CrossEntropy",
     "graph @g(%x: f32[3,5,2], %c: i64[3,2]) -> (%y, %p) { %y, %p = SoftmaxCrossEntropyLoss %x, %c "
     "{ignore_index = -1} }",
     1e-6, 1},
};
INSTANTIATE_TEST_SUITE_P(Others, OpenclCompute, ::testing::ValuesIn(kOthers), name_of);

class OpenclLate : public OpenclTest {};

// Pads are an input: each of their values has its own plan, and the results are those of the reference.
TEST_F(OpenclLate, ValuesThatDecideAboutExtentsAreReadAtRuns) {
  constexpr std::string_view kText = R"(graph @g(%x: f32[N,4], %p: i64[4]) -> %y {
    %a = Neg %x
    %b = Pad %a, %p
    %y = Abs %b
  })";
  auto backend = *create_backend(cpu_target());
  auto graph = *parse_graph(kText);
  for (const Op& op : graph->body()) EXPECT_FALSE(backend->refuses(op)) << op.describe();
  auto executable = *compiled(*backend, graph->clone());
  std::mt19937 random(3);
  for (const std::vector<int64_t>& pads : {std::vector<int64_t>{1, 0, 2, 3}, {0, -1, 0, 0}, {1, 0, 2, 3}}) {
    Tensor wanted = *Tensor::allocate(kI64, {4});
    std::ranges::copy(pads, wanted.mutable_as<int64_t>().begin());
    const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {3, 4})), Datum(wanted)};
    std::vector<OpProfile> profile;
    const auto got = run_on(*stream, *executable, inputs, {.profile = &profile});
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(std::ranges::any_of(profile, [](const OpProfile& one) { return one.op == "Pad"; }));
    const Comparison comparison = compare((*got)[0], on_reference(*graph, inputs)[0], {.rtol = 0, .atol = 0});
    EXPECT_TRUE(comparison.equal) << comparison.difference;
  }
}

TEST_F(OpenclLate, AnIndexOutOfRangeIsAnErrorOfTheRun) {
  constexpr std::string_view kText = "graph @g(%x: f32[4,3], %i: i64[2]) -> %y { %y = Gather %x, %i \"words\" }";
  auto backend = *create_backend(cpu_target());
  auto graph = *parse_graph(kText);
  auto executable = *compiled(*backend, graph->clone());
  const auto run_with = [&](int64_t index) {
    Tensor indices = *Tensor::allocate(kI64, {2});
    indices.mutable_as<int64_t>()[0] = 1, indices.mutable_as<int64_t>()[1] = index;
    std::mt19937 random(5);
    return run_on(*stream, *executable, {Datum(tenon::testing::random_tensor(random, kF32, {4, 3})), Datum(indices)});
  };
  EXPECT_TRUE(run_with(-4).ok());
  const auto wrong = run_with(4);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().to_string(), HasSubstr("Gather words has an index that is out of range"));
  EXPECT_TRUE(run_with(3).ok()) << "the stream is usable";
}

}  // namespace
}  // namespace tenon::opencl::testing
