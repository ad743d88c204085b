#include <tenon/ops/shape.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::inferred;
using ::testing::StartsWith;

// One operator on %x of the given type, with a constant list of integers as second operand.
std::string with_list(std::string_view op, std::string_view type, std::string_view list,
                      std::string_view attributes = "") {
  return inferred(str("(%x: ", type, ") -> %y { %l = Constant {value = dense<", list, ">} %y = ", op, " %x, %l ",
                      attributes, " }"));
}
std::string alone(std::string_view op, std::string_view type, std::string_view attributes = "") {
  return inferred(str("(%x: ", type, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}
// The shape given by an integer vector, as Expand infers it.
std::string spelled(std::string_view inputs, std::string_view body) {
  return inferred(str("(%one: f32[], ", inputs, ") -> %y { ", body, " %y = Expand %one, %v }"));
}

TEST(ShapeRule, ShapeCountsTheAxesAskedFor) {
  EXPECT_EQ(alone("Shape", "f32[2,N,4]"), "i64[3]");
  EXPECT_EQ(alone("Shape", "f32[2,N,4]", "{start = 1}"), "i64[2]");
  EXPECT_EQ(alone("Shape", "f32[2,N,4]", "{start = -1}"), "i64[1]");
  EXPECT_EQ(alone("Shape", "f32[2,N,4]", "{end = -1}"), "i64[2]");
  EXPECT_EQ(alone("Shape", "f32[2,N,4]", "{start = 2, end = 1}"), "i64[0]");
  EXPECT_EQ(alone("Shape", "f32[2,N,4]", "{start = -10, end = 10}"), "i64[3]");
  EXPECT_EQ(alone("Shape", "f32[]"), "i64[0]");
  EXPECT_EQ(alone("Shape", "f32[*]"), "i64[?]");
  EXPECT_EQ(alone("Size", "f32[*]"), "i64[]");
}

TEST(ShapeRule, ShapesFlowThroughVectors) {
  EXPECT_EQ(spelled("%x: f32[2,N,4]", "%v = Shape %x"), "f32[2,N,4]");
  EXPECT_EQ(spelled("%x: f32[2,N,4]", "%v = Shape %x {start = 1}"), "f32[N,4]");
  EXPECT_EQ(spelled("%x: f32[2,?,4]", "%v = Shape %x"), "f32[2,?,4]");
  EXPECT_EQ(spelled("%x: f32[2,N]", "%a = Constant {value = dense<i64[1]: 0>} %s = Size %x %v = Unsqueeze %s, %a"),
            "f32[2*N]");
  EXPECT_EQ(spelled("%x: f32[2,N]",
                    "%a = Constant {value = dense<i64[1]: 2>} %v = ConstantOfShape %a "
                    "{value = dense<i64[1]: 7>}"),
            "f32[7,7]");
  // A vector that became a matrix is no vector any more.
  EXPECT_EQ(spelled("%x: f32[2,N]",
                    "%m = Constant {value = dense<i64[2]: 1, 2>} %l = Constant {value = dense<i64[1]: -1>} "
                    "%s = Shape %x %r = Reshape %s, %m %v = Reshape %r, %l"),
            "f32[?,?]");
}

TEST(ShapeRule, ReshapeWithNumbers) {
  EXPECT_EQ(with_list("Reshape", "f32[2,3,4]", "i64[2]: 6, 4"), "f32[6,4]");
  EXPECT_EQ(with_list("Reshape", "f32[2,3,4]", "i64[2]: -1, 8"), "f32[3,8]");
  EXPECT_EQ(with_list("Reshape", "f32[2,3,4]", "i64[3]: 0, -1, 2"), "f32[2,6,2]");
  EXPECT_EQ(with_list("Reshape", "f32[0,3]", "i64[2]: 3, 0", "{allowzero = 1}"), "f32[3,0]");
  EXPECT_EQ(with_list("Reshape", "f32[1]", "i64[0]:"), "f32[]");
  EXPECT_EQ(with_list("Reshape", "f32[0,3]", "i64[2]: 0, -1"), "f32[0,3]");
}

TEST(ShapeRule, ReshapeWithSymbols) {
  EXPECT_EQ(with_list("Reshape", "f32[N,12]", "i64[3]: 0, 3, -1"), "f32[N,3,4]");
  EXPECT_EQ(with_list("Reshape", "f32[N,S,768]", "i64[4]: 0, 0, 12, -1"), "f32[N,S,12,64]");
  EXPECT_EQ(with_list("Reshape", "f32[N,12]", "i64[1]: -1"), "f32[12*N]");
  EXPECT_EQ(with_list("Reshape", "f32[N,12]", "i64[2]: -1, 4"), "f32[3*N,4]");
  EXPECT_EQ(with_list("Reshape", "f32[?,12]", "i64[2]: -1, 4"), "f32[?,4]");
  EXPECT_EQ(with_list("Reshape", "f32[*]", "i64[2]: -1, 4"), "f32[?,4]");
  EXPECT_EQ(inferred("(%x: f32[N,12], %s: i64[3]) -> %y { %y = Reshape %x, %s }"), "f32[?,?,?]");
  EXPECT_EQ(inferred("(%x: f32[N,12], %s: i64[?]) -> %y { %y = Reshape %x, %s }"), "f32[*]");
}

TEST(ShapeRule, ReshapeRefuses) {
  EXPECT_THAT(with_list("Reshape", "f32[2,3]", "i64[1]: 7"),
              AllOf(StartsWith("error"), HasSubstr("6 elements"), HasSubstr("7")));
  EXPECT_THAT(with_list("Reshape", "f32[2,3]", "i64[2]: -1, 4"), HasSubstr("6 elements do not divide by 4"));
  EXPECT_THAT(with_list("Reshape", "f32[2,3]", "i64[2]: -1, -1"), HasSubstr("-1 may stand once only"));
  EXPECT_THAT(with_list("Reshape", "f32[2,3]", "i64[2]: -2, 3"), HasSubstr("-1, 0 or positive"));
  EXPECT_THAT(with_list("Reshape", "f32[2]", "i64[2]: 2, 0"), HasSubstr("allowzero"));
  EXPECT_THAT(with_list("Reshape", "f32[0,3]", "i64[2]: -1, 0", "{allowzero = 1}"),
              HasSubstr("-1 is not determined beside"));
}

TEST(ShapeRule, Flatten) {
  EXPECT_EQ(alone("Flatten", "f32[2,N,4]"), "f32[2,4*N]");
  EXPECT_EQ(alone("Flatten", "f32[2,N,4]", "{axis = 0}"), "f32[1,8*N]");
  EXPECT_EQ(alone("Flatten", "f32[2,N,4]", "{axis = 3}"), "f32[8*N,1]");
  EXPECT_EQ(alone("Flatten", "f32[2,N,4]", "{axis = -1}"), "f32[2*N,4]");
  EXPECT_EQ(alone("Flatten", "f32[*]"), "f32[?,?]");
  EXPECT_EQ(alone("Flatten", "f32[]", "{axis = 0}"), "f32[1,1]");
  EXPECT_THAT(alone("Flatten", "f32[2,3]", "{axis = 4}"), HasSubstr("'axis' of Flatten is 4, outside [-2, 2]"));
}

TEST(ShapeRule, SqueezeAndUnsqueeze) {
  EXPECT_EQ(with_list("Squeeze", "f32[1,N,1]", "i64[1]: -1"), "f32[1,N]");
  EXPECT_EQ(with_list("Squeeze", "f32[1,N,1]", "i64[2]: 0, 1"), "f32[1]");
  EXPECT_EQ(alone("Squeeze", "f32[1,3,1]"), "f32[3]");
  EXPECT_EQ(alone("Squeeze", "f32[1,N,1]"), "f32[*]");
  EXPECT_EQ(inferred("(%x: f32[N,1], %a: i64[1]) -> %y { %y = Squeeze %x, %a }"), "f32[?]");
  EXPECT_THAT(with_list("Squeeze", "f32[1,3]", "i64[1]: 1"), HasSubstr("axis 1 has extent 3"));
  EXPECT_THAT(with_list("Squeeze", "f32[1,3]", "i64[1]: 2"), HasSubstr("axis 2"));
  EXPECT_EQ(with_list("Unsqueeze", "f32[N]", "i64[2]: 0, -1"), "f32[1,N,1]");
  EXPECT_EQ(with_list("Unsqueeze", "f32[3,4,5]", "i64[3]: 5, 4, 2"), "f32[3,4,1,5,1,1]");
  EXPECT_EQ(inferred("(%x: f32[N], %a: i64[2]) -> %y { %y = Unsqueeze %x, %a }"), "f32[?,?,?]");
  EXPECT_THAT(with_list("Unsqueeze", "f32[N]", "i64[2]: 0, 0"), HasSubstr("twice"));
}

TEST(ShapeRule, Expand) {
  EXPECT_EQ(with_list("Expand", "f32[3,1]", "i64[3]: 2, 1, 6"), "f32[2,3,6]");
  EXPECT_EQ(with_list("Expand", "f32[N,1]", "i64[2]: 1, 5"), "f32[N,5]");
  EXPECT_EQ(inferred("(%x: f32[1], %s: i64[3]) -> %y { %y = Expand %x, %s }"), "f32[?,?,?]");
  EXPECT_THAT(with_list("Expand", "f32[3]", "i64[1]: 4"), StartsWith("error"));
  EXPECT_THAT(with_list("Expand", "f32[3]", "i64[1]: -3"), HasSubstr("not negative"));
}

TEST(ShapeRule, ConstantOfShape) {
  EXPECT_EQ(inferred("() -> %y { %s = Constant {value = dense<i64[2]: 2, 3>} %y = ConstantOfShape %s }"), "f32[2,3]");
  EXPECT_EQ(inferred("(%x: f32[N,4]) -> %y { %s = Shape %x %y = ConstantOfShape %s {value = dense<i8[1]: 3>} }"),
            "i8[N,4]");
  EXPECT_EQ(inferred("(%s: i64[2]) -> %y { %y = ConstantOfShape %s }"), "f32[?,?]");
  EXPECT_THAT(inferred("(%s: i64[2,2]) -> %y { %y = ConstantOfShape %s }"), HasSubstr("must have rank 1"));
  EXPECT_THAT(inferred("(%s: i64[2]) -> %y { %y = ConstantOfShape %s {value = dense<f32[2]: 1.0, 2.0>} }"),
              HasSubstr("2 elements, one is wanted"));
}

std::string range_of(std::string_view type, std::string_view start, std::string_view limit, std::string_view delta) {
  return inferred(str("() -> %y { %s = Constant {value = dense<", type, "[]: ", start,
                      ">} %l = Constant {value = dense<", type, "[]: ", limit, ">} %d = Constant {value = dense<", type,
                      "[]: ", delta, ">} %y = Range %s, %l, %d }"));
}

TEST(ShapeRule, Range) {
  EXPECT_EQ(range_of("i64", "1", "6", "2"), "i64[3]");
  EXPECT_EQ(range_of("i64", "6", "1", "2"), "i64[0]");
  EXPECT_EQ(range_of("i32", "10", "4", "-2"), "i32[3]");
  EXPECT_EQ(range_of("f32", "1.0", "2.0", "0.25"), "f32[4]");
  EXPECT_EQ(range_of("f32", "0.0", "1.0", "0.3"), "f32[4]");
  EXPECT_THAT(range_of("i64", "0", "1", "0"), HasSubstr("delta of 0"));
  EXPECT_EQ(
      inferred("(%x: f32[N]) -> %y { %z = Constant {value = dense<i64[]: 0>} %o = Constant {value = dense<i64[]: 1>} "
               "%n = Size %x %y = Range %z, %n, %o }"),
      "i64[N]");
  EXPECT_EQ(inferred("(%s: i64[], %l: i64[], %d: i64[]) -> %y { %y = Range %s, %l, %d }"), "i64[?]");
  EXPECT_THAT(inferred("(%s: i64[2], %l: i64[], %d: i64[]) -> %y { %y = Range %s, %l, %d }"),
              HasSubstr("must be one number"));
}

TEST(ShapeRule, EyeLike) {
  EXPECT_EQ(alone("EyeLike", "f32[N,4]"), "f32[N,4]");
  EXPECT_EQ(alone("EyeLike", "f32[N,4]", "{dtype = type<i32[*]>}"), "i32[N,4]");
  EXPECT_THAT(alone("EyeLike", "f32[4]"), HasSubstr("must have rank 2"));
}

}  // namespace
}  // namespace tenon
