#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string alone(std::string_view op, std::string_view x, std::string_view attributes) {
  return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}

TEST(CastRule, KeepsTheShape) {
  EXPECT_EQ(alone("Cast", "f32[N,3]", "{to = type<f16[*]>}"), "f16[N,3]");
  EXPECT_EQ(alone("Cast", "str[*]", "{to = type<i4[*]>}"), "i4[*]");
  EXPECT_EQ(inferred("(%x: f32[N], %t: f8e4m3fn[*]) -> %y { %y = CastLike %x, %t }"), "f8e4m3fn[N]");
  EXPECT_EQ(alone("BitCast", "f32[N]", "{to = type<i32[*]>}"), "i32[N]");
}

TEST(CastRule, Refuses) {
  EXPECT_THAT(alone("Cast", "f32[N]", ""), HasSubstr("'to'"));
  EXPECT_THAT(alone("Cast", "f32[N]", "{to = 1}"), HasSubstr("to"));
  EXPECT_THAT(alone("Cast", "f32[N]", "{to = type<seq(f32[*])>}"), HasSubstr("must hold a tensor type"));
  EXPECT_THAT(alone("Cast", "f32[N]", R"({to = type<f8e8m0[*]>, round_mode = "even"})"), HasSubstr("even"));
  EXPECT_THAT(alone("BitCast", "f32[N]", "{to = type<f16[*]>}"), HasSubstr("reads the bits of f32 as f16"));
  EXPECT_THAT(alone("BitCast", "str[N]", "{to = type<i64[*]>}"), HasSubstr("neither may be a string"));
}

TEST(CastRule, ShapesFlowThroughWideIntegers) {
  const auto through = [](std::string_view to) {
    return inferred(str("(%one: f32[], %x: f32[N,3]) -> %y { %s = Shape %x %c = Cast %s {to = type<", to,
                        ">} %v = Cast %c {to = type<i64[*]>} %y = Expand %one, %v }"));
  };
  EXPECT_EQ(through("i32[*]"), "f32[N,3]");
  EXPECT_EQ(through("i8[*]"), "f32[?,?]");
  EXPECT_EQ(through("f32[*]"), "f32[?,?]");
  EXPECT_EQ(through("bool[*]"), "f32[?,1]");
}

}  // namespace
}  // namespace tenon
