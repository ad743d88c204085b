#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string alone(std::string_view op, std::string_view x, std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}
std::string over(std::string_view op, std::string_view x, std::string_view axes, std::string_view attributes = "") {
  return inferred(
      str("(%x: ", x, ") -> %y { %a = Constant {value = dense<", axes, ">} %y = ", op, " %x, %a ", attributes, " }"));
}

TEST(ReduceRule, FoldsAxes) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(over(op, "f16[N,3,4]", "i64[1]: -1"), "f16[N,3,1]");
    EXPECT_EQ(over(op, "f16[N,3,4]", "i64[2]: 0, -1", "{keepdims = 0}"), "f16[3]");
    EXPECT_EQ(alone(op, "f16[N,3]"), "f16[1,1]");
    EXPECT_EQ(alone(op, "f16[N,3]", "{keepdims = 0}"), "f16[]");
    EXPECT_EQ(alone(op, "f16[N,3]", "{noop_with_empty_axes = 1}"), "f16[N,3]");
    EXPECT_EQ(over(op, "f16[N,3]", "i64[0]:"), "f16[1,1]");
    EXPECT_EQ(alone(op, "f16[*]"), "f16[*]");
    EXPECT_EQ(alone(op, "i32[]"), "i32[]");
    EXPECT_THAT(over(op, "f16[N,3]", "i64[1]: 2"), HasSubstr("the axes of "));
  }
  EXPECT_EQ(alone("ReduceMax", "bool[2]", "{keepdims = 0}"), "bool[]");
  EXPECT_THAT(alone("ReduceSum", "bool[2]"), HasSubstr("error: "));
}

TEST(ReduceRule, AxesThatNobodyKnows) {
  const auto unknown = [](std::string_view axes, int keepdims) {
    return inferred(
        str("(%x: f32[N,3,4], %a: ", axes, ") -> %y { %y = ReduceSum %x, %a {keepdims = ", keepdims, "} }"));
  };
  EXPECT_EQ(unknown("i64[2]", 1), "f32[?,?,?]");
  EXPECT_EQ(unknown("i64[2]", 0), "f32[?]");
  EXPECT_EQ(unknown("i64[0]", 0), "f32[*]");
  EXPECT_EQ(unknown("i64[K]", 0), "f32[*]");
  EXPECT_EQ(unknown("i64[*]", 1), "f32[?,?,?]");
}

TEST(ReduceRule, ShapesFlowThrough) {
  const auto spelled = [](std::string_view body) {
    return inferred(str("(%one: f32[], %x: f32[N,3,4]) -> %y { %s = Shape %x ", body, " %y = Expand %one, %v }"));
  };
  EXPECT_EQ(spelled("%v = ReduceProd %s"), "f32[12*N]");
  EXPECT_EQ(spelled("%v = ReduceSum %s"), "f32[N + 7]");
  EXPECT_EQ(spelled("%z = Constant {value = dense<i64[1]: 0>} %v = ReduceProd %s, %z"), "f32[12*N]");
  EXPECT_EQ(spelled("%v = ReduceProd %s {noop_with_empty_axes = 1}"), "f32[N,3,4]");
  EXPECT_EQ(spelled("%m = ReduceMax %s %n = ReduceMin %m %v = ReduceProd %n"), spelled("%v = ReduceMax %s"));
  EXPECT_THAT(spelled("%v = ReduceMax %s"), HasSubstr("max("));
  EXPECT_EQ(spelled("%v = ReduceMean %s"), "f32[?]");
  EXPECT_EQ(inferred("(%one: f32[], %x: f32[N,?]) -> %y { %s = Shape %x %v = ReduceProd %s %y = Expand %one, %v }"),
            "f32[?]");
}

TEST(ReduceRule, PositionsOfExtremes) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    EXPECT_EQ(alone(op, "f32[N,3]"), "i64[1,3]") << op;
    EXPECT_EQ(alone(op, "u8[N,3]", "{axis = -1, keepdims = 0}"), "i64[N]") << op;
    EXPECT_EQ(alone(op, "u8[*]"), "i64[*]") << op;
    EXPECT_THAT(alone(op, "f32[N,3]", "{axis = 2}"), HasSubstr("error: ")) << op;
    EXPECT_THAT(alone(op, "f32[N,0]", "{axis = 1}"), HasSubstr("is empty")) << op;
  }
}

TEST(ReduceRule, RunningSums) {
  for (const char* op : {"CumSum", "CumProd"}) {
    EXPECT_EQ(over(op, "f32[N,3]", "i32[]: -2"), "f32[N,3]") << op;
    EXPECT_THAT(over(op, "f32[N,3]", "i64[]: 2"), HasSubstr("error: ")) << op;
    EXPECT_THAT(over(op, "f32[N,3]", "i64[2]: 0, 1"), HasSubstr("the axis must be one number")) << op;
    EXPECT_THAT(inferred(str("(%x: f32[3], %a: i64[0]) -> %y { %y = ", op, " %x, %a }")),
                HasSubstr("the axis must be one number, it has shape [0]"))
        << op;
  }
}

}  // namespace
}  // namespace tenon
