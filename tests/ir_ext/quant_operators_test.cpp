// Operators of quantisation: evaluator, decomposition and formula agree; also the numbers for choosing scales.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/by_definition.hpp>
#include <support_lib/evaluated.hpp>
#include <support_lib/inferred.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/scales.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::quant {
namespace {

using namespace tenon::testing;
using ::testing::HasSubstr;

void expect_both(Name op, const Tensor& x, const Attributes& attributes, const Tensor& y) {
  EXPECT_TRUE(evaluated(op, {x}, attributes).identical(y)) << op.str();
  const auto rebuilt = by_definition(op, {x}, attributes);
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
  EXPECT_TRUE(rebuilt->identical(y)) << op.str() << ", decomposed";
}

TEST(QuantOperators, ToIntegersAndBack) {
  const Tensor x = Tensor::of<float>({6}, {0.25f, 0.75f, -0.25f, 100, -100, 1.5f});
  const Attributes half{{"exponent", int64_t{-1}}};
  // Halves go to the even number.
  expect_both("quant.Quantize", x, half, Tensor::of<int8_t>({6}, {0, 2, 0, 127, -128, 3}));
  expect_both("quant.Round", x, half, Tensor::of<float>({6}, {0, 1, 0, 63.5f, -64, 1.5f}));
  expect_both("quant.Dequantize", Tensor::of<int8_t>({3}, {-128, 1, 127}), {{"exponent", int64_t{3}}},
              Tensor::of<float>({3}, {-1024, 8, 1016}));
}

TEST(QuantOperators, RequantizeIsItsFormula) {
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    const ElementType element = pick(r, 0, 1) ? kI8 : kI32;
    const int64_t reach = element == kI8 ? 127 : 100000, left = pick(r, 0, 9), shift = pick(r, 0, 15);
    const int64_t low = pick(r, -128, 10), high = pick(r, low, 127);
    const Tensor x = random_tensor(r, element, {17}, -reach, reach);
    Tensor y = *Tensor::zeros(kI8, {17});
    for (int64_t i = 0; i < 17; ++i) {
      const double sum = std::ldexp(static_cast<double>(x.int_at(i)), static_cast<int>(left)) +
                         (shift > 0 ? std::ldexp(0.5, static_cast<int>(shift)) : 0);
      const auto floor = static_cast<int64_t>(std::floor(std::ldexp(sum, static_cast<int>(-shift))));
      y.set_int(i, std::clamp(floor, low, high));
    }
    expect_both("quant.Requantize", x, {{"left_shift", left}, {"shift", shift}, {"clip_min", low}, {"clip_max", high}},
                y);
  }
}

TEST(QuantOperators, WrongOnesAreRefused) {
  EXPECT_THAT(inferred("(%x: f32[2]) -> %y { %y = quant.Round %x {exponent = 101} }"),
              HasSubstr("is 101, which is outside [-100, 100]"));
  EXPECT_THAT(inferred("(%x: f32[2]) -> %y { %y = quant.Round %x }"), HasSubstr("error: "));
  EXPECT_THAT(inferred("(%x: f64[2]) -> %y { %y = quant.Quantize %x {exponent = 1} }"), HasSubstr("error: "));
  EXPECT_THAT(inferred("(%x: i8[2]) -> %y { %y = quant.Requantize %x {left_shift = 24} }"),
              HasSubstr("is 24, which is outside [0, 23]"));
  EXPECT_EQ(inferred("(%x: i32[N]) -> %y { %y = quant.Requantize %x {shift = 4} }"), "i8[N]");
}

TEST(Scales, PowersOfTwo) {
  EXPECT_EQ(split_step(0.125).exponent, -3);
  EXPECT_EQ(split_step(0.125).factor, 1);
  EXPECT_EQ(split_step(0.17).exponent, -3);  // below 2^-2.5
  EXPECT_EQ(split_step(0.18).exponent, -2);
  EXPECT_DOUBLE_EQ(step_of(-2, split_step(0.18).factor), 0.18);
  EXPECT_EQ(covering_exponent(127), 0);
  EXPECT_EQ(covering_exponent(127.5), 1);
  EXPECT_EQ(covering_exponent(0), 0);
  EXPECT_EQ(covering_exponent(1e-300), -kMostExponent);
  EXPECT_DOUBLE_EQ(symmetric_step(0.5, 0, kI8), 0.5);
  EXPECT_DOUBLE_EQ(symmetric_step(0.5, 0, kU8), 0.5 * 255 / 127);
  EXPECT_DOUBLE_EQ(symmetric_step(0.5, 128, kU8), 0.5 * 128 / 127);
  EXPECT_DOUBLE_EQ(symmetric_step(0.5, -128, kI8), 0.5 * 255 / 127);
}

// A single outlier is not worth half the precision of all other weights.
TEST(Scales, WeightsTakeTheExponentOfLeastError) {
  std::vector<float> weights(1000, 0.7f);
  weights[0] = 128;
  EXPECT_EQ(weights_exponent(Tensor::of<float>({1000}, weights)), 0);
  weights[0] = 200;  // cut off it would cost more than all others gain
  EXPECT_EQ(weights_exponent(Tensor::of<float>({1000}, weights)), 1);
}

TEST(Scales, IntegersSaturate) {
  const Tensor x = Tensor::of<float>({4}, {1e20f, -1e20f, 2.5f, NAN});
  EXPECT_TRUE(as_i8(x, 0)->identical(Tensor::of<int8_t>({4}, {127, -128, 2, 0})));
  EXPECT_TRUE(as_i32(x, -1)->identical(Tensor::of<int32_t>({4}, {INT32_MAX, INT32_MIN, 5, 0})));
}

}  // namespace
}  // namespace tenon::quant
