#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string quantized(std::string_view op, std::string_view x, std::string_view scale, std::string_view zero = "",
                      std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ", %s: ", scale, zero.empty() ? "" : ", %z: ", zero, ") -> %y { %y = ", op, " %x, %s",
                      zero.empty() ? " " : ", %z ", attributes, " }"));
}

TEST(QuantizeRule, ElementTypes) {
  EXPECT_EQ(quantized("QuantizeLinear", "f32[N,3]", "f32[]"), "u8[N,3]");
  EXPECT_EQ(quantized("QuantizeLinear", "f32[N,3]", "f32[]", "i4[]"), "i4[N,3]");
  EXPECT_EQ(quantized("QuantizeLinear", "f32[N,3]", "f32[]", "", "{output_dtype = type<f8e5m2[*]>}"), "f8e5m2[N,3]");
  EXPECT_THAT(quantized("QuantizeLinear", "f32[N,3]", "f32[]", "i8[]", "{output_dtype = type<u8[*]>}"),
              HasSubstr("output_dtype is u8, the zero point is i8"));
  EXPECT_EQ(quantized("DequantizeLinear", "i8[N,3]", "f16[]"), "f16[N,3]");
  EXPECT_EQ(quantized("DequantizeLinear", "i8[N,3]", "f16[]", "i8[]", "{output_dtype = type<f32[*]>}"), "f32[N,3]");
  EXPECT_THAT(quantized("DequantizeLinear", "i8[N,3]", "f16[]", "u8[]"), HasSubstr("error: "));
  EXPECT_EQ(inferred("(%x: f32[N,3]) -> (%y, %s, %z) { %y, %s, %z = DynamicQuantizeLinear %x }"), "u8[N,3] f32[] u8[]");
}

TEST(QuantizeRule, ShapesOfScales) {
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
    SCOPED_TRACE(op);
    const bool to = op[0] == 'Q';
    const auto rule = [&](std::string_view scale, std::string_view zero, std::string_view attributes) {
      return quantized(op, to ? "f32[2,3,5]" : "u8[2,3,5]", str("f32", scale), zero.empty() ? "" : str("u8", zero),
                       attributes);
    };
    const std::string good = to ? "u8[2,3,5]" : "f32[2,3,5]";
    EXPECT_EQ(rule("[]", "[1]", ""), good);
    EXPECT_EQ(rule("[3]", "[3]", ""), good);
    EXPECT_EQ(rule("[5]", "", "{axis = -1}"), good);
    EXPECT_EQ(rule("[2,3,3]", "[2,3,3]", "{axis = 2, block_size = 2}"), good);
    EXPECT_EQ(rule("[?]", "[?]", ""), good);
    EXPECT_THAT(rule("[5]", "", ""),
                HasSubstr("the scale has shape [5]; for x of shape [2,3,5], axis 1 and block_size 0 it"));
    EXPECT_THAT(rule("[2,3,2]", "", "{axis = 2, block_size = 2}"), HasSubstr("it must be [2,3,3]"));
    EXPECT_THAT(rule("[3]", "[1]", ""), HasSubstr("they must be alike"));
    EXPECT_THAT(rule("[3]", "", "{axis = 3}"), HasSubstr("error: "));
    EXPECT_THAT(rule("[]", "", "{block_size = -1}"), HasSubstr("block_size is -1"));
    EXPECT_EQ(rule("[2,1,5]", "", "{block_size = 9223372036854775807}"), good);
  }
}

}  // namespace
}  // namespace tenon
