#include <tenon/ops/sequence.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(SequenceRule, ElementsShareWhatIsCommon) {
  EXPECT_EQ(inferred("(%a: f32[2,N], %b: f32[3,N]) -> %s { %s = SequenceConstruct %a, %b }"), "seq(f32[?,N])");
  EXPECT_THAT(inferred("(%a: f32[2], %b: i32[2]) -> %s { %s = SequenceConstruct %a, %b }"),
              HasSubstr("SequenceConstruct"));
  EXPECT_EQ(inferred("() -> %s { %s = SequenceEmpty {dtype = type<i8[*]>} }"), "seq(i8[*])");
  EXPECT_EQ(inferred("() -> %s { %s = SequenceEmpty }"), "seq(f32[*])");
  EXPECT_EQ(inferred("(%s: seq(f32[2,N]), %i: i64[]) -> %x { %x = SequenceAt %s, %i }"), "f32[2,N]");
  EXPECT_EQ(inferred("(%s: seq(f32[2,N]), %a: f32[3,N]) -> %t { %t = SequenceInsert %s, %a }"), "seq(f32[?,N])");
  EXPECT_THAT(inferred("(%s: seq(f32[2]), %a: i8[3]) -> %t { %t = SequenceInsert %s, %a }"),
              HasSubstr("one is f32[2], the other i8[3]"));
  EXPECT_EQ(inferred("(%s: seq(f32[2,N])) -> (%t, %n) { %t = SequenceErase %s %n = SequenceLength %t }"),
            "seq(f32[2,N]) i64[]");
}

TEST(SequenceRule, CutAndJoined) {
  EXPECT_EQ(inferred("(%x: f32[2,N]) -> %s { %s = SplitToSequence %x {axis = 1} }"), "seq(f32[2,1])");
  EXPECT_EQ(inferred("(%x: f32[2,N]) -> %s { %s = SplitToSequence %x {axis = -2, keepdims = 0} }"), "seq(f32[N])");
  EXPECT_EQ(inferred("(%x: f32[2,N], %l: i64[3]) -> %s { %s = SplitToSequence %x, %l {axis = 1, keepdims = 0} }"),
            "seq(f32[2,?])");
  EXPECT_EQ(inferred("(%s: seq(f32[2,N])) -> %x { %x = ConcatFromSequence %s {axis = 0} }"), "f32[?,N]");
  EXPECT_EQ(inferred("(%s: seq(f32[2,N])) -> %x { %x = ConcatFromSequence %s {axis = -1, new_axis = 1} }"),
            "f32[2,N,?]");
  EXPECT_EQ(inferred("(%s: seq(f32[*])) -> %x { %x = ConcatFromSequence %s {axis = 0} }"), "f32[*]");
  EXPECT_THAT(inferred("(%s: seq(f32[2])) -> %x { %x = ConcatFromSequence %s {axis = 1} }"),
              HasSubstr("attribute 'axis'"));
}

TEST(SequenceRule, Map) {
  EXPECT_EQ(
      inferred(
          "(%s: seq(f32[2,N])) -> (%t, %l) { %t, %l = SequenceMap %s ((%a: f32[2,N]) -> (%b, %n) { %b = Transpose %a "
          "%n = Shape %a }) }"),
      "seq(f32[N,2]) seq(i64[2])");
  EXPECT_THAT(inferred("(%s: seq(f32[2])) -> %t { %t = SequenceMap %s ((%a: f32[2]) -> (%a, %a) {}) }"),
              HasSubstr("1 inputs and 2 outputs; its operands and results ask for 1 and 1"));
  const auto body = [](std::string_view inputs) {
    return inferred(str("(%s: seq(f32[2]), %x: i8[3]) -> %t { %t = SequenceMap %s, %x ((", inputs, ") -> %a {}) }"));
  };
  EXPECT_EQ(body("%a: f32[2], %b: i8[3]"), "seq(f32[2])");
  EXPECT_THAT(body("%a: f32[2]"), HasSubstr("1 inputs and 1 outputs; its operands and results ask for 2 and 1"));
  EXPECT_THAT(body("%a: f32[2], %b: f32[3]"),
              HasSubstr("input 1 ('b') of region 0 of SequenceMap (%t), which is declared f32[3] and given i8[3]"));
}

TEST(SequenceRule, Optionals) {
  EXPECT_EQ(
      inferred(
          "(%x: f32[N]) -> (%o, %y, %h) { %o = Optional %x %y = OptionalGetElement %o %h = OptionalHasElement %o }"),
      "optional(f32[N]) f32[N] bool[]");
  EXPECT_EQ(inferred("() -> %o { %o = Optional {type = type<seq(f32[2])>} }"), "optional(seq(f32[2]))");
  EXPECT_THAT(inferred("() -> %o { %o = Optional }"), HasSubstr("neither an operand nor an attribute 'type'"));
  EXPECT_EQ(inferred("(%x: f32[N]) -> %y { %y = OptionalGetElement %x }"), "f32[N]");
}

}  // namespace
}  // namespace tenon
