#include <tenon/ops/control.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(ControlRule, IfGivesWhatBothBranchesSay) {
  const auto chosen = [](std::string_view a, std::string_view b) {
    return inferred(str("(%c: bool[], %a: ", a, ", %b: ", b, ") -> %y { %y = If %c (() -> %a {}, () -> %b {}) }"));
  };
  EXPECT_EQ(chosen("f32[2,N]", "f32[2,N]"), "f32[2,N]");
  EXPECT_EQ(chosen("f32[2,N]", "f32[3,N]"), "f32[?,N]");
  EXPECT_EQ(chosen("f32[2,N]", "f32[3]"), "f32[*]");
  EXPECT_EQ(chosen("seq(f32[2])", "seq(f32[3])"), "seq(f32[?])");
  EXPECT_THAT(chosen("f32[2]", "i32[2]"), HasSubstr("one is f32[2], the other i32[2]"));
  EXPECT_THAT(chosen("f32[2]", "seq(f32[2])"), HasSubstr("output 0 of the branches"));
}

TEST(ControlRule, BranchesTakeNothing) {
  EXPECT_THAT(inferred("(%c: bool[], %a: f32[2]) -> %y { %y = If %c (() -> %a {}, (%b: f32[2]) -> %b {}) }"),
              HasSubstr("region 1 of If (%y) has 1 inputs and 1 outputs; its operands and results ask for 0 and 1"));
  EXPECT_THAT(inferred("(%c: bool[], %a: f32[2]) -> %y { %y = If %c (() -> (%a, %a) {}, () -> %a {}) }"),
              HasSubstr("region 0 of If (%y) has 0 inputs and 2 outputs"));
}

TEST(ControlRule, ABranchMayContradictWhatIsAroundIt) {
  const auto chosen = [](std::string_view branch) {
    return inferred(
        str("(%c: bool[], %a: f32[2,3,5], %n: i64[1]) -> %y { %y = If %c (() -> %r { ", branch, " }, () -> %a {}) }"));
  };
  const std::string squeeze = "%one = Constant {value = dense<i64[1]: 1>} %s = Squeeze %a, %one ";
  EXPECT_EQ(chosen(squeeze + "%r = Relu %s"), "f32[*]");
  EXPECT_EQ(chosen(squeeze + "%r = If %c (() -> %t { %t = Squeeze %s, %one }, () -> %s {})"), "f32[*]");
  EXPECT_THAT(chosen(squeeze + "%r = Shape %s"), HasSubstr("one is i64[?], the other f32[2,3,5]"));
  EXPECT_THAT(inferred("(%a: f32[2,3,5]) -> %y { %one = Constant {value = dense<i64[1]: 1>} %y = Squeeze %a, %one }"),
              HasSubstr("Squeeze"));
}

// Shape errors are reported by the run that executes the region; errors that no run can avoid are errors of the graph.
TEST(ControlRule, RegionsInBranchesFitTheirOperators) {
  const auto chosen = [](std::string_view inner) {
    return inferred(str("(%c: bool[], %m: i64[], %x: f32[2,3], %s: seq(f32[2])) -> %y { %y = If %c (() -> %r { ", inner,
                        " }, () -> %x {}) }"));
  };
  EXPECT_EQ(chosen("%r, %t = Loop %m, _, %x ((%i: i64[], %g: bool[], %a: f32[5,7]) -> (%g, %a, %i) {})"), "f32[?,?]");
  EXPECT_THAT(chosen("%r = If %c (() -> %x {}, (%b: f32[2]) -> %b {})"),
              HasSubstr("region 1 of If (%r) has 1 inputs and 1 outputs; its operands and results ask for 0 and 1"));
  EXPECT_THAT(chosen("%r = If %c (() -> %x {}, () -> %m {})"), HasSubstr("output 0 of the branches of If (%r)"));
  EXPECT_THAT(chosen("\n  %r = If %c (() -> %x {}, () -> %m {})"), HasSubstr("error: text:2:8: "));
  EXPECT_THAT(chosen("%r, %t = Loop %m, _, %x ((%i: i64[], %g: bool[]) -> (%g, %i, %i) {})"),
              HasSubstr("region 0 of Loop (%r) has 2 inputs and 3 outputs"));
  EXPECT_THAT(chosen("%r, %t = Loop %m, _, %x ((%i: i64[], %g: bool[], %a: f32[2,3]) -> (%i, %a, %i) {})"),
              HasSubstr("output 0 of the body of Loop (%r) must be one bool, it is i64[]"));
  EXPECT_THAT(chosen("%r = Scan %x {num_scan_inputs = 2} ((%a: f32[3]) -> %a {})"),
              HasSubstr("attribute 'num_scan_inputs' of Scan (%r) is 2, it has 1 operands"));
  EXPECT_THAT(chosen("%r = Scan %x {num_scan_inputs = 1} ((%a: i8[3]) -> %a {})"),
              HasSubstr("input 0 ('a') of region 0 of Scan (%r), which is declared i8[3]"));
  EXPECT_THAT(chosen("%q = SequenceMap %s ((%a: f32[2]) -> (%a, %a) {}) %i = SequenceLength %q %r = Cast %x {to = "
                     "type<f32[*]>}"),
              HasSubstr("region 0 of SequenceMap (%q) has 1 inputs and 2 outputs"));
  EXPECT_THAT(chosen("%q = Unsqueeze %x, %m %r = ai.onnx.preview.FlexAttention %q, %q, %q ((%a: f32[1,2,3]) -> %a {}, "
                     "() -> %x {})"),
              HasSubstr("region 1 of ai.onnx.preview.FlexAttention (%r) has 0 inputs and 1 outputs"));
}

TEST(ControlRule, LoopCarriesAndStacks) {
  const auto loop = [](std::string_view carried, std::string_view body) {
    return inferred(str("(%m: i64[], %v: ", carried, ") -> (%w, %s) { %w, %s = Loop %m, _, %v ", body, " }"));
  };
  EXPECT_EQ(loop("f32[2]", "((%i: i64[], %c: bool[], %a: f32[2]) -> (%c, %a, %a) {})"), "f32[2] f32[?,2]");
  EXPECT_EQ(loop("f32[N]", "((%i: i64[], %c: bool[], %a: f32[?]) -> (%c, %b, %i) { %b = Concat %a, %a {axis = 0} })"),
            "f32[?] i64[?]");
  EXPECT_THAT(loop("f32[N]", "((%i: i64[], %c: bool[]) -> (%c, %i, %i) {})"),
              HasSubstr("2 inputs and 3 outputs; its operands and results ask for 3 and 3"));
  EXPECT_THAT(loop("f32[N]", "((%i: i64[], %c: bool[], %a: f32[N]) -> (%c, %i, %i) {})"),
              HasSubstr("value 0 carried by Loop"));
  EXPECT_THAT(
      loop("f32[2]", "((%i: i64[], %c: bool[], %a: i32[2]) -> (%c, %b, %a) { %b = Cast %a {to = type<f32[*]>} })"),
      HasSubstr("input 2 ('a') of region 0 of Loop (%w), which is declared i32[2] and given f32[2]"));
  EXPECT_THAT(loop("f32[2]", "((%i: i32[], %c: bool[], %a: f32[2]) -> (%c, %a, %a) {})"),
              HasSubstr("input 0 ('i') of region 0"));
  EXPECT_THAT(loop("f32[2]", "((%i: i64[], %c: bool[], %a: f32[2]) -> (%i, %a, %a) {})"),
              HasSubstr("output 0 of the body of Loop (%w) must be one bool, it is i64[]"));
  EXPECT_THAT(loop("f32[2]", "((%i: i64[], %c: bool[], %a: f32[2]) -> (%c, %a, %s) { %s = SequenceConstruct %a })"),
              HasSubstr("output 2 of the body of Loop (%w) must be a tensor, it is seq(f32[2])"));
  EXPECT_EQ(loop("optional(f32[2])", "((%i: i64[], %c: bool[], %a: f32[2]) -> (%c, %a, %a) {})"), "f32[2] f32[?,2]");
}

TEST(ControlRule, ScanKnowsItsLength) {
  const auto scan = [](std::string_view x, std::string_view attributes) {
    return inferred(str("(%z: f32[3], %x: ", x, ") -> (%s, %y) { %s, %y = Scan %z, %x {num_scan_inputs = 1", attributes,
                        "} ((%a: f32[3], %b: f32[3]) -> (%a, %b) {}) }"));
  };
  EXPECT_EQ(scan("f32[N,3]", ""), "f32[3] f32[N,3]");
  EXPECT_EQ(scan("f32[3,N]", ", scan_input_axes = [1], scan_output_axes = [-1]"), "f32[3] f32[3,N]");
  EXPECT_THAT(scan("f32[N,3]", ", scan_input_axes = [2]"), HasSubstr("scan_input_axes"));
  EXPECT_THAT(scan("i8[N,3]", ""), HasSubstr("input 1 ('b') of region 0 of Scan (%s), which is declared f32[3]"));
  EXPECT_THAT(inferred("(%x: f32[2,3], %w: f32[4,3]) -> %y { %y = Scan %x, %w {num_scan_inputs = 2} ((%a: f32[3], %b: "
                       "f32[3]) -> %b {}) }"),
              HasSubstr("scan input 1 of Scan (%y) has 4 slices, those before it 2"));
  EXPECT_THAT(inferred("(%x: f32[2,3]) -> %y { %y = Scan %x {num_scan_inputs = 2} ((%a: f32[3]) -> %a {}) }"),
              HasSubstr("it has 1 operands"));
}

}  // namespace
}  // namespace tenon
