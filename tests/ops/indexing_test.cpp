#include <tenon/ops/indexing.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string two(std::string_view op, std::string_view a, std::string_view b, std::string_view attributes = "") {
  return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = ", op, " %a, %b ", attributes, " }"));
}
std::string three(std::string_view op, std::string_view a, std::string_view b, std::string_view c,
                  std::string_view attributes = "") {
  return inferred(str("(%a: ", a, ", %b: ", b, ", %c: ", c, ") -> %y { %y = ", op, " %a, %b, %c ", attributes, " }"));
}

TEST(IndexingRule, Gather) {
  EXPECT_EQ(two("Gather", "f32[V,8]", "i64[N,S]"), "f32[N,S,8]");
  EXPECT_EQ(two("Gather", "f32[3,V,8]", "i32[]", "{axis = 1}"), "f32[3,8]");
  EXPECT_EQ(two("Gather", "f32[3,V,8]", "i64[2]", "{axis = -1}"), "f32[3,V,2]");
  EXPECT_EQ(two("Gather", "f32[*]", "i64[2]"), "f32[*]");
  EXPECT_THAT(two("Gather", "f32[3]", "i64[2]", "{axis = 1}"), HasSubstr("axis 1"));
  EXPECT_THAT(two("Gather", "f32[3]", "f32[2]"), HasSubstr("indices"));
}

TEST(IndexingRule, GatherPicksExtents) {
  const auto spelled = [](std::string_view index) {
    return inferred(str("(%one: f32[], %x: f32[N,3,H]) -> %y { %s = Shape %x %i = Constant {value = dense<i64", index,
                        ">} %v = Gather %s, %i %y = Expand %one, %v }"));
  };
  EXPECT_EQ(spelled("[2]: -1, 0"), "f32[H,N]");
  EXPECT_EQ(
      inferred("(%x: f32[N,3,H]) -> %y { %s = Shape %x %i = Constant {value = dense<i64[]: 2>} %z = Constant {value = "
               "dense<i64[]: 0>} %o = Constant {value = dense<i64[]: 1>} %h = Gather %s, %i %y = Range %z, %h, %o }"),
      "i64[H]");
}

TEST(IndexingRule, GatherElementsAndND) {
  EXPECT_EQ(two("GatherElements", "f32[3,N]", "i64[2,N]"), "f32[2,N]");
  EXPECT_EQ(two("GatherElements", "f32[3,N]", "i64[*]"), "f32[?,?]");
  EXPECT_THAT(two("GatherElements", "f32[3,4]", "i64[2]"),
              HasSubstr("operand 1 of GatherElements (%y) must have rank 2"));
  EXPECT_THAT(two("GatherElements", "f32[3,4]", "i64[3,5]"), HasSubstr("5 places along axis 1 of f32[3,4]"));
  EXPECT_EQ(two("GatherND", "f32[2,3,N]", "i64[5,2]"), "f32[5,N]");
  EXPECT_EQ(two("GatherND", "f32[B,3,N]", "i64[B,5,1]", "{batch_dims = 1}"), "f32[B,5,N]");
  EXPECT_EQ(two("GatherND", "f32[2,3]", "i64[5,?]"), "f32[*]");
  EXPECT_THAT(two("GatherND", "f32[2,3]", "i64[5,3]"), HasSubstr("indices of 3 positions for f32[2,3]"));
  EXPECT_THAT(two("GatherND", "f32[2,3]", "i64[5,1]", "{batch_dims = 1}"), HasSubstr("batch axis 0 of GatherND is 2"));
}

TEST(IndexingRule, Scatter) {
  EXPECT_EQ(three("ScatterElements", "f32[3,N]", "i64[1,2]", "f32[1,2]"), "f32[3,N]");
  EXPECT_THAT(three("ScatterElements", "f32[3,3]", "i64[1,2]", "f32[1,3]"), HasSubstr("indices and updates"));
  EXPECT_EQ(three("ScatterElements", "f32[3,2]", "i64[5,2]", "f32[5,2]"), "f32[3,2]");
  EXPECT_THAT(three("ScatterElements", "f32[3,2]", "i64[1,5]", "f32[1,5]"),
              HasSubstr("indices for 5 places along axis 1 of f32[3,2]"));
  EXPECT_THAT(three("ScatterElements", "str[3]", "i64[2]", "str[2]", "{reduction = \"add\"}"),
              HasSubstr("no 'add' of str"));
  EXPECT_THAT(three("ScatterElements", "f32[3]", "i64[2]", "f32[2]", "{reduction = \"sub\"}"), HasSubstr("sub"));
  EXPECT_EQ(three("ScatterND", "f32[3,N]", "i64[2,1]", "f32[2,N]"), "f32[3,N]");
  EXPECT_THAT(three("ScatterND", "f32[3,4]", "i64[2,1]", "f32[2,5]"), HasSubstr("updates of ScatterND"));
  EXPECT_EQ(three("TensorScatter", "f32[B,8,4]", "f32[B,2,4]", "i64[B]"), "f32[B,8,4]");
  EXPECT_THAT(two("TensorScatter", "f32[2,8,4]", "f32[2,2,5]"), HasSubstr("axis 2 of TensorScatter is 4"));
}

TEST(IndexingRule, WhatDependsOnData) {
  EXPECT_EQ(two("Compress", "f32[3,N]", "bool[3]", "{axis = 0}"), "f32[?,N]");
  EXPECT_EQ(two("Compress", "f32[3,N]", "bool[3]"), "f32[?]");
  EXPECT_EQ(
      inferred("(%x: f32[3,N]) -> %y { %c = Constant {value = dense<bool[3]: true, false, true>} %y = Compress %x, %c "
               "{axis = -2} }"),
      "f32[2,N]");
  EXPECT_EQ(inferred("(%x: f32[3,N]) -> %y { %y = NonZero %x }"), "i64[2,?]");
  EXPECT_EQ(inferred("(%x: f32[3,N]) -> (%y, %i, %j, %c) { %y, %i, %j, %c = Unique %x {axis = 1} }"),
            "f32[3,?] i64[?] i64[?] i64[?]");
  EXPECT_EQ(inferred("(%x: f32[3,N]) -> %y { %y = Unique %x }"), "f32[?]");
}

TEST(IndexingRule, OneHotAndTopK) {
  const std::string_view depth = "%d = Constant {value = dense<f32[]: 5.0>} ";
  EXPECT_EQ(inferred(str("(%x: i64[N,2], %v: f16[2]) -> %y { ", depth, "%y = OneHot %x, %d, %v }")), "f16[N,2,5]");
  EXPECT_EQ(inferred(str("(%x: i64[N,2], %v: f16[2]) -> %y { ", depth, "%y = OneHot %x, %d, %v {axis = 0} }")),
            "f16[5,N,2]");
  EXPECT_THAT(inferred(str("(%x: i64[N], %v: f16[3]) -> %y { ", depth, "%y = OneHot %x, %d, %v }")),
              HasSubstr("two elements, off and on"));
  EXPECT_EQ(three("OneHot", "i64[N]", "i64[]", "f32[2]"), "f32[N,?]");
  for (const char* depth : {"nan", "inf", "1e30"}) {
    EXPECT_THAT(inferred(str("(%x: i64[N], %v: f16[2]) -> %y { %d = Constant {value = dense<f32[]: ", depth,
                             ">} %y = OneHot %x, %d, %v }")),
                HasSubstr("must be one number that fits 64 bits"));
  }
  const auto top = [](int k, std::string_view attributes) {
    return inferred(str("(%x: f32[N,4]) -> (%v, %i) { %k = Constant {value = dense<i64[1]: ", k,
                        ">} %v, %i = TopK %x, %k ", attributes, " }"));
  };
  EXPECT_EQ(top(3, ""), "f32[N,3] i64[N,3]");
  EXPECT_EQ(top(3, "{axis = 0}"), "f32[3,4] i64[3,4]");
  EXPECT_THAT(top(5, ""), HasSubstr("asks for 5 of 4 elements along axis 1"));
  EXPECT_THAT(top(-1, ""), HasSubstr("asks for -1"));
}

}  // namespace
}  // namespace tenon
