#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string pair(std::string_view op, std::string_view a, std::string_view b, std::string_view attributes = "") {
  return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = ", op, " %a, %b ", attributes, " }"));
}
// The shape that `body` computes in %v from the extents of %x, as Expand infers it.
std::string spelled(std::string_view x, std::string_view body) {
  return inferred(str("(%one: f32[], %x: ", x, ") -> %y { %s = Shape %x ", body, " %y = Expand %one, %v }"));
}
// v = op(the shape of x, a constant)
std::string with_shape(std::string_view op, std::string_view x, std::string_view constant,
                       std::string_view attributes = "") {
  return spelled(x, str("%c = Constant {value = dense<", constant, ">} %v = ", op, " %s, %c ", attributes));
}

TEST(ArithmeticRule, BroadcastsWhatIsKnown) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(pair(op, "f32[2,1,4]", "f32[3,1]"), "f32[2,3,4]");
    EXPECT_EQ(pair(op, "f32[N,4]", "f32[]"), "f32[N,4]");
    EXPECT_EQ(pair(op, "f32[N,1]", "f32[1,M]"), "f32[N,M]");
    EXPECT_EQ(pair(op, "f32[?,4]", "f32[3,1]"), "f32[3,4]");
    EXPECT_EQ(pair(op, "f32[*]", "f32[3]"), "f32[*]");
    EXPECT_EQ(pair(op, "f32[0]", "f32[1]"), "f32[0]");
    EXPECT_THAT(pair(op, "f32[2]", "f32[3]"), HasSubstr("error: "));
  }
}

TEST(ArithmeticRule, ElementTypes) {
  EXPECT_EQ(pair("Pow", "i32[2]", "f32[2]"), "i32[2]");
  EXPECT_EQ(pair("Add", "i4[2]", "i4[2]"), "i4[2]");
  EXPECT_THAT(pair("Add", "f32[2]", "f64[2]"), HasSubstr("error: "));
  EXPECT_THAT(pair("Add", "bool[2]", "bool[2]"), HasSubstr("float and integer tensors"));
  EXPECT_THAT(pair("BitwiseAnd", "f32[2]", "f32[2]"), HasSubstr("integer tensors"));
  EXPECT_THAT(pair("BitShift", "i32[2]", "i32[2]", R"({direction = "LEFT"})"), HasSubstr("unsigned integer tensors"));
  EXPECT_EQ(pair("BitShift", "u8[2]", "u8[1]", R"({direction = "LEFT"})"), "u8[2]");
  EXPECT_THAT(pair("BitShift", "u8[2]", "u8[1]"), HasSubstr("direction"));
  EXPECT_THAT(pair("BitShift", "u8[2]", "u8[1]", R"({direction = "UP"})"), HasSubstr("UP"));
  EXPECT_THAT(inferred("(%x: i32[2]) -> %y { %y = Exp %x }"), HasSubstr("float tensors"));
}

TEST(ArithmeticRule, ShapesFlowThroughSums) {
  EXPECT_EQ(with_shape("Add", "f32[N,3]", "i64[2]: 1, 2"), "f32[N + 1,5]");
  EXPECT_EQ(with_shape("Sub", "f32[N,3]", "i64[]: 1"), "f32[N - 1,2]");
  EXPECT_EQ(with_shape("Mul", "f32[N,3]", "i64[1]: 2"), "f32[2*N,6]");
  EXPECT_EQ(spelled("f32[N,3]", "%v = Sum %s, %s, %s"), "f32[3*N,9]");
  EXPECT_EQ(spelled("f32[N,3]", "%m = Neg %s %v = Neg %m"), "f32[N,3]");
}

TEST(ArithmeticRule, ShapesFlowThroughQuotients) {
  EXPECT_EQ(with_shape("Div", "f32[N,7]", "i64[]: 2"), "f32[N floordiv 2,3]");
  EXPECT_EQ(with_shape("Mod", "f32[N,7]", "i64[]: 2"), "f32[N mod 2,1]");
  EXPECT_EQ(with_shape("Mod", "f32[N,7]", "i64[]: 2", "{fmod = 1}"), "f32[N mod 2,1]");
  // N - 3 may be negative: rounding towards zero is no floordiv then.
  EXPECT_EQ(spelled("f32[N,7]",
                    "%c = Constant {value = dense<i64[]: 3>} %d = Sub %s, %c "
                    "%two = Constant {value = dense<i64[]: 2>} %v = Div %d, %two"),
            "f32[?,2]");
  EXPECT_EQ(with_shape("Div", "f32[N,7]", "i64[2]: 0, 1"), "f32[?,7]");
}

TEST(ArithmeticRule, ShapesFlowThroughExtremes) {
  EXPECT_EQ(with_shape("Max", "f32[2,7]", "i64[]: 3"), "f32[3,7]");
  EXPECT_EQ(with_shape("Min", "f32[2,7]", "i64[]: 3"), "f32[2,3]");
  EXPECT_THAT(with_shape("Min", "f32[N,7]", "i64[]: 3"), HasSubstr("min("));
}

TEST(ArithmeticRule, FloatsAreNoExtents) {
  // 7 / 2 is 3.5 here, which Floor and Cast would make 3 and Ceil and Cast 4: not followed.
  EXPECT_EQ(spelled("f32[7]",
                    "%f = Cast %s {to = type<f32[*]>} %two = Constant {value = dense<f32[]: 2>} %h = Div %f, %two "
                    "%c = Ceil %h %v = Cast %c {to = type<i64[*]>}"),
            "f32[?]");
}

}  // namespace
}  // namespace tenon
