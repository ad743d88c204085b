// Calibration of a float network to integers, and the resulting error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <ir_ext/small_network.hpp>
#include <tenon-ext/quant/accuracy.hpp>
#include <tenon-ext/quant/calibrate.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/standard.hpp>

namespace tenon::quant {
namespace {

using ::testing::HasSubstr;

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
  // The residual and all activations are inside; the output has 16 bits.
  EXPECT_EQ(count_operators(*integers), (std::map<std::string, int>{{"Flatten", 1},
                                                                    {"Sub", 1},
                                                                    {"fused.QAvgPool", 1},
                                                                    {"fused.QConv", 3},
                                                                    {"fused.QDense", 2},
                                                                    {"fused.QMaxPool", 1},
                                                                    {"quant.Dequantize", 2},
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
