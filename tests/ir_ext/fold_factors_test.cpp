// Steps that are not powers of two: moved into weights by fold-factors, and 16-bit results at the end of integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ir_ext/small_network.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon-ext/quant/accuracy.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {
namespace {

using testing::random_tensor;

std::unique_ptr<Graph> parsed(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *std::move(graph);
}

// Each single value keeps its step, so rounding is the same; f32 may break a few ties differently.
TEST(FoldFactors, KeepsNumbers) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,3,8,8]) -> %y {
    %xr = quant.Round %x {exponent = -5, factor = 1.3}
    %w1 = Constant {value = splat<f32[4,3,3,3]: 0.11>}
    %c1 = Conv %xr, %w1 {pads = [1, 1, 1, 1]}
    %a1 = Relu %c1
    %r1 = quant.Round %a1 {exponent = -4, factor = 0.8}
    %p1 = MaxPool %r1 {kernel_shape = [2, 2], strides = [2, 2]}
    %w2 = Constant {value = splat<f32[2,4,1,1]: -0.27>}
    %c2 = Conv %p1, %w2
    %y = quant.Round %c2 {exponent = -3, factor = 1.1}
  })");
  std::mt19937 random(3);
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, 3, 8, 8}, -2, 2)};
  const Tensor before = output_of(*graph, inputs);
  std::map<std::string, double> factors;
  const auto changed = fold_factors(*graph, &factors);
  ASSERT_TRUE(changed.ok() && *changed == Change::yes);
  ASSERT_TRUE(verify(*graph).ok());
  const Tensor after = output_of(*graph, inputs);
  int64_t different = 0;
  for (int64_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after.double_at(i), before.double_at(i), 1.1 / 8 * 1.001) << i;
    different += std::abs(after.double_at(i) - before.double_at(i)) > 1e-5;
  }
  EXPECT_LE(different, before.size() / 20);
  // One Mul before the first Round, one behind the last; what lies between has its factor in weights.
  EXPECT_EQ(count_operators(*graph)["Mul"], 2);
  EXPECT_FLOAT_EQ(static_cast<float>(factors.at("r1")), 0.8f);
  EXPECT_FLOAT_EQ(static_cast<float>(factors.at("p1")), 0.8f);
  for (const Op& op : graph->body()) EXPECT_EQ(op.attr<float>("factor", 1), 1) << op.describe();
}

// The model's steps are kept: at most one step of error in any value, where the nearest power of two would clip 30%.
TEST(FoldFactors, StepsAreThoseOfTheModel) {
  const auto graph = parsed(R"(graph @g(%x: f32[1,2,4,4]) -> %y {
    %s = Constant {value = dense<f32[]: 0.0434>}
    %z = Constant {value = dense<i8[]: 0>}
    %xq = QuantizeLinear %x, %s, %z
    %xd = DequantizeLinear %xq, %s, %z
    %w = Constant {value = dense<f32[2,2,1,1]: 0.5, -0.25, 0.125, 1>}
    %c = Conv %xd, %w
    %s2 = Constant {value = dense<f32[]: 0.0613>}
    %cq = QuantizeLinear %c, %s2, %z
    %y = DequantizeLinear %cq, %s2, %z
  })");
  std::mt19937 random(8);
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, 2, 4, 4}, -5.5, 5.5)};
  const Tensor before = output_of(*graph, inputs);
  ASSERT_TRUE(legalise_quantised(*graph).ok());
  EXPECT_EQ(count_operators(*graph)["fused.QConv"], 1) << print(*graph);
  EXPECT_EQ(count_operators(*graph)["Mul"], 0) << print(*graph);
  const Tensor after = output_of(*graph, inputs);
  for (int64_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after.double_at(i), before.double_at(i), 0.0613 * 2.01) << i;
}

// Added values share one factor: the sum is still one fused operator with a residual.
TEST(FoldFactors, SumsStayInsideTheAccumulator) {
  std::mt19937 random(7);
  const auto floats = network(random);
  const Samples samples = samples_of(random, 4);
  Profile profile;
  ASSERT_TRUE(calibrate(*floats, samples, profile).ok());
  ASSERT_TRUE(insert_rounds(*floats, profile, Method::minmax).ok());
  int with_factors = 0;
  for (const Op& op : floats->body()) with_factors += op.attr<float>("factor", 1) != 1;
  EXPECT_GE(with_factors, 4);
  ASSERT_TRUE(legalise_quantised(*floats).ok());
  int residuals = 0;
  for (const Op& op : floats->body()) residuals += op.is("fused.QConv") && op.operand(3);
  EXPECT_EQ(residuals, 1);
  EXPECT_EQ(count_operators(*floats)["Mul"] + count_operators(*floats)["fused.QAdd"], 0);
}

class Widened : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Widened, ::testing::Range(1u, 9u));

// With weights that 8 bits represent exactly, only the shift of the low part causes an error.
TEST_P(Widened, OutputsHaveSixteenBitsOfTheAccumulator) {
  std::mt19937 random(GetParam());
  const int64_t inputs = 1 + random() % 300, outputs = 1 + random() % 40;
  Graph graph("g");
  Builder b(graph.body());
  Value* x = graph.body().add_input("x", Type(kF32, Shape(Dims{2, inputs})));
  Value* rounded = *b.op("quant.Round", {x}, {{"exponent", int64_t{-4}}});
  Tensor w = *Tensor::zeros(kF32, {outputs, inputs}), bias = *Tensor::zeros(kF32, {outputs});
  for (float& value : w.mutable_as<float>()) value = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64;
  w.mutable_as<float>()[0] = 127.0f / 64;
  for (float& value : bias.mutable_as<float>())
    value = static_cast<float>(static_cast<int>(random() % 20000) - 10000) / 1024;
  Value* y = *b.op("Gemm", {rounded, b.constant(w), b.constant(bias)}, {{"transB", int64_t{1}}});
  graph.body().add_output(y, "y");
  const std::vector<Datum> data{random_tensor(random, kF32, {2, inputs}, -8, 7.9)};
  const Tensor exact = output_of(graph, data);
  ASSERT_TRUE(legalise_quantised(graph).ok());
  auto counts = count_operators(graph);
  EXPECT_EQ(counts["Gemm"], 0);
  EXPECT_EQ(counts["fused.QDense"], 2) << print(graph, {.elide_beyond = 4});
  // 2^-10 is a unit of the accumulator, whose bound is 128 * 127 * inputs and the bias.
  const double units = 128.0 * 127 * static_cast<double>(inputs) + 10000;
  const double step = std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(units / 127))) - 8 - 10);
  const Tensor got = output_of(graph, data);
  for (int64_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(got.double_at(i), exact.double_at(i), std::max(step, 0x1p-10) * 1.01) << i;
  }
}

TEST(Widened, ProductsThatFloatsReadAreIntegersToo) {
  const auto graph = parsed(R"(graph @g(%x: f32[2,3]) -> (%p, %q) {
    %xr = quant.Round %x {exponent = -4}
    %w = Constant {value = dense<f32[3,2]: 1, 2, 3, 4, 5, 6>}
    %m = MatMul %xr, %w
    %b = Constant {value = dense<f32[2]: 1, -1>}
    %y = Add %m, %b
    %p = Softmax %y
    %q = Sigmoid %y
  })");
  ASSERT_TRUE(legalise_quantised(*graph).ok());
  auto counts = count_operators(*graph);
  EXPECT_EQ(counts["MatMul"] + counts["Add"], 0) << print(*graph);
  EXPECT_EQ(counts["fused.QDense"], 2);
  EXPECT_TRUE(float_operators(*graph).empty());
}

}  // namespace
}  // namespace tenon::quant
