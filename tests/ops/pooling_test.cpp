#include <tenon/ops/pooling.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string pool(std::string_view x, std::string_view attributes, std::string_view op = "MaxPool") {
  return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}

TEST(PoolingShape, Windows) {
  EXPECT_EQ(pool("f32[1,64,112,112]", "{kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}"),
            "f32[1,64,56,56]");
  EXPECT_EQ(pool("i8[1,2,10]", "{kernel_shape = [3], dilations = [2]}"), "i8[1,2,6]");
  EXPECT_EQ(pool("f32[N,C,H]", "{kernel_shape = [3], pads = [1, 1]}", "AveragePool"), "f32[N,C,H]");
  EXPECT_EQ(pool("f32[*]", "{kernel_shape = [3]}", "LpPool"), "f32[*]");
  EXPECT_EQ(pool("f16[1,2,5]", R"({kernel_shape = [2], strides = [2], auto_pad = "SAME_UPPER"})"), "f16[1,2,3]");
}

TEST(PoolingShape, CeilModeStartsNoWindowBehindTheInput) {
  EXPECT_EQ(pool("f32[1,1,6]", "{kernel_shape = [3], strides = [2]}"), "f32[1,1,2]");
  EXPECT_EQ(pool("f32[1,1,6]", "{kernel_shape = [3], strides = [2], ceil_mode = 1}"), "f32[1,1,3]");
  EXPECT_EQ(pool("f32[1,1,2]", "{kernel_shape = [3], strides = [3], pads = [1, 1], ceil_mode = 1}"), "f32[1,1,1]");
}

TEST(PoolingShape, Refusals) {
  EXPECT_THAT(pool("f32[1,1,6]", "{kernel_shape = [3, 3]}"), HasSubstr("kernel_shape"));
  EXPECT_THAT(pool("f32[1,1,2]", "{kernel_shape = [3]}"), HasSubstr("larger than its padded input of 2"));
  EXPECT_THAT(pool("f32[6]", "{kernel_shape = [3]}"), HasSubstr("rank"));
  EXPECT_THAT(pool("i32[1,1,6]", "{kernel_shape = [3]}"), HasSubstr("8-bit"));
  EXPECT_THAT(pool("f32[1,1,6]", "{}"), HasSubstr("kernel_shape"));
}

TEST(PoolingShape, GlobalIndicesAndUnpool) {
  EXPECT_EQ(pool("f32[N,C,H,W]", "", "GlobalAveragePool"), "f32[N,C,1,1]");
  EXPECT_EQ(inferred("(%x: f32[1,1,4,4]) -> (%y, %i) { %y, %i = MaxPool %x {kernel_shape = [2, 2]} }"),
            "f32[1,1,3,3] i64[1,1,3,3]");
  EXPECT_EQ(
      inferred("(%x: f32[1,1,2], %i: i64[1,1,2]) -> %y { %y = MaxUnpool %x, %i {kernel_shape = [2], strides = [2]} }"),
      "f32[1,1,4]");
  EXPECT_EQ(inferred("(%x: f32[1,1,2], %i: i64[1,1,2]) -> %y { %s = Constant {value = dense<i64[3]: 1, 1, 7>} "
                     "%y = MaxUnpool %x, %i, %s {kernel_shape = [2]} }"),
            "f32[1,1,7]");
}

TEST(PoolingShape, Boxes) {
  EXPECT_EQ(inferred("(%x: f32[2,C,8,8], %r: f32[R,5]) -> %y { %y = MaxRoiPool %x, %r {pooled_shape = [2, 3]} }"),
            "f32[R,C,2,3]");
  EXPECT_EQ(
      inferred("(%x: f32[2,C,8,8], %r: f32[R,4], %b: i64[R]) -> %y { %y = RoiAlign %x, %r, %b {output_height = 4} }"),
      "f32[R,C,4,1]");
  EXPECT_THAT(inferred("(%x: f32[2,3,8,8], %r: f32[R,5], %b: i64[R]) -> %y { %y = RoiAlign %x, %r, %b }"),
              HasSubstr("needs 4"));
}

}  // namespace
}  // namespace tenon
