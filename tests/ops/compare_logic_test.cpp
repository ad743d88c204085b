#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string pair(std::string_view op, std::string_view a, std::string_view b) {
  return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = ", op, " %a, %b }"));
}
std::string where(std::string_view condition, std::string_view x, std::string_view y) {
  return inferred(str("(%c: ", condition, ", %x: ", x, ", %y: ", y, ") -> %o { %o = Where %c, %x, %y }"));
}
// Where(op(shape of x, constant), 5, shape of x) as a shape: 5 where the comparison is known to hold.
std::string chosen(std::string_view x, std::string_view op, int64_t constant) {
  return inferred(str("(%one: f32[], %x: ", x, ") -> %y { %s = Shape %x %c = Constant {value = dense<i64[]: ", constant,
                      ">} %five = Constant {value = dense<i64[]: 5>} %t = ", op,
                      " %s, %c %v = Where %t, %five, %s %y = Expand %one, %v }"));
}

TEST(CompareRule, GivesBooleans) {
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    EXPECT_EQ(pair(op, "f16[2,1]", "f16[N]"), "bool[2,N]") << op;
    EXPECT_EQ(pair(op, "i4[*]", "i4[3]"), "bool[*]") << op;
    EXPECT_THAT(pair(op, "f32[2]", "f32[3]"), HasSubstr("error: ")) << op;
    EXPECT_THAT(pair(op, "f32[2]", "i32[2]"), HasSubstr("error: ")) << op;
  }
  for (const char* op : {"And", "Or", "Xor"}) {
    EXPECT_EQ(pair(op, "bool[2,1]", "bool[3]"), "bool[2,3]") << op;
    EXPECT_THAT(pair(op, "i32[2]", "i32[2]"), HasSubstr("bool tensors")) << op;
  }
  EXPECT_EQ(pair("Equal", "str[2]", "str[1]"), "bool[2]");
  EXPECT_THAT(pair("Less", "str[2]", "str[1]"), HasSubstr("error: "));
  EXPECT_EQ(inferred("(%x: f8e5m2[N]) -> (%a, %b) { %a = IsNaN %x %b = IsInf %x {detect_negative = 0} }"),
            "bool[N] bool[N]");
  EXPECT_THAT(inferred("(%x: i32[2]) -> %y { %y = IsNaN %x }"), HasSubstr("float tensors"));
}

TEST(CompareRule, WhereBroadcastsAllThree) {
  EXPECT_EQ(where("bool[2,1]", "str[3]", "str[]"), "str[2,3]");
  EXPECT_EQ(where("bool[N]", "f32[1]", "f32[4,1]"), "f32[4,N]");
  EXPECT_EQ(where("bool[*]", "f32[1]", "f32[4,1]"), "f32[*]");
  EXPECT_THAT(where("bool[2]", "f32[3]", "f32[]"), HasSubstr("the condition of Where"));
  EXPECT_THAT(where("bool[2]", "f32[3]", "f32[4]"), HasSubstr("X and Y of Where"));
  EXPECT_THAT(where("i32[2]", "f32[2]", "f32[2]"), HasSubstr("bool"));
}

TEST(CompareRule, ShapesFlowThroughChoices) {
  EXPECT_EQ(chosen("f32[N,3,1]", "Equal", -1), "f32[N,3,1]");  // an extent is never -1
  EXPECT_EQ(chosen("f32[N,3,1]", "Equal", 3), "f32[?,5,1]");
  EXPECT_EQ(chosen("f32[N,3,1]", "Less", 0), "f32[N,3,1]");
  EXPECT_EQ(chosen("f32[N,3,1]", "Less", 2), "f32[?,3,5]");
  EXPECT_EQ(chosen("f32[N,3,1]", "GreaterOrEqual", 0), "f32[5,5,5]");
  EXPECT_EQ(chosen("f32[N,3,1]", "LessOrEqual", 1), "f32[?,3,5]");
  EXPECT_EQ(chosen("f32[N,3,1]", "Greater", 1), "f32[?,5,1]");
  EXPECT_EQ(inferred("(%one: f32[], %x: f32[N,5]) -> %y { %s = Shape %x %five = Constant {value = dense<i64[]: 5>} "
                     "%e = Equal %s, %five %t = Not %e %v = Where %t, %s, %five %y = Expand %one, %v }"),
            "f32[?,5]");
}

}  // namespace
}  // namespace tenon
