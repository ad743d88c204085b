// From a float network to integers by calibration, and how far that is from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <support_lib/random_tensor.hpp>
#include <tenon-ext/quant/accuracy.hpp>
#include <tenon-ext/quant/calibrate.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/standard.hpp>

namespace tenon::quant {
namespace {

using ::testing::HasSubstr;
using testing::pick;

Tensor normal(std::mt19937& random, Dims dims, float deviation) {
  std::normal_distribution<float> numbers(0, deviation);
  Tensor out = *Tensor::zeros(kF32, std::move(dims));
  for (float& x : out.mutable_as<float>()) x = numbers(random);
  return out;
}

// A residual block between two convolutions, a mean and a classifier, with weights as training leaves them.
std::unique_ptr<Graph> network(std::mt19937& random) {
  auto graph = std::make_unique<Graph>("net");
  Builder b(graph->body());
  Value* x = graph->body().add_input("x", Type(kF32, Shape(Dims{1, 3, 12, 12})));
  const auto conv = [&](Value* input, int64_t channels, int64_t outputs, const char* name) {
    Value* w =
        b.constant(normal(random, {outputs, channels, 3, 3}, std::sqrt(2.0f / static_cast<float>(9 * channels))));
    Value* bias = b.constant(normal(random, {outputs}, 0.1f));
    Value* y = *b.op("Conv", {input, w, bias}, {{"pads", Attribute::Integers{1, 1, 1, 1}}});
    y->set_name(name);
    return y;
  };
  Value* first = *b.op("Relu", {conv(x, 3, 16, "c1")});
  first->set_name("r1");
  Value* second = *b.op("Relu", {conv(first, 16, 16, "c2")});
  second->set_name("r2");
  Value* sum = *b.op("Relu", {*b.op("Add", {conv(second, 16, 16, "c3"), first})});
  sum->set_name("sum");
  Value* pooled =
      *b.op("MaxPool", {sum}, {{"kernel_shape", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{2, 2}}});
  pooled->set_name("pooled");
  Value* mean = *b.op("GlobalAveragePool", {pooled});
  mean->set_name("mean");
  Value* flat = *b.op("Flatten", {mean});
  Value* y = *b.op("Gemm", {flat, b.constant(normal(random, {10, 16}, 0.5f)), b.constant(normal(random, {10}, 0.1f))},
                   {{"transB", int64_t{1}}});
  y->set_name("y");
  graph->body().add_output(y, "y");
  return graph;
}

Samples samples_of(std::mt19937& random, size_t count) {
  Samples samples(count);
  for (auto& inputs : samples) inputs.push_back(normal(random, {1, 3, 12, 12}, 1));
  return samples;
}

std::map<std::string, int> count_operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Op& op : graph.body()) ++counts[std::string(op.name().str())];
  counts.erase("Constant");
  return counts;
}

class Calibrated : public ::testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, Calibrated, ::testing::Values(Method::minmax, Method::kl));

TEST_P(Calibrated, ANetworkBecomesIntegersAndStaysClose) {
  std::mt19937 random(7);
  const auto floats = network(random);
  const Samples samples = samples_of(random, 4);
  Profile profile;
  ASSERT_TRUE(calibrate(*floats, samples, profile).ok());
  EXPECT_EQ(profile.samples, 4);
  const auto integers = floats->clone();
  const auto rounds = insert_rounds(*integers, profile, GetParam());
  ASSERT_TRUE(rounds.ok()) << rounds.error().to_string();
  std::vector<IntegerValue> values;
  const auto changed = legalise_quantised(*integers, &values);
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  ASSERT_TRUE(verify(*integers).ok()) << verify(*integers).error().to_string();
  // The residual and all activations are inside.
  EXPECT_EQ(count_operators(*integers), (std::map<std::string, int>{{"Flatten", 1},
                                                                    {"fused.QAvgPool", 1},
                                                                    {"fused.QConv", 3},
                                                                    {"fused.QDense", 1},
                                                                    {"fused.QMaxPool", 1},
                                                                    {"quant.Dequantize", 1},
                                                                    {"quant.Quantize", 1}}))
      << print(*integers, {.elide_beyond = 4});
  EXPECT_TRUE(float_operators(*integers).empty());
  const auto accuracy = compare_accuracy(*floats, *integers, values, samples);
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().to_string();
  EXPECT_GE(accuracy->layers.size(), 5u);
  for (const LayerAccuracy& layer : accuracy->layers) {
    EXPECT_GT(layer.distance.sqnr_db(), 20) << layer.value.name;
  }
  EXPECT_GT(accuracy->outputs[0].distance.sqnr_db(), 20);
  EXPECT_EQ(accuracy->outputs[0].rows, 4);
}

TEST(Calibration, WhatTheProfileLacksIsNamed) {
  std::mt19937 random(7);
  const auto one = network(random), other = network(random);
  Profile profile;
  ASSERT_TRUE(calibrate(*one, samples_of(random, 1), profile).ok());
  const auto rounds = insert_rounds(*other, profile, Method::minmax);
  ASSERT_FALSE(rounds.ok());
  EXPECT_THAT(rounds.error().to_string(), HasSubstr("the profile knows no value like"));
}

TEST(Calibration, RoundsAreMadeOnce) {
  std::mt19937 random(7);
  const auto graph = network(random);
  Profile profile;
  ASSERT_TRUE(calibrate(*graph, samples_of(random, 1), profile).ok());
  const auto first = insert_rounds(*graph, profile, Method::minmax);
  ASSERT_TRUE(first.ok() && *first == Change::yes);
  std::map<const Value*, int> rounded;
  for (const Op& op : graph->body()) {
    if (op.is("quant.Round")) ++rounded[op.operand(0)];
  }
  for (const auto& [value, times] : rounded) EXPECT_EQ(times, 1) << value->name();
}

TEST(Accuracy, DistancesAreTheirFormulas) {
  Distance distance;
  distance.add(Tensor::of<int8_t>({2}, {2, -4}), Tensor::of<float>({2}, {1, -1}), 0.5);
  EXPECT_DOUBLE_EQ(distance.signal, 2);
  EXPECT_DOUBLE_EQ(distance.noise, 1);
  EXPECT_DOUBLE_EQ(distance.max_abs, 1);
  EXPECT_NEAR(distance.sqnr_db(), 3.0103, 1e-4);
  EXPECT_EQ(Distance().sqnr_db(), INFINITY);
}

}  // namespace
}  // namespace tenon::quant
