#include <tenon/ops/resize.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string scaled(std::string_view x, std::string_view scales, std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ") -> %y { %s = Constant {value = dense<", scales, ">} %y = Resize %x, _, %s ",
                      attributes, " }"));
}
std::string sized(std::string_view x, std::string_view sizes, std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ") -> %y { %s = Constant {value = dense<", sizes, ">} %y = Resize %x, _, _, %s ",
                      attributes, " }"));
}

TEST(ResizeShape, ScalesAndSizes) {
  EXPECT_EQ(scaled("f32[1,3,5,7]", "f32[4]: 1, 1, 2, 0.5"), "f32[1,3,10,3]");
  EXPECT_EQ(scaled("f32[N,3,H,W]", "f32[4]: 1, 1, 2, 2"), "f32[N,3,2*H,2*W]");
  EXPECT_EQ(scaled("f32[N,3,H,8]", "f32[2]: 0.5, 0.5", "{axes = [2, 3]}"), "f32[N,3,?,4]");
  EXPECT_EQ(sized("f32[N,3,H,W]", "i64[2]: 4, 6", "{axes = [-1, -2]}"), "f32[N,3,6,4]");
  EXPECT_EQ(sized("f32[1,1,2,4]", "i64[2]: 7, 8", R"({axes = [2, 3], keep_aspect_ratio_policy = "not_larger"})"),
            "f32[1,1,4,8]");
  EXPECT_EQ(sized("f32[1,1,2,4]", "i64[2]: 7, 8", R"({axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"})"),
            "f32[1,1,7,14]");
  EXPECT_EQ(inferred("(%x: f32[1,3,5,7], %s: f32[4]) -> %y { %y = Resize %x, _, %s }"), "f32[?,?,?,?]");
  EXPECT_EQ(sized("f32[*]", "i64[2]: 4, 6"), "f32[*]");
}

TEST(ResizeShape, Refusals) {
  EXPECT_THAT(inferred("(%x: f32[1,3]) -> %y { %y = Resize %x }"), HasSubstr("scales or sizes"));
  EXPECT_THAT(scaled("f32[1,3]", "f32[3]: 1, 1, 1"), HasSubstr("has 3 elements, it needs 2"));
  EXPECT_THAT(scaled("f32[1,3]", "f32[2]: 1, -1"), HasSubstr("scale -1"));
  EXPECT_THAT(scaled("str[1,3]", "f32[2]: 1, 2", R"({mode = "linear"})"), HasSubstr("cannot interpolate"));
  EXPECT_THAT(scaled("f32[1,3]", "f32[2]: 1, 2", "{axes = [0, 0]}"), HasSubstr("axes"));
}

TEST(ResizeShape, GridsAndBlocks) {
  EXPECT_EQ(inferred("(%x: f32[N,C,8,8], %g: f32[N,H,W,2]) -> %y { %y = GridSample %x, %g }"), "f32[N,C,H,W]");
  EXPECT_THAT(inferred("(%x: f32[N,C,8,8], %g: f32[N,H,W,3]) -> %y { %y = GridSample %x, %g }"),
              HasSubstr("does not fit"));
  const auto affine = [](std::string_view theta) {
    return inferred(
        str("(%t: ", theta, ") -> %y { %s = Constant {value = dense<i64[4]: 2, 3, 5, 6>} %y = AffineGrid %t, %s }"));
  };
  EXPECT_EQ(affine("f32[2,2,3]"), "f32[2,5,6,2]");
  EXPECT_THAT(affine("f32[2,3,4]"), HasSubstr("theta"));
  const auto blocks = [](std::string_view x) {
    return inferred(
        str("(%x: ", x,
            ") -> %y { %i = Constant {value = dense<i64[2]: 5, 5>} %b = Constant {value = dense<i64[2]: 1, 5>} "
            "%y = Col2Im %x, %i, %b }"));
  };
  EXPECT_EQ(blocks("f32[N,10,5]"), "f32[N,2,5,5]");
  EXPECT_THAT(blocks("f32[N,9,5]"), HasSubstr("whole number of blocks"));
  EXPECT_THAT(blocks("f32[N,10,6]"), HasSubstr("has 5 blocks, input has 6"));
}

}  // namespace
}  // namespace tenon
