#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string loss(std::string_view scores, std::string_view classes, std::string_view reduction) {
  return inferred(str("(%x: ", scores, ", %c: ", classes,
                      ") -> %y { %y = NegativeLogLikelihoodLoss %x, %c {reduction = \"", reduction, "\"} }"));
}

TEST(LossRule, ShapesByReduction) {
  EXPECT_EQ(loss("f32[N,5,3]", "i64[N,3]", "none"), "f32[N,3]");
  EXPECT_EQ(loss("f32[?,5,?]", "i32[2,3]", "none"), "f32[2,3]");
  EXPECT_EQ(loss("f32[N,5]", "i64[N]", "mean"), "f32[]");
  EXPECT_EQ(loss("f16[*]", "i64[4]", "none"), "f16[4]");
  EXPECT_EQ(loss("f16[*]", "i64[4]", "sum"), "f16[]");
  EXPECT_THAT(loss("f32[2,5]", "i64[2]", "max"), HasSubstr("max"));
  EXPECT_THAT(loss("f32[2,5]", "i64[3]", "sum"), HasSubstr("scores and classes of "));
  EXPECT_THAT(loss("f32[2]", "i64[2]", "sum"), HasSubstr("the scores need a dim of places and one of classes"));
}

TEST(LossRule, WeightsAndLogarithms) {
  const auto both = [](std::string_view weights) {
    return inferred(str("(%x: f32[N,5], %c: i64[N], %w: ", weights,
                        ") -> (%y, %l) { %y, %l = SoftmaxCrossEntropyLoss %x, %c, %w }"));
  };
  EXPECT_EQ(both("f32[5]"), "f32[] f32[N,5]");
  EXPECT_THAT(both("f32[4]"), HasSubstr("the weights of "));
  EXPECT_EQ(inferred("(%x: f32[N,5], %c: i64[N]) -> %y { %y = SoftmaxCrossEntropyLoss %x, %c }"), "f32[]");
}

}  // namespace
}  // namespace tenon
