// Snippets fused into compute kernels: one launch for both, with the reference's results. Each profile entry is a
// launch.
#include <gmock/gmock.h>

#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::HasSubstr;

struct EpilogueCase {
  const char* name;
  const char* text;
  size_t launches = 1;
  double tolerance = 0;  // 0: bit for bit
};

class OpenclEpilogue : public OpenclTest, public ::testing::WithParamInterface<EpilogueCase> {
 protected:
  struct Run {
    std::vector<Tensor> expected, got;
    std::vector<OpProfile> profile;
  };
  Result<Run> run(const TargetDescription& description, std::string_view text) {
    TENON_TRY(backend, create_backend(description));
    TENON_TRY(graph, parse_graph(text));
    std::mt19937 random(17);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph->body().input_count(); ++i) {
      const Type& type = graph->body().input(i)->type();
      inputs.emplace_back(tenon::testing::random_tensor(random, type.element(), *type.shape().static_dims()));
    }
    Run made;
    made.expected = on_reference(*graph, inputs);
    TENON_TRY(executable, compiled(*backend, graph->clone()));
    TENON_TRY(got, run_on(*stream, *executable, inputs, {.profile = &made.profile}));
    made.got = std::move(got);
    return made;
  }
  static void expect_right(const Run& run, double tolerance) {
    ASSERT_EQ(run.got.size(), run.expected.size());
    for (size_t i = 0; i < run.got.size(); ++i) {
      const Comparison comparison = compare(run.got[i], run.expected[i], {.rtol = tolerance, .atol = tolerance});
      EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference;
    }
  }
};

TEST_P(OpenclEpilogue, IsOneLaunch) {
  const auto made = run(cpu_target(), GetParam().text);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->profile.size(), GetParam().launches);
  expect_right(*made, GetParam().tolerance);
}

class OpenclEpilogueOptions : public OpenclEpilogue {};

// Groups of several work items share the packed panel.
TEST_P(OpenclEpilogueOptions, WorkGroupsLocalMemoryShortPanelsAndNoFusionGiveTheSame) {
  const auto right_with = [&](std::string_view option, Setting value, size_t most_launches) {
    TargetDescription other = cpu_target();
    other.options.add(std::string(option), std::move(value));
    const auto made = run(other, GetParam().text);
    ASSERT_TRUE(made.ok()) << option << ": " << made.error().to_string();
    EXPECT_LE(made->profile.size(), most_launches) << option;
    expect_right(*made, GetParam().tolerance);
  };
  right_with("work_group", Setting::word("4"), GetParam().launches);
  right_with("local_memory", Setting::word("false"), GetParam().launches);
  right_with("tile_depth", Setting::word("5"), GetParam().launches);
  right_with("fuse", Setting::word("false"), 99);
}

constexpr double kSums = 2e-5;  // sums of some hundred products in another order

const EpilogueCase kCases[] = {
    {"ConvBiasReluAdd",
     "graph @g(%x: f32[2,5,9,20], %w: f32[30,5,3,3], %b: f32[30], %r: f32[2,30,9,20]) -> %y {\n"
     " %c = Conv %x, %w, %b {pads = [1, 1, 1, 1]}\n %d = Relu %c\n %y = Add %d, %r\n}",
     1, kSums},
    {"ConvOfChannelsPlanesRowsAndOne",
     "graph @g(%x: f32[1,3,8,21], %w: f32[40,3,3,3], %p: f32[40,1,1], %q: f32[8,21], %l: f32[21], %o: f32[1]) -> %y {\n"
     " %c = Conv %x, %w {pads = [1, 1, 1, 1]}\n %d = Mul %c, %p\n %e = Add %d, %q\n %f = Sub %e, %l\n %y = Max %f, "
     "%o\n}",
     1, kSums},
    {"ConvBatchNormSwish",
     "graph @g(%x: f32[1,6,7,7], %w: f32[33,6,1,1], %s: f32[33], %t: f32[33], %m: f32[33], %v: f32[33]) -> %y {\n"
     " %a = Abs %v\n %c = Conv %x, %w\n %d = BatchNormalization %c, %s, %t, %m, %a\n %e = Sigmoid %d\n %y = Mul %d, "
     "%e\n}",
     1, 1e-4},
    {"ConvSeveralOutputs",
     "graph @g(%x: f32[1,4,10,10], %w: f32[28,4,3,3]) -> (%y, %z) {\n %c = Conv %x, %w {strides = [2, 2]}\n %y = Relu "
     "%c\n %z = Neg %c\n}",
     1, kSums},
    {"ConvDepthwiseClip",
     "graph @g(%x: f32[1,6,9,20], %w: f32[6,1,3,3], %b: f32[6]) -> %y {\n %c = Conv %x, %w, %b {group = 6, pads = [1, "
     "1, 1, 1]}\n %y = HardSwish %c\n}",
     1, kSums},
    {"ConvOfHalves",
     "graph @g(%x: f16[1,3,6,18], %w: f16[30,3,2,2], %b: f16[30,1,1]) -> %y {\n %c = Conv %x, %w\n %d = Add %c, %b\n "
     "%y "
     "= Relu %d\n}",
     1, 4e-3},
    {"MatMulBiasGelu",
     "graph @g(%a: f32[2,30,40], %b: f32[40,50], %c: f32[50]) -> %y {\n %m = MatMul %a, %b\n %s = Add %m, %c\n %y = "
     "Gelu "
     "%s\n}",
     1, kSums},
    {"MatMulOfRowsAndBatches",
     "graph @g(%a: f32[2,3,31,9], %b: f32[2,3,9,18], %c: f32[2,1,31,1], %d: f32[3,1,18]) -> %y {\n %m = MatMul %a, "
     "%b\n "
     "%s = Add %m, %c\n %y = Mul %s, %d\n}",
     1, kSums},
    {"MatMulToDoubles",
     "graph @g(%a: f32[30,9], %b: f32[9,37], %c: f64[37]) -> %y {\n %m = MatMul %a, %b\n %d = Cast %m {to = "
     "type<f64[*]>}\n %y "
     "= Add %d, %c\n}",
     1, kSums},
    {"MatMulIntegersToBytes",
     "graph @g(%a: i32[30,9], %b: i32[9,37]) -> %y {\n %m = MatMul %a, %b\n %y = Cast %m {to = type<u8[*]>}\n}"},
    {"GemmCompared",
     "graph @g(%a: f32[30,21], %b: f32[18,21], %c: f32[18], %s: f32[]) -> %y {\n %g = Gemm %a, %b, %c {transB = "
     "1, alpha = 0.5}\n %h = Relu %g\n %y = Greater %h, %s\n}",
     1},
    {"GemmOfOneRow",
     "graph @g(%a: f32[1,70], %b: f32[33,70], %c: f32[33]) -> %y {\n %g = Gemm %a, %b, %c {transB = 1}\n %y = Tanh "
     "%g\n}",
     1, kSums},
    {"ProductOfOneElement", "graph @g(%a: f32[1,70], %b: f32[70,1]) -> %y {\n %g = MatMul %a, %b\n %y = Abs %g\n}", 1,
     kSums},
    // Two launches, because the product is also an output, is reduced, or is broadcast.
    {"ResultWithAnotherUse",
     "graph @g(%a: f32[30,9], %b: f32[9,37]) -> (%m, %y) {\n %m = MatMul %a, %b\n %y = Relu %m\n}", 2, kSums},
    {"ResultThatIsReduced", "graph @g(%a: f32[30,9], %b: f32[9,37]) -> %y {\n %m = MatMul %a, %b\n %y = Softmax %m\n}",
     2, 1e-4},
    {"ResultThatIsRepeated",
     "graph @g(%a: f32[30,9], %b: f32[9,37], %c: f32[2,30,37]) -> %y {\n %m = MatMul %a, %b\n %y = Add %m, %c\n}", 2,
     kSums},
    // The sum is fused with only one of its two products.
    {"SumOfTwoProducts",
     "graph @g(%a: f32[30,9], %b: f32[9,37], %c: f32[30,8], %d: f32[8,37]) -> %y {\n %m = MatMul %a, %b\n %n = MatMul "
     "%c, "
     "%d\n %y = Add %m, %n\n}",
     2, kSums},
};
INSTANTIATE_TEST_SUITE_P(All, OpenclEpilogue, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Only some cases: each makes the device's compiler build four programs, which is slow.
INSTANTIATE_TEST_SUITE_P(Some, OpenclEpilogueOptions, ::testing::Values(kCases[0], kCases[4], kCases[5], kCases[7]),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(OpenclTest, AStageOfBothNamesBoth) {
  auto backend = *create_backend(cpu_target());
  auto graph = *parse_graph(
      "graph @g(%a: f32[M,9], %b: f32[9,37]) -> %y {\n %m = MatMul %a, %b \"fc1\"\n %y = Relu %m \"act\"\n}");
  auto executable = *compiled(*backend, graph->clone());
  std::mt19937 random(1);
  // The number of rows is known only at run time: the same kernel is used for 30 rows and for one.
  for (const int64_t rows : {30, 1}) {
    const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {rows, 9})),
                                    Datum(tenon::testing::random_tensor(random, kF32, {9, 37}))};
    std::vector<OpProfile> profile;
    const auto got = run_on(*stream, *executable, inputs, {.profile = &profile});
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    ASSERT_EQ(profile.size(), 1u);
    EXPECT_EQ(profile[0].op, "MatMul");
    EXPECT_THAT(profile[0].label, HasSubstr("fc1 with snippet"));
    const Comparison comparison = compare((*got)[0], on_reference(*graph, inputs)[0], {.rtol = kSums, .atol = kSums});
    EXPECT_TRUE(comparison.equal) << comparison.difference;
  }
}

}  // namespace
}  // namespace tenon::opencl::testing
