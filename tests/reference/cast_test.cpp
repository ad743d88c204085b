#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

Attributes to(ElementType element, int64_t saturate = 1, const char* round_mode = "up") {
  return {{"to", Type(element, Shape())}, {"saturate", saturate}, {"round_mode", round_mode}};
}

TEST(CastEvaluator, ConvertsWithItsAttributes) {
  const Tensor x = Tensor::of<float>({3}, {1000, -2.7f, 0});
  EXPECT_TRUE(evaluated("Cast", {x}, to(kI32)).identical(Tensor::of<int32_t>({3}, {1000, -2, 0})));
  EXPECT_TRUE(evaluated("Cast", {x}, to(kBool)).identical(Tensor::of<bool>({3}, {true, true, false})));
  EXPECT_TRUE(evaluated("Cast", {x}, to(kF32)).identical(x));
  EXPECT_EQ(evaluated("Cast", {x}, to(kF8E4M3FN)).double_at(0), 448);
  EXPECT_NE(evaluated("Cast", {x}, to(kF8E4M3FN, 0)).double_at(0), 448);
  const Tensor scale = Tensor::scalar(1.25f);
  EXPECT_EQ(evaluated("Cast", {scale}, to(kF8E8M0)).double_at(0), 2);
  EXPECT_EQ(evaluated("Cast", {scale}, to(kF8E8M0, 1, "down")).double_at(0), 1);
  EXPECT_EQ(evaluated("Cast", {scale}, to(kF8E8M0, 1, "nearest")).double_at(0), 1);
  EXPECT_TRUE(
      evaluated("Cast", {Tensor::of<std::string>({1}, {"-1.5"})}, to(kF32)).identical(Tensor::of<float>({1}, {-1.5f})));
  EXPECT_THAT(error_of("Cast", {Tensor::of<std::string>({1}, {"one"})}, to(kF32)), HasSubstr("one"));
}

TEST(CastEvaluator, CastLikeTakesTheTypeOnly) {
  const Tensor x = Tensor::of<double>({2}, {1.5, 300});
  EXPECT_TRUE(evaluated("CastLike", {x, *Tensor::zeros(kI16, {0, 7})}).identical(Tensor::of<int16_t>({2}, {1, 300})));
  EXPECT_TRUE(evaluated("CastLike", {x, x}).identical(x));
}

TEST(CastEvaluator, BitCastKeepsBits) {
  const Tensor x = Tensor::of<float>({2}, {1, -0.0f});
  EXPECT_TRUE(evaluated("BitCast", {x}, {{"to", Type(kU32, Shape())}})
                  .identical(Tensor::of<uint32_t>({2}, {0x3f800000, 0x80000000})));
  EXPECT_TRUE(evaluated("BitCast", {Tensor::of<uint8_t>({3}, {0, 1, 6})}, {{"to", Type(kBool, Shape())}})
                  .identical(Tensor::of<bool>({3}, {false, true, true})));
  const Tensor nibbles = evaluated("BitCast", {iota(kI4, {3})}, {{"to", Type(kF4E2M1, Shape())}});
  EXPECT_EQ(nibbles.double_at(2), 1.0);
}

}  // namespace
}  // namespace tenon
