#include <tenon/ops/convolution.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::inferred;

std::string conv(std::string_view x, std::string_view w, std::string_view attributes = "",
                 std::string_view op = "Conv") {
  return inferred(str("(%x: ", x, ", %w: ", w, ") -> %y { %y = ", op, " %x, %w ", attributes, " }"));
}

TEST(ConvolutionShape, StridesPadsAndDilations) {
  EXPECT_EQ(conv("f32[1,3,224,224]", "f32[64,3,7,7]", "{strides = [2, 2], pads = [3, 3, 3, 3]}"), "f32[1,64,112,112]");
  EXPECT_EQ(conv("f32[1,3,10]", "f32[4,3,3]", "{dilations = [2]}"), "f32[1,4,6]");
  EXPECT_EQ(conv("f16[2,4,5,6,7]", "f16[8,2,1,2,3]", "{group = 2}"), "f16[2,8,5,5,5]");
  EXPECT_EQ(conv("f32[2,4]", "f32[8,4]"), "f32[2,8]");
  EXPECT_EQ(conv("f32[1,1,5]", "f32[1,1,3]", "{pads = [-1, 0]}"), "f32[1,1,2]");
}

TEST(ConvolutionShape, AutoPad) {
  EXPECT_EQ(conv("f32[1,1,5,7]", "f32[1,1,3,3]", R"({auto_pad = "SAME_UPPER", strides = [2, 3]})"), "f32[1,1,3,3]");
  EXPECT_EQ(conv("f32[1,1,5,7]", "f32[1,1,3,3]", R"({auto_pad = "VALID"})"), "f32[1,1,3,5]");
  EXPECT_THAT(conv("f32[1,1,5]", "f32[1,1,3]", R"({auto_pad = "SAME"})"), HasSubstr("auto_pad"));
}

TEST(ConvolutionShape, SymbolsFlow) {
  EXPECT_EQ(conv("f32[N,3,H,W]", "f32[8,3,3,3]", "{pads = [1, 1, 1, 1]}"), "f32[N,8,H,W]");
  EXPECT_EQ(conv("f32[N,3,?,?]", "f32[8,3,3,3]"), "f32[N,8,?,?]");
  EXPECT_EQ(conv("f32[*]", "f32[8,3,3,3]"), "f32[*]");
  EXPECT_EQ(conv("f32[1,3,9,9]", "f32[*]"), "f32[1,?,?,?]");
  EXPECT_EQ(conv("f32[1,3,9,9]", "f32[*]", "{kernel_shape = [3, 1]}"), "f32[1,?,7,9]");
}

TEST(ConvolutionShape, Refusals) {
  EXPECT_THAT(conv("f32[1,3,9,9]", "f32[8,4,3,3]"), AllOf(HasSubstr("3 channels"), HasSubstr("takes 4")));
  EXPECT_THAT(conv("f32[1,3,9,9]", "f32[8,3,3]"), HasSubstr("one rank"));
  EXPECT_THAT(conv("f32[1,3,2,9]", "f32[8,3,3,3]"), HasSubstr("larger than its padded input of 2"));
  EXPECT_THAT(conv("f32[1,3,9,9]", "f32[8,3,3,3]", "{strides = [0, 1]}"), HasSubstr("strides"));
  EXPECT_THAT(conv("f32[1,3,9,9]", "f32[8,3,3,3]", "{strides = [1]}"), HasSubstr("has 1 numbers, its input needs 2"));
  EXPECT_THAT(conv("f32[1,3,9,9]", "f32[8,3,3,3]", "{kernel_shape = [3, 5]}"), HasSubstr("says 5 at axis 1"));
  EXPECT_THAT(conv("f32[1,4,9]", "f32[3,2,3]", "{group = 2}"), HasSubstr("multiple of its group"));
  EXPECT_THAT(conv("f32[1,4,9]", "f32[3,2,3]", "{group = 0}"), HasSubstr("group"));
  EXPECT_THAT(conv("i32[1,4,9]", "i32[3,4,3]"), HasSubstr("float"));
  EXPECT_THAT(inferred("(%x: f32[1,3,9], %w: f32[4,3,1], %b: f32[3]) -> %y { %y = Conv %x, %w, %b }"),
              HasSubstr("one element for each of 4"));
}

TEST(ConvolutionShape, NumbersThatWouldOverflowAreRefused) {
  const auto refused = [](std::string_view attributes) { return conv("f32[1,3,9]", "f32[8,3,3]", attributes); };
  EXPECT_THAT(refused(R"({auto_pad = "SAME_UPPER", dilations = [9223372036854775807]})"), HasSubstr("dilations"));
  EXPECT_THAT(refused("{strides = [9223372036854775807]}"), HasSubstr("strides"));
  EXPECT_THAT(refused("{pads = [-9223372036854775807, 0]}"), HasSubstr("pads"));
  EXPECT_THAT(refused("{group = 9223372036854775807}"), HasSubstr("9223372036854775807 groups"));
  EXPECT_THAT(refused("{kernel_shape = [9223372036854775807]}"), HasSubstr("9223372036854775807"));
  EXPECT_THAT(inferred("(%x: f32[1,0,2], %w: f32[1,0,2], %o: f32[1,4,1]) -> %y {\n"
                       "  %y = DeformConv %x, %w, %o {offset_group = 9223372036854775807} }"),
              HasSubstr("offset"));
}

// The window is as large as its input, whatever that is, and the input is then cropped.
TEST(ConvolutionShape, ASymbolicInputMayBeCertainlyTooSmall) {
  EXPECT_THAT(conv("f32[1,1,N]", "f32[1,1,N]", "{pads = [-5, 0]}"), HasSubstr("larger than its padded input"));
}

TEST(ConvolutionShape, Transpose) {
  const auto shape = [](std::string_view x, std::string_view w, std::string_view attributes) {
    return conv(x, w, attributes, "ConvTranspose");
  };
  EXPECT_EQ(shape("f32[1,2,3,3]", "f32[2,4,3,3]", ""), "f32[1,4,5,5]");
  EXPECT_EQ(shape("f32[1,2,3,3]", "f32[2,4,3,3]", "{strides = [3, 2], group = 2, output_padding = [1, 1]}"),
            "f32[1,8,10,8]");
  EXPECT_EQ(shape("f32[1,2,N]", "f32[2,4,2]", "{strides = [2]}"), "f32[1,4,2*N]");
  EXPECT_EQ(shape("f32[1,2,3]", "f32[2,4,2]", "{output_shape = [9], strides = [3]}"), "f32[1,4,9]");
  EXPECT_EQ(shape("f32[1,2,3]", "f32[2,4,5]", R"({auto_pad = "SAME_LOWER", strides = [3]})"), "f32[1,4,9]");
  EXPECT_THAT(shape("f32[1,2,3]", "f32[3,4,5]", ""), HasSubstr("channels"));
  EXPECT_THAT(shape("f32[1,2,1]", "f32[2,4,1]", "{pads = [1, 1]}"), HasSubstr("cut more"));
}

TEST(ConvolutionShape, Integers) {
  EXPECT_EQ(conv("u8[1,1,4,4]", "i8[2,1,3,3]", "", "ConvInteger"), "i32[1,2,2,2]");
  EXPECT_THAT(conv("i32[1,1,4,4]", "i8[2,1,3,3]", "", "ConvInteger"), HasSubstr("8-bit"));
  const std::string operands = "%x: u8[1,1,4,4], %s: f32[], %z: u8[], %w: i8[2,1,3,3], %wz: i8[2], %yz: i8[]";
  EXPECT_EQ(inferred(str("(", operands, ", %ws: f32[2]) -> %y { %y = QLinearConv %x, %s, %z, %w, %ws, %wz, %s, %yz }")),
            "i8[1,2,2,2]");
  EXPECT_THAT(
      inferred(str("(", operands, ", %ws: f32[3]) -> %y { %y = QLinearConv %x, %s, %z, %w, %ws, %wz, %s, %yz }")),
      HasSubstr("one element for each of 2"));
}

TEST(ConvolutionShape, Deformable) {
  const auto shape = [](std::string_view offset, std::string_view mask) {
    return inferred(str("(%x: f32[1,2,4,4], %w: f32[3,2,2,2], %o: ", offset, ", %b: f32[3], %m: ", mask,
                        ") -> %y { %y = DeformConv %x, %w, %o, %b, %m {offset_group = 2} }"));
  };
  EXPECT_EQ(shape("f32[1,16,3,3]", "f32[1,8,3,3]"), "f32[1,3,3,3]");
  EXPECT_THAT(shape("f32[1,8,3,3]", "f32[1,8,3,3]"), AllOf(HasSubstr("offset"), HasSubstr("needs 16")));
  EXPECT_THAT(shape("f32[1,16,3,3]", "f32[1,8,3,4]"), AllOf(HasSubstr("mask"), HasSubstr("needs 3 at axis 3")));
  EXPECT_THAT(shape("f32[2,16,3,3]", "f32[1,8,3,3]"), AllOf(HasSubstr("offset"), HasSubstr("needs 1 at axis 0")));
}

TEST(ConvolutionShape, CausalWithState) {
  EXPECT_EQ(inferred("(%x: f32[B,4,L], %w: f32[4,1,3]) -> (%y, %s) { %y, %s = CausalConvWithState %x, %w }"),
            "f32[B,4,L] f32[B,4,2]");
  EXPECT_THAT(inferred("(%x: f32[2,4,8], %w: f32[4,2,3]) -> %y { %y = CausalConvWithState %x, %w }"),
              HasSubstr("weight"));
  EXPECT_THAT(inferred("(%x: f32[2,4,8], %w: f32[5,1,3]) -> %y { %y = CausalConvWithState %x, %w }"),
              HasSubstr("channels"));
}

}  // namespace
}  // namespace tenon
