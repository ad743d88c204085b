#include <tenon/ops/shape.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::error_of;
using testing::evaluated;
using ::testing::HasSubstr;
using testing::ints;
using testing::iota;

TEST(ShapeEvaluator, ShapeAndSize) {
  const Tensor x = iota(kF32, {2, 3, 4});
  EXPECT_TRUE(evaluated("Shape", {x}).identical(ints({2, 3, 4})));
  EXPECT_TRUE(evaluated("Shape", {x}, {{"start", -2}, {"end", -1}}).identical(ints({3})));
  EXPECT_TRUE(evaluated("Shape", {x}, {{"start", 2}, {"end", 1}}).identical(ints({})));
  EXPECT_TRUE(evaluated("Size", {x}).identical(Tensor::scalar<int64_t>(24)));
  EXPECT_TRUE(evaluated("Size", {iota(kF32, {})}).identical(Tensor::scalar<int64_t>(1)));
}

TEST(ShapeEvaluator, ViewsKeepElementsOfEveryType) {
  for (const ElementType element : testing::kSampleTypes) {
    SCOPED_TRACE(element.to_string());
    const Tensor x = iota(element, {1, 3, 2});
    EXPECT_TRUE(evaluated("Reshape", {x, ints({-1, 3})}).identical(iota(element, {2, 3})));
    EXPECT_TRUE(evaluated("Flatten", {x}, {{"axis", -1}}).identical(iota(element, {3, 2})));
    EXPECT_TRUE(evaluated("Squeeze", {x}).identical(iota(element, {3, 2})));
    EXPECT_TRUE(evaluated("Squeeze", {x, ints({-3})}).identical(iota(element, {3, 2})));
    EXPECT_TRUE(evaluated("Unsqueeze", {x, ints({-1, 0})}).identical(iota(element, {1, 1, 3, 2, 1})));
  }
}

TEST(ShapeEvaluator, ReshapeRefusesWhatDoesNotFit) {
  EXPECT_THAT(error_of("Reshape", {iota(kF32, {2, 3}), ints({4, -1})}), HasSubstr("6 elements do not divide by 4"));
}

TEST(ShapeEvaluator, ExpandRepeatsEveryType) {
  for (const ElementType element : testing::kSampleTypes) {
    SCOPED_TRACE(element.to_string());
    const Tensor x = iota(element, {3, 1});
    const Tensor y = evaluated("Expand", {x, ints({2, 1, 5})});
    ASSERT_EQ(y.dims(), (Dims{2, 3, 5}));
    for (int64_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(testing::element_text(y, i), testing::element_text(x, i / 5 % 3)) << i;
    }
  }
  EXPECT_EQ(evaluated("Expand", {iota(kF32, {1, 3}), ints({0, 1})}).dims(), (Dims{0, 3}));
}

TEST(ShapeEvaluator, ConstantOfShape) {
  EXPECT_TRUE(evaluated("ConstantOfShape", {ints({2, 2})}).identical(Tensor::of<float>({2, 2}, {0, 0, 0, 0})));
  EXPECT_TRUE(evaluated("ConstantOfShape", {ints({3})}, {{"value", Tensor::of<std::string>({1}, {"a"})}})
                  .identical(Tensor::of<std::string>({3}, {"a", "a", "a"})));
  EXPECT_TRUE(evaluated("ConstantOfShape", {ints({})}, {{"value", Tensor::of<int32_t>({1}, {7})}})
                  .identical(Tensor::scalar<int32_t>(7)));
  EXPECT_EQ(evaluated("ConstantOfShape", {ints({2, 0})}).dims(), (Dims{2, 0}));
}

TEST(ShapeEvaluator, Range) {
  const auto range = [](auto start, auto limit, auto delta) {
    return evaluated("Range", {Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)});
  };
  EXPECT_TRUE(range(1.0f, 5.0f, 2.0f).identical(Tensor::of<float>({2}, {1, 3})));
  EXPECT_TRUE(range(int32_t{10}, int32_t{6}, int32_t{-3}).identical(Tensor::of<int32_t>({2}, {10, 7})));
  EXPECT_TRUE(range(f16(1.0f), f16(2.0f), f16(0.5f)).identical(Tensor::of<f16>({2}, {f16(1.0f), f16(1.5f)})));
  EXPECT_EQ(range(3.0, 1.0, 1.0).dims(), (Dims{0}));
}

TEST(ShapeEvaluator, EyeLike) {
  EXPECT_TRUE(evaluated("EyeLike", {iota(kI32, {2, 3})}).identical(Tensor::of<int32_t>({2, 3}, {1, 0, 0, 0, 1, 0})));
  EXPECT_TRUE(evaluated("EyeLike", {iota(kI32, {2, 3})}, {{"k", 1}, {"dtype", Type(kF64, Shape())}})
                  .identical(Tensor::of<double>({2, 3}, {0, 1, 0, 0, 0, 1})));
  EXPECT_TRUE(evaluated("EyeLike", {iota(kI32, {3, 2})}, {{"k", -2}})
                  .identical(Tensor::of<int32_t>({3, 2}, {0, 0, 0, 0, 1, 0})));
  EXPECT_TRUE(
      evaluated("EyeLike", {iota(kU8, {1, 2})}, {{"k", INT64_MAX}}).identical(Tensor::of<uint8_t>({1, 2}, {0, 0})));
}

}  // namespace
}  // namespace tenon
