#include <tenon/ops/movement.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string alone(std::string_view op, std::string_view type, std::string_view attributes = "") {
  return inferred(str("(%x: ", type, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}
std::string with_list(std::string_view op, std::string_view type, std::string_view list,
                      std::string_view attributes = "") {
  return inferred(str("(%x: ", type, ") -> %y { %l = Constant {value = dense<i64", list, ">} %y = ", op, " %x, %l ",
                      attributes, " }"));
}

TEST(MovementRule, Transpose) {
  EXPECT_EQ(alone("Transpose", "f32[2,N,4]"), "f32[4,N,2]");
  EXPECT_EQ(alone("Transpose", "f32[2,N,4]", "{perm = [1, 0, 2]}"), "f32[N,2,4]");
  EXPECT_EQ(alone("Transpose", "f32[*]", "{perm = [1, 0]}"), "f32[?,?]");
  EXPECT_EQ(alone("Transpose", "f32[*]"), "f32[*]");
  EXPECT_THAT(alone("Transpose", "f32[2,3]", "{perm = [0]}"), HasSubstr("names 1 axes of f32[2,3]"));
  EXPECT_THAT(alone("Transpose", "f32[2,3]", "{perm = [0, 0]}"), HasSubstr("axis 0 stands twice"));
  EXPECT_THAT(alone("Transpose", "f32[2,3]", "{perm = [0, 2]}"), HasSubstr("axis 2"));
  // ONNX counts them from the front only, and the passes read them so.
  EXPECT_THAT(alone("Transpose", "f32[2,2]", "{perm = [-1, 0]}"), HasSubstr("axis -1 in [-1, 0] is outside [0, 1]"));
  EXPECT_THAT(alone("Transpose", "f32[*]", "{perm = [1, 1]}"), HasSubstr("axis 1 stands twice"));
}

TEST(MovementRule, Concat) {
  const auto concat = [](std::string_view a, std::string_view b, int axis) {
    return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = Concat %a, %b {axis = ", axis, "} }"));
  };
  EXPECT_EQ(concat("f32[2,3]", "f32[2,4]", 1), "f32[2,7]");
  EXPECT_EQ(concat("f32[N,3]", "f32[1,3]", -2), "f32[N + 1,3]");
  EXPECT_EQ(concat("f32[?,3]", "f32[1,3]", 0), "f32[?,3]");
  EXPECT_EQ(concat("f32[N,?]", "f32[N,3]", 0), "f32[2*N,3]");
  EXPECT_EQ(concat("f32[*]", "f32[2,3]", 0), "f32[?,3]");
  EXPECT_EQ(concat("f32[*]", "f32[*]", 0), "f32[*]");
  EXPECT_THAT(concat("f32[2,3]", "f32[3,4]", 1), HasSubstr("operand 1 of Concat"));
  EXPECT_THAT(concat("f32[2,3]", "f32[2,3]", 2), HasSubstr("attribute 'axis'"));
  EXPECT_THAT(concat("f32[2,3]", "f32[2,3,1]", 0), HasSubstr("operand 1 of Concat"));
}

TEST(MovementRule, Split) {
  const auto split = [](std::string_view type, std::string_view lengths, std::string_view attributes) {
    return inferred(str("(%x: ", type, ") -> (%a, %b, %c) { ", lengths, " %a, %b, %c = Split %x",
                        lengths.empty() ? "" : ", %l ", attributes, " }"));
  };
  EXPECT_EQ(split("f32[6]", "", "{num_outputs = 3}"), "f32[2] f32[2] f32[2]");
  EXPECT_EQ(split("f32[7]", "", ""), "f32[3] f32[3] f32[1]");
  EXPECT_EQ(split("f32[2]", "", ""), "f32[1] f32[1] f32[0]");
  EXPECT_EQ(split("f32[N,6]", "", "{axis = -1}"), "f32[N,2] f32[N,2] f32[N,2]");
  EXPECT_EQ(split("f32[?,6]", "", ""), "f32[?,6] f32[?,6] f32[?,6]");
  EXPECT_EQ(split("f32[*]", "", ""), "f32[*] f32[*] f32[*]");
  const std::string_view lengths = "%l = Constant {value = dense<i64[3]: 1, 0, 5>}";
  EXPECT_EQ(split("f32[6]", lengths, ""), "f32[1] f32[0] f32[5]");
  EXPECT_EQ(split("f32[N]", lengths, ""), "f32[1] f32[0] f32[5]");
  EXPECT_THAT(split("f32[7]", lengths, ""), HasSubstr("adds up to 6, axis 0 of f32[7] has 7"));
  EXPECT_THAT(split("f32[6]", "", "{num_outputs = 2}"), HasSubstr("is 2, it has 3 results"));
  EXPECT_THAT(split("f32[6]", "%l = Constant {value = dense<i64[2]: 1, 5>}", ""), HasSubstr("2 lengths for 3 results"));
  EXPECT_THAT(split("f32[6]", "%l = Constant {value = dense<i64[3]: -1, 1, 6>}", ""), HasSubstr("negative length -1"));
}

// Slice of %x with constant lists.
std::string slice(std::string_view type, std::string_view starts, std::string_view ends, std::string_view axes = "",
                  std::string_view steps = "") {
  std::string text = str("(%x: ", type, ") -> %y { %s = Constant {value = dense<i64", starts,
                         ">} %e = Constant {value = dense<i64", ends, ">} ");
  if (!axes.empty()) text += str("%a = Constant {value = dense<i64", axes, ">} ");
  if (!steps.empty()) text += str("%t = Constant {value = dense<i64", steps, ">} ");
  return inferred(text + "%y = Slice %x, %s, %e, " + (axes.empty() ? "_" : "%a") + ", " + (steps.empty() ? "_" : "%t") +
                  " }");
}

TEST(MovementRule, SliceOfNumbers) {
  EXPECT_EQ(slice("f32[20,10]", "[1]: 3", "[1]: 7"), "f32[4,10]");
  EXPECT_EQ(slice("f32[20,10]", "[2]: 0, 0", "[2]: 3, 10"), "f32[3,10]");
  EXPECT_EQ(slice("f32[20]", "[1]: -5", "[1]: 9223372036854775807"), "f32[5]");
  EXPECT_EQ(slice("f32[20]", "[1]: 1000", "[1]: 1001"), "f32[0]");
  EXPECT_EQ(slice("f32[20]", "[1]: 5", "[1]: 2"), "f32[0]");
  EXPECT_EQ(slice("f32[20,10]", "[1]: 0", "[1]: 7", "[1]: -1", "[1]: 2"), "f32[20,4]");
  EXPECT_EQ(slice("f32[20]", "[1]: -1", "[1]: -9223372036854775808", "[1]: 0", "[1]: -1"), "f32[20]");
  EXPECT_EQ(slice("f32[20]", "[1]: 20", "[1]: 0", "[1]: 0", "[1]: -6"), "f32[4]");
  EXPECT_EQ(slice("f32[20]", "[1]: 0", "[1]: 20", "[1]: 0", "[1]: 9223372036854775807"), "f32[1]");
  EXPECT_EQ(slice("f32[20]", "[1]: 19", "[1]: -21", "[1]: 0", "[1]: -9223372036854775808"), "f32[1]");
  EXPECT_EQ(slice("f32[0]", "[1]: 0", "[1]: 5"), "f32[0]");
}

TEST(MovementRule, SliceOfSymbols) {
  EXPECT_EQ(slice("f32[N,10]", "[1]: 0", "[1]: 9223372036854775807"), "f32[N,10]");
  EXPECT_EQ(slice("f32[N,10]", "[1]: 0", "[1]: 9223372036854775807", "[1]: 0", "[1]: 2"), "f32[(N + 1) floordiv 2,10]");
  EXPECT_EQ(slice("f32[N,10]", "[1]: 2", "[1]: 5", "[1]: 1"), "f32[N,3]");
  EXPECT_EQ(slice("f32[N,10]", "[1]: 0", "[1]: 5"), "f32[min(5, N),10]");
  EXPECT_EQ(slice("f32[?,10]", "[1]: 0", "[1]: 5"), "f32[?,10]");
  EXPECT_EQ(inferred("(%x: f32[N,S,4], %w: f32[S]) -> %y { %z = Constant {value = dense<i64[1]: 0>} %s = Shape %w "
                     "%o = Constant {value = dense<i64[1]: 1>} %y = Slice %x, %z, %s, %o }"),
            "f32[N,S,4]");
  // What is cut is open, what is not stays; and which axes are cut may be open too.
  EXPECT_EQ(
      inferred(
          "(%x: f32[N,3], %s: i64[1]) -> %y { %o = Constant {value = dense<i64[1]: 1>} %y = Slice %x, %s, %s, %o }"),
      "f32[N,?]");
  EXPECT_EQ(inferred("(%x: f32[N,3], %s: i64[?]) -> %y { %y = Slice %x, %s, %s }"), "f32[?,?]");
  EXPECT_EQ(slice("f32[*]", "[1]: 0", "[1]: 5"), "f32[*]");
}

TEST(MovementRule, SliceRefuses) {
  EXPECT_THAT(slice("f32[4]", "[1]: 0", "[1]: 4", "[1]: 0", "[1]: 0"), HasSubstr("step 0"));
  EXPECT_THAT(slice("f32[4]", "[1]: 0", "[2]: 4, 4"), HasSubstr("equally many"));
  EXPECT_THAT(slice("f32[4]", "[1]: 0", "[1]: 4", "[1]: 1"), HasSubstr("axis 1"));
  EXPECT_THAT(slice("f32[4]", "[2]: 0, 0", "[2]: 4, 4"), HasSubstr("axis 1"));
}

TEST(MovementRule, VectorsOfExtents) {
  const auto spelled = [](std::string_view body) {
    return inferred(str("(%one: f32[], %x: f32[N,3,H,W]) -> %y { %s = Shape %x ", body, " %y = Expand %one, %v }"));
  };
  EXPECT_EQ(
      spelled(
          "%a = Constant {value = dense<i64[1]: 2>} %b = Constant {value = dense<i64[1]: 4>} %v = Slice %s, %a, %b"),
      "f32[H,W]");
  EXPECT_EQ(spelled("%a = Constant {value = dense<i64[1]: -1>} %b = Constant {value = dense<i64[1]: -9>} "
                    "%z = Constant {value = dense<i64[1]: 0>} %v = Slice %s, %a, %b, %z, %a"),
            "f32[W,H,3,N]");
  EXPECT_EQ(spelled("%a = Constant {value = dense<i64[1]: 2>} %v = Concat %a, %s {axis = 0}"), "f32[2,N,3,H,W]");
  EXPECT_EQ(spelled("%a = Constant {value = dense<i64[1]: 2>} %v = Tile %s, %a"), "f32[N,3,H,W,N,3,H,W]");
}

TEST(MovementRule, Pad) {
  EXPECT_EQ(with_list("Pad", "f32[2,N]", "[4]: 1, 0, 2, 3"), "f32[5,N + 3]");
  EXPECT_EQ(with_list("Pad", "f32[4]", "[2]: -1, -2"), "f32[1]");
  EXPECT_EQ(inferred("(%x: f32[2,N], %p: i64[4]) -> %y { %y = Pad %x, %p }"), "f32[?,?]");
  EXPECT_EQ(
      inferred("(%x: f32[2,N], %p: i64[2]) -> %y { %a = Constant {value = dense<i64[1]: -1>} %y = Pad %x, %p, _, %a }"),
      "f32[2,?]");
  EXPECT_THAT(with_list("Pad", "f32[2]", "[2]: -2, -1"), HasSubstr("-1 would be left"));
  EXPECT_THAT(with_list("Pad", "f32[2]", "[1]: 1"), HasSubstr("has 1 elements, two for each of 1 axes"));
  EXPECT_THAT(with_list("Pad", "f32[2]", "[2]: 1, 1", "{mode = \"around\"}"), HasSubstr("around"));
}

TEST(MovementRule, Tile) {
  EXPECT_EQ(with_list("Tile", "f32[2,N]", "[2]: 3, 2"), "f32[6,2*N]");
  EXPECT_EQ(inferred("(%x: f32[2,N], %r: i64[2]) -> %y { %y = Tile %x, %r }"), "f32[?,?]");
  EXPECT_THAT(with_list("Tile", "f32[2,N]", "[1]: 3"), HasSubstr("one per axis"));
  EXPECT_THAT(with_list("Tile", "f32[2]", "[1]: -3"), HasSubstr("must not be negative"));
}

TEST(MovementRule, BlocksAndTriangles) {
  EXPECT_EQ(alone("DepthToSpace", "f32[N,8,2,H]", "{blocksize = 2}"), "f32[N,2,4,2*H]");
  EXPECT_EQ(alone("SpaceToDepth", "f32[N,2,4,H]", "{blocksize = 2}"), "f32[N,8,2,H floordiv 2]");
  EXPECT_EQ(alone("DepthToSpace", "f32[*]", "{blocksize = 2}"), "f32[?,?,?,?]");
  EXPECT_THAT(alone("DepthToSpace", "f32[1,6,2,2]", "{blocksize = 2}"), HasSubstr("does not divide by 4"));
  EXPECT_THAT(alone("SpaceToDepth", "f32[1,6,2,3]", "{blocksize = 2}"), HasSubstr("axis 3"));
  EXPECT_THAT(alone("SpaceToDepth", "f32[1,6,2,2]", "{blocksize = 0}"), HasSubstr("outside [1, 2147483647]"));
  EXPECT_THAT(alone("SpaceToDepth", "f32[6,2,2]", "{blocksize = 2}"), HasSubstr("must have rank 4"));
  EXPECT_EQ(alone("Trilu", "f32[2,N,4]"), "f32[2,N,4]");
  EXPECT_THAT(alone("Trilu", "f32[4]"), HasSubstr("rank 2 or more"));
}

TEST(MovementRule, SequencesAndMiddle) {
  EXPECT_EQ(inferred("(%x: f32[T,B,3], %l: i64[B]) -> %y { %y = ReverseSequence %x, %l }"), "f32[T,B,3]");
  EXPECT_THAT(inferred("(%x: f32[4,3], %l: i64[4]) -> %y { %y = ReverseSequence %x, %l }"),
              HasSubstr("4 lengths for a batch of 3"));
  EXPECT_THAT(inferred("(%x: f32[4,3], %l: i64[3]) -> %y { %y = ReverseSequence %x, %l {time_axis = 1} }"),
              HasSubstr("one must be 0 and the other 1"));
  EXPECT_EQ(with_list("CenterCropPad", "f32[20,N]", "[2]: 10, 7"), "f32[10,7]");
  EXPECT_EQ(with_list("CenterCropPad", "f32[20,N]", "[1]: 10", "{axes = [-2]}"), "f32[10,N]");
  EXPECT_THAT(with_list("CenterCropPad", "f32[20,N]", "[1]: 10"), HasSubstr("1 extents for 2 axes"));
}

}  // namespace
}  // namespace tenon
