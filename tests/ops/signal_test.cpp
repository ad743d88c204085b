#include <tenon/ops/signal.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>
#include <tenon/ops/detection.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string dft(std::string_view type, std::string_view attributes, std::string_view constants = "",
                std::string_view operands = "") {
  return inferred(str("(%x: ", type, ") -> %y { ", constants, " %y = DFT %x", operands, " ", attributes, " }"));
}

TEST(SignalRule, DFT) {
  EXPECT_EQ(dft("f32[B,N,1]", ""), "f32[B,N,2]");
  EXPECT_EQ(dft("f32[B,N,1]", "{onesided = 1}"), "f32[B,N floordiv 2 + 1,2]");
  EXPECT_EQ(dft("f32[B,6,2]", "{onesided = 1, inverse = 1}"), "f32[B,10,1]");
  const std::string_view numbers = "%l = Constant {value = dense<i64[]: 7>} %a = Constant {value = dense<i64[]: 0>}";
  EXPECT_EQ(dft("f32[B,N,2]", "", numbers, ", %l, %a"), "f32[7,N,2]");
  EXPECT_EQ(dft("f32[B,5,2]", "{onesided = 1, inverse = 1}", numbers, ", %l, %a"), "f32[7,5,1]");
  EXPECT_EQ(inferred("(%x: f32[B,N,2], %a: i64[]) -> %y { %y = DFT %x, _, %a }"), "f32[?,?,?]");
  EXPECT_THAT(dft("f32[B,N,2]", "{onesided = 1}"), HasSubstr("real numbers, as onesided asks for"));
  EXPECT_THAT(dft("f32[B,N,3]", ""), HasSubstr("must have extent 1 or 2"));
  EXPECT_THAT(dft("f32[B,N,2]", "", "%l = Constant {value = dense<i64[]: 0>}", ", %l"), HasSubstr("must be positive"));
  EXPECT_THAT(dft("f32[B,N,2]", "", "%a = Constant {value = dense<i64[]: 2>}", ", _, %a"),
              HasSubstr("axis of complex numbers"));
}

TEST(SignalRule, STFT) {
  const auto stft = [](std::string_view rest) {
    return inferred(
        str("(%x: f32[B,128,1], %w: f32[16]) -> %y { %s = Constant {value = dense<i64[]: 8>} %n = Constant {value = "
            "dense<i64[]: 20>} %y = STFT %x, %s ",
            rest, " }"));
  };
  EXPECT_EQ(stft(", %w"), "f32[B,15,9,2]");
  EXPECT_EQ(stft(", _, %n {onesided = 0}"), "f32[B,14,20,2]");
  EXPECT_THAT(stft(", %w, %n"), HasSubstr("'frame_length' of STFT is 20, its window has 16 points"));
  EXPECT_EQ(inferred("(%x: f32[B,L,1], %s: i64[], %w: f32[16]) -> %y { %y = STFT %x, %s, %w }"), "f32[B,?,9,2]");
}

TEST(SignalRule, WindowsAndMel) {
  EXPECT_EQ(inferred("(%x: f32[N]) -> %y { %n = Size %x %y = HannWindow %n }"), "f32[N]");
  EXPECT_EQ(inferred("(%n: i32[]) -> %y { %y = BlackmanWindow %n {output_datatype = type<f64[*]>} }"), "f64[?]");
  EXPECT_EQ(inferred("(%lo: f32[], %hi: f32[]) -> %y { %b = Constant {value = dense<i64[]: 8>} %l = Constant {value = "
                     "dense<i64[]: "
                     "16>} %r = Constant {value = dense<i64[]: 8192>} %y = MelWeightMatrix %b, %l, %r, %lo, %hi }"),
            "f32[9,8]");
}

TEST(DetectionRule, NonMaxSuppression) {
  const auto nms = [](std::string_view boxes, std::string_view scores) {
    return inferred(str("(%b: ", boxes, ", %s: ", scores, ") -> %y { %y = NonMaxSuppression %b, %s }"));
  };
  EXPECT_EQ(nms("f32[B,N,4]", "f32[B,3,N]"), "i64[?,3]");
  EXPECT_THAT(nms("f32[1,6,4]", "f32[1,3,5]"), HasSubstr("[batch, boxes, 4] and [batch, classes, boxes] are wanted"));
  EXPECT_THAT(nms("f32[6,4]", "f32[1,3,6]"), HasSubstr("must have rank 3"));
}

}  // namespace
}  // namespace tenon
