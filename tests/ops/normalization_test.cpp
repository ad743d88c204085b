#include <tenon/ops/normalization.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string on_x(std::string_view x, std::string_view op, std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}

TEST(NormalizationShape, ByChannel) {
  const auto batch = [](std::string_view scale) {
    return inferred(str("(%x: f16[N,8,H,W], %s: ", scale,
                        ", %m: f32[8]) -> (%y, %a, %b) "
                        "{ %y, %a, %b = BatchNormalization %x, %s, %s, %m, %m {training_mode = 1} }"));
  };
  EXPECT_EQ(batch("f16[8]"), "f16[N,8,H,W] f32[8] f32[8]");
  EXPECT_THAT(batch("f16[7]"), HasSubstr("has 7 elements, X has 8 channels"));
  EXPECT_EQ(inferred("(%x: f32[N,8,L], %s: f32[8]) -> %y { %y = InstanceNormalization %x, %s, %s }"), "f32[N,8,L]");
  EXPECT_EQ(inferred("(%x: f32[N,8,L], %s: f32[8]) -> %y { %y = GroupNormalization %x, %s, %s {num_groups = 4} }"),
            "f32[N,8,L]");
  EXPECT_THAT(inferred("(%x: f32[N,8,L], %s: f32[8]) -> %y { %y = GroupNormalization %x, %s, %s {num_groups = 3} }"),
              HasSubstr("num_groups"));
}

TEST(NormalizationShape, ByRow) {
  const auto layer = [](std::string_view scale, std::string_view attributes) {
    return inferred(str("(%x: f16[N,3,4], %s: ", scale, ") -> (%y, %m, %d) { %y, %m, %d = LayerNormalization %x, %s ",
                        attributes, " }"));
  };
  EXPECT_EQ(layer("f16[4]", ""), "f16[N,3,4] f32[N,3,1] f32[N,3,1]");
  EXPECT_EQ(layer("f16[3,4]", "{axis = 1, stash_type = 10}"), "f16[N,3,4] f16[N,1,1] f16[N,1,1]");
  EXPECT_THAT(layer("f16[5]", ""), HasSubstr("error"));
  EXPECT_THAT(layer("f16[2,1,3,4]", ""), HasSubstr("does not broadcast"));
  EXPECT_THAT(layer("f16[4]", "{axis = 3}"), HasSubstr("axis"));
  EXPECT_THAT(layer("f16[4]", "{stash_type = 7}"), HasSubstr("stash_type"));
  EXPECT_EQ(inferred("(%x: f16[N,4], %s: f32[4]) -> %y { %y = RMSNormalization %x, %s }"), "f32[N,4]");
}

TEST(NormalizationShape, TheRest) {
  EXPECT_EQ(on_x("f32[2,3]", "LpNormalization", "{p = 1, axis = 0}"), "f32[2,3]");
  EXPECT_THAT(on_x("f32[2,3]", "LpNormalization", "{p = 3}"), HasSubstr("1 or 2"));
  EXPECT_EQ(on_x("f32[2,3,4,N]", "MeanVarianceNormalization"), "f32[2,3,4,N]");
  EXPECT_THAT(on_x("f32[2,3]", "MeanVarianceNormalization"), HasSubstr("axes"));
  EXPECT_EQ(on_x("f32[N,C]", "LRN", "{size = 3}"), "f32[N,C]");
  EXPECT_THAT(on_x("f32[N,C]", "LRN", "{size = 0}"), HasSubstr("size"));
  EXPECT_THAT(on_x("f32[N,C]", "LRN", "{size = 9223372036854775807}"), HasSubstr("outside [1, 2147483647]"));
  EXPECT_EQ(inferred("(%x: f16[N]) -> (%y, %m) { %y, %m = Dropout %x }"), "f16[N] bool[N]");
}

}  // namespace
}  // namespace tenon
