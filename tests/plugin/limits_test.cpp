#include <tenon/plugin/limits.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/text.hpp>
#include <tenon/plugin/reference_backend.hpp>
#include <tenon/target/load.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

TargetDescription board(const std::string& limits) {
  auto target =
      parse_target("tenon_target: 1\nname: board\nplugin: reference\noperators:\n  " + limits + "\n", "board.yaml");
  EXPECT_TRUE(target.ok()) << target.error().to_string();
  return *std::move(target);
}

// The reason for which the last operator of the graph's body is refused under `limits`; "" if it is not.
std::string refused(const std::string& limits, std::string_view text) {
  const auto graph = parse_graph("graph @g" + std::string(text));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  const auto refusal = limits_refuse(board(limits), *(*graph)->body().last());
  return refusal ? refusal->reason : "";
}

std::string conv(const std::string& limits, std::string_view attributes, std::string_view x = "f32[1,4,40,40]",
                 std::string_view w = "f32[8,4,33,5]") {
  return refused(limits, str("(%x: ", x, ", %w: ", w, ") -> %y { %y = Conv %x, %w {", attributes, "} }"));
}

TEST(Limits, KernelIsTheWindow) {
  EXPECT_EQ(conv("Conv: {kernel: {max: 32}}", ""), "kernel 33 exceeds 32 on target board");
  EXPECT_EQ(conv("Conv: {kernel: {max: 33}}", ""), "");
  EXPECT_EQ(conv("Conv: {kernel: {min: 6}}", ""), "kernel 5 is below 6 on target board");
  const auto pool = [](const std::string& limits) {
    return refused(limits, "(%x: f32[1,4,40,40]) -> %y { %y = MaxPool %x {kernel_shape = [2, 9]} }");
  };
  EXPECT_EQ(pool("MaxPool: {kernel: {max: 8}}"), "kernel 9 exceeds 8 on target board");
  EXPECT_EQ(pool("MaxPool: {kernel: {max: 9}}"), "");
}

TEST(Limits, StrideDilationPadAndGroups) {
  const std::string x = "f32[1,4,40,40]", w = "f32[8,4,3,3]";
  EXPECT_EQ(conv("Conv: {stride: {max: 4}}", "strides = [2, 5]", x, w), "stride 5 exceeds 4 on target board");
  EXPECT_EQ(conv("Conv: {stride: {max: 5}}", "strides = [2, 5]", x, w), "");
  EXPECT_EQ(conv("Conv: {stride: [2, 4]}", "", x, w), "stride 1 is not one of [2, 4] on target board");
  EXPECT_EQ(conv("Conv: {dilation: 1}", "dilations = [1, 2]", x, w), "dilation 2 is not 1 on target board");
  EXPECT_EQ(conv("Conv: {dilation: 1}", "", x, w), "");
  EXPECT_EQ(conv("Conv: {pad: {max: 1}}", "pads = [1, 1, 1, 2]", x, w), "pad 2 exceeds 1 on target board");
  EXPECT_EQ(conv("Conv: {pad: {max: 1}}", "pads = [1, 1, 1, 1]", x, w), "");
  EXPECT_EQ(conv("Conv: {groups: 1}", "group = 2", x, "f32[8,2,3,3]"), "groups 2 is not 1 on target board");
  EXPECT_EQ(conv("Conv: {group: 1}", "group = 2", x, "f32[8,2,3,3]"), "group 2 is not 1 on target board");
  EXPECT_EQ(conv("Conv: {groups: 1}", "", x, w), "");
  EXPECT_EQ(conv("Conv: {groups: any}", "group = 2", x, "f32[8,2,3,3]"), "");
}

TEST(Limits, AutomaticPadsAreWhatTheyComeTo) {
  // 40 at stride 3: 14 windows, the last at 39 ends at 39 + 5 = 44: 4 of padding, 2 on each side; with a kernel of
  // 6, 5.
  const std::string x = "f32[1,4,40,40]";
  const std::string same = "auto_pad = \"SAME_UPPER\", strides = [3, 3]";
  EXPECT_EQ(conv("Conv: {pad: {max: 2}}", same, x, "f32[8,4,5,5]"), "");
  EXPECT_EQ(conv("Conv: {pad: {max: 1}}", same, x, "f32[8,4,5,5]"), "pad 2 exceeds 1 on target board");
  EXPECT_EQ(conv("Conv: {pad: {max: 2}}", same, x, "f32[8,4,6,6]"), "pad 3 exceeds 2 on target board");
  EXPECT_EQ(conv("Conv: {pad: 0}", "auto_pad = \"VALID\"", x, "f32[8,4,5,5]"), "");
  EXPECT_THAT(conv("Conv: {pad: 0}", same, "f32[1,4,H,40]", "f32[8,4,5,5]"), HasSubstr("known only to a run"));
}

TEST(Limits, BatchChannelsAndDims) {
  const std::string w = "f32[8,4,3,3]";
  EXPECT_EQ(conv("Conv: {batch: 1}", "", "f32[4,4,9,9]", w), "batch 4 is not 1 on target board");
  EXPECT_EQ(conv("Conv: {batch: 1}", "", "f32[1,4,9,9]", w), "");
  EXPECT_EQ(conv("Conv: {channels: {multiple_of: 8}}", "", "f32[1,4,9,9]", w),
            "channels 4 is not a multiple of 8 on target board");
  EXPECT_EQ(conv("Conv: {channels: {multiple_of: 4}}", "", "f32[1,4,9,9]", w), "");
  EXPECT_EQ(conv("Conv: {dims: {max: 8192}}", "", "f32[1,4,9,9000]", w), "dims 9000 exceeds 8192 on target board");
  EXPECT_THAT(conv("Conv: {batch: 1}", "", "f32[N,4,9,9]", w),
              HasSubstr("batch of Conv (%y) is known only to a run, and target board limits it"));
  EXPECT_EQ(conv("Conv: {channels: 4}", "", "f32[N,4,H,9]", "f32[4,4,3,3]"), "");
}

TEST(Limits, AnyOtherWordIsAnAttribute) {
  const auto pad = [](const std::string& limits, std::string_view attributes) {
    return refused(limits, str("(%x: f32[3], %p: i64[2]) -> %y { %y = Pad %x, %p ", attributes, " }"));
  };
  EXPECT_EQ(pad("Pad: {mode: {one_of: [constant, edge]}}", "{mode = \"reflect\"}"),
            "mode reflect is not one of [constant, edge] on target board");
  EXPECT_EQ(pad("Pad: {mode: edge}", ""), "mode constant is not edge on target board");
  EXPECT_EQ(pad("Pad: {mode: constant}", ""), "");
  EXPECT_EQ(pad("Pad: {modes: constant}", ""), "modes has no meaning for Pad (%y), and target board limits it");
  EXPECT_THAT(pad("Pad: {stride: 1}", ""), HasSubstr("stride has no meaning for Pad"));
  EXPECT_EQ(pad("Pad: {modes: any}", ""), "");
  const auto elu = [](const std::string& limits, std::string_view alpha) {
    return refused(limits, str("(%x: f32[3]) -> %y { %y = Elu %x {alpha = ", alpha, "} }"));
  };
  EXPECT_EQ(elu("Elu: {alpha: 1}", "1.0"), "");
  EXPECT_EQ(elu("Elu: {alpha: 1}", "2.0"), "alpha 2 is not 1 on target board");
  EXPECT_THAT(elu("Elu: {alpha: 1}", "0.5"), HasSubstr("neither a whole number nor a word"));
}

TEST(Limits, TypesAndOperators) {
  const auto add = [](const std::string& limits) { return refused(limits, "(%x: f32[3]) -> %y { %y = Add %x, %x }"); };
  EXPECT_EQ(add("Add: {types: [i8, i32]}"), "type f32 of Add is not one of [i8, i32] on target board");
  EXPECT_EQ(add("Add: {types: [f32]}"), "");
  EXPECT_EQ(add("Add: none"), "operator Add is not available on target board");
  EXPECT_EQ(add("Add: any"), "");
  EXPECT_EQ(add("Mul: none"), "");
}

TEST(Limits, HoldInsideOfRegions) {
  constexpr std::string_view kIf =
      "(%c: bool[], %x: f32[3]) -> %y { %y = If %c (() -> %a { %a = Neg %x }, () -> %x {}) }";
  EXPECT_EQ(refused("Neg: none", kIf), "operator Neg is not available on target board");
  EXPECT_EQ(refused("Abs: none", kIf), "");
}

TEST(Limits, BindTheReferenceUnderADescription) {
  const auto backend = create_reference_backend(board("Conv: {kernel: {max: 32}}"));
  const auto graph = parse_graph("graph @g(%x: f32[1,4,40,40], %w: f32[8,4,33,5]) -> %y { %y = Conv %x, %w }");
  ASSERT_TRUE(graph.ok());
  const auto refusal = backend->refuses(*(*graph)->body().last());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "kernel 33 exceeds 32 on target board");
}

// A variant of Conv with another name, and an operand of another type.
TEST(Limits, OfAnotherFormAreThoseStatedForTheOriginal) {
  const auto refused_as = [](const std::string& limits, std::string_view stated_as) {
    const auto graph =
        parse_graph("graph @g(%x: i8[2,4,40,40], %w: i8[8,4,33,5], %z: i8[]) -> %y { %y = ConvInteger %x, %w, %z }");
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    const auto refusal = limits_refuse(board(limits), *(*graph)->body().last(), stated_as);
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(refused_as("Conv: {kernel: {max: 32}}", "Conv"), "kernel 33 exceeds 32 on target board");
  EXPECT_EQ(refused_as("Conv: {kernel: {max: 32}}", "ConvInteger"), "");
  EXPECT_EQ(refused_as("Conv: {batch: 1}", "Conv"), "batch 2 is not 1 on target board");
  EXPECT_EQ(refused_as("Conv: {types: [i8]}", "Conv"), "type i32 of Conv is not i8 on target board");
  EXPECT_EQ(refused_as("Conv: {types: [i8, i32]}", "Conv"), "");
  EXPECT_EQ(refused_as("Conv: none", "Conv"), conv("Conv: none", ""));
}

}  // namespace
}  // namespace tenon
