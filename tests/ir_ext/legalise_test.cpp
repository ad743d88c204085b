// Models with their own scales, converted to powers of two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ir_ext/small_network.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon-ext/quant/accuracy.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>
#include <zoo/quantize.hpp>

namespace tenon::quant {
namespace {

using ::testing::HasSubstr;
using testing::random_tensor;

class Legalised : public ::testing::TestWithParam<zoo::Scheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, Legalised, ::testing::Values(zoo::Scheme::symmetric, zoo::Scheme::asymmetric));

// Weights per channel, activations as i8, or as u8 with zero points.
TEST_P(Legalised, AQdqModelBecomesIntegersCloseToIt) {
  std::mt19937 random(11);
  const auto model = network(random);
  const Samples samples = samples_of(random, 3);
  const auto quantised = zoo::quantize(*model, samples, GetParam());
  ASSERT_TRUE(quantised.ok()) << quantised.error().to_string();
  const auto integers = model->clone();
  std::vector<IntegerValue> values;
  const auto changed = legalise_quantised(*integers, &values);
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  ASSERT_TRUE(verify(*integers).ok()) << verify(*integers).error().to_string();
  auto counts = count_operators(*integers);
  EXPECT_EQ(counts["fused.QConv"], 3) << print(*integers, {.elide_beyond = 4});
  EXPECT_EQ(counts["Conv"] + counts["QuantizeLinear"] + counts["DequantizeLinear"], 0);
  const auto accuracy = compare_accuracy(*model, *integers, values, samples);
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().to_string();
  EXPECT_GE(accuracy->layers.size(), 3u);
  for (const LayerAccuracy& layer : accuracy->layers) {
    EXPECT_GT(layer.distance.sqnr_db(), 18) << layer.value.name;
  }
  EXPECT_GT(accuracy->outputs[0].distance.sqnr_db(), 18);
}

// The float operator between DequantizeLinear and QuantizeLinear rounds differently by at most one step.
TEST(ExpandQuantised, KeepsNumbers) {
  auto graph = parse_graph(R"(graph @g(%x: u8[2,3,6,6]) -> %y {
    %xs = Constant {value = dense<f32[]: 0.02>}
    %xz = Constant {value = dense<u8[]: 120>}
    %w = Constant {value = dense<i8[2,3,1,1]: 100, -20, 3, 40, 50, -60>}
    %ws = Constant {value = dense<f32[2]: 0.01, 0.03>}
    %wz = Constant {value = dense<i8[2]: 0, 0>}
    %ys = Constant {value = dense<f32[]: 0.05>}
    %yz = Constant {value = dense<u8[]: 100>}
    %b = Constant {value = dense<i32[2]: 1000, -1000>}
    %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b {strides = [2, 2]}
  })");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  std::mt19937 random(5);
  const std::vector<Datum> inputs{random_tensor(random, kU8, {2, 3, 6, 6}, 0, 255)};
  const Tensor before = output_of(**graph, inputs);
  const auto changed = expand_quantised(**graph);
  ASSERT_TRUE(changed.ok() && *changed == Change::yes);
  const Tensor after = output_of(**graph, inputs);
  ASSERT_EQ(after.size(), before.size());
  for (int64_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after.int_at(i), before.int_at(i), 1) << i;
}

// One step for all weights of a tensor: each channel has the absolute error of the widest one, whatever its own scale.
TEST(LegalisedWeights, ByChannelHaveTheErrorOfTheWidest) {
  std::mt19937 random(6);
  constexpr int64_t kInputs = 40, kOutputs = 6;
  Graph graph("g");
  Builder b(graph.body());
  Value* x = graph.body().add_input("x", Type(kF32, Shape(Dims{1, kInputs})));
  Value* rounded = *b.op("quant.Round", {x}, {{"exponent", int64_t{-5}}});
  const Tensor w = random_tensor(random, kI8, {kOutputs, kInputs}, -127, 127);
  Tensor scales = *Tensor::zeros(kF32, {kOutputs});
  for (int64_t o = 0; o < kOutputs; ++o) scales.mutable_as<float>()[o] = 0.0007f * static_cast<float>(1 << o);
  Value* reals = *b.op("DequantizeLinear", {b.constant(w), b.constant(scales)}, {{"axis", int64_t{0}}});
  graph.body().add_output(*b.op("Gemm", {rounded, reals}, {{"transB", int64_t{1}}}), "y");
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, kInputs}, -4, 3.9)};
  const Tensor exact = output_of(graph, inputs);
  ASSERT_TRUE(legalise_quantised(graph).ok());
  ASSERT_EQ(count_operators(graph)["fused.QDense"], 2);
  const Tensor got = output_of(graph, inputs);
  double magnitudes = 0, worst = 0;
  for (const float value : inputs[0].tensor().as<float>()) magnitudes += std::abs(value) + 0x1p-6;
  // The widest scale is 0.0224; 127 of it are 2.84, for which the step is 2^-5, or 2^-6 with a few weights cut off.
  const double step = 0x1p-5;
  for (int64_t o = 0; o < kOutputs; ++o) {
    worst = std::max(worst, std::abs(got.double_at(o) - exact.double_at(o)));
    EXPECT_LE(std::abs(got.double_at(o) - exact.double_at(o)), magnitudes * step / 2 + 0.01) << "channel " << o;
  }
  EXPECT_GT(worst, 0) << "a scale that is no power of two leaves something";
}

TEST(FloatOperators, SayWhyTheyAreStillFloats) {
  const auto graph = parse_graph(R"(graph @g(%x: f32[1,2,4,4], %v: f32[2,2,1,1]) -> (%a, %b) {
    %w = Constant {value = dense<f32[2,2,1,1]: 1, 2, 3, 4>}
    %a = Conv %x, %w "plain"
    %b = Conv %x, %v "run"
  })");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto found = float_operators(**graph);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].op, HasSubstr("plain"));
  EXPECT_EQ(found[0].reason, "its operands are not quantised");
  EXPECT_EQ(found[1].reason, "its weights are no constant");
}

}  // namespace
}  // namespace tenon::quant
