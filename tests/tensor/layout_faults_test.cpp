// Bugs of other systems (design/layout.md, at its end), with a test named after each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "layout_testing.hpp"
#include "reorder_testing.hpp"

namespace tenon {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

template <class T>
std::vector<T> reordered(const Layout& from, const Layout& to, const std::vector<T>& source, T before) {
  std::vector<T> out(static_cast<size_t>(to.bytes()) / sizeof(T), before);
  EXPECT_TRUE(plan(from, to).run(std::as_bytes(std::span(source)), std::as_writable_bytes(std::span(out))).ok());
  return out;
}

// oneDNN: padding was not written, NaN included, and affected sums.
TEST(KnownFaults, NanLeftInPadding) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Dims shape{2, 17, 3, 5};
  const Layout plain = layout("NCHW", "NCHW", shape, 32);
  for (const std::string_view text :
       {"NCHW{8c}", "NCHW{16c}", "NHWC{16c}", "NCHW{16c};align(W)=256B", "NCHW;off(H)=2"}) {
    SCOPED_TRACE(text);
    const Layout padded = layout(text, "NCHW", shape, 32), other = layout("NCHW{4c}", "NCHW", shape, 32);
    const std::vector<float> ones(static_cast<size_t>(plain.bytes() / 4), 1.0f);
    for (const std::vector<float>& out :
         {reordered(plain, padded, ones, kNan), reordered(other, padded, reordered(plain, other, ones, kNan), kNan)}) {
      EXPECT_THAT(out, Each(::testing::AnyOf(0.0f, 1.0f)));
      EXPECT_EQ(std::ranges::count(out, 1.0f), plain.valid_elements());
    }
    // Nor does the padding of a source come along.
    std::vector<float> source = reordered(plain, padded, ones, 0.0f);
    for (float& value : source) value = value == 1.0f ? 1.0f : kNan;
    EXPECT_THAT(reordered(padded, plain, source, 0.0f), Each(1.0f));
    EXPECT_THAT(reordered(padded, other, source, kNan), Each(::testing::AnyOf(0.0f, 1.0f)));
  }
}

// oneDNN: sizes of 4-bit types were computed in whole bytes, or lost the last half.
TEST(KnownFaults, SizesOfFourBitTypes) {
  for (const int64_t count : {1, 2, 3, 7, 8, 9, 255, 256, 257}) {
    EXPECT_EQ(layout("N", "N", {count}, 4).bytes(), (count + 1) / 2) << count;
    EXPECT_EQ(layout("N<2n:8>", "N", {count}, 4).bytes(), (count + 1) / 2) << count;
    EXPECT_EQ(layout("N<:8>", "N", {count}, 4).bytes(), count);
    EXPECT_EQ(layout("N<8n:32>", "N", {count}, 4).bytes(), (count + 7) / 8 * 4);
  }
}

// MLIR: one side of a value used the layout, the other one read it without.
TEST(KnownFaults, HalfAppliedLayout) {
  const Dims shape{2, 17, 3, 5};
  const Layout plain = layout("NCHW", "NCHW", shape, 32), packed = layout("NCHW{16c}", "NCHW", shape, 32);
  EXPECT_NE(plain.fingerprint(), packed.fingerprint()) << "by which the two sides refuse each other";
  EXPECT_FALSE(plain.same_function(packed));
  std::vector<std::byte> as_plain(static_cast<size_t>(plain.bytes())), as_packed(static_cast<size_t>(packed.bytes()));
  EXPECT_THAT(plan(packed, plain).run(as_plain, as_plain).error().message(), HasSubstr("needs"));
  EXPECT_FALSE(plan(plain, packed).run(as_plain, as_plain).ok());
  EXPECT_EQ(layout_error_code(packed.slice({0, 8, 0, 0}, {2, 17, 3, 5}).error()), "E_UNALIGNED")
      << "half of a block is no layout";
  EXPECT_EQ(layout_error_code(compose(plain, packed).error()), "E_RANK") << "the outer one knows 4 of 5 digits";
}

// TVM: [i % 2, j] was accepted for 4 values of i.
TEST(KnownFaults, MapsThatAreNotInvertible) {
  EXPECT_EQ(code_of("(i, j) -> (i mod 2, j)", "IJ", {4, 3}), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of("(i, j) -> (i floordiv 2 + i mod 2, j)", "IJ", {4, 3}), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of("(i, j) -> (i * 2 + j)", "IJ", {4, 3}), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of("IJ;stride(I)=2", "IJ", {4, 3}), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of("(i, j) -> (i * 3 + j)", "IJ", {4, 3}), "ok");
}

// IREE, Triton: only powers of two, for widths below a byte and for extents.
TEST(KnownFaults, WidthsAndExtentsThatAreNoPowersOfTwo) {
  std::mt19937_64 random(10);
  for (const int64_t bits : {1, 2, 3, 4, 5, 6, 7, 11, 13}) {
    for (const int64_t extent : {1, 3, 5, 7, 11, 37}) {
      const Dims shape{3, extent, 5};
      for (const std::string_view text : {"ABC", "CBA{3b}", "ACB<3b:64>", "[3a]ABC{5b}<2c>", "CAB<5b>;lane=msb"}) {
        const Layout packed = layout(text, "ABC", shape, bits);
        ASSERT_TRUE(packed.verify().ok()) << packed.verify().error().to_string();
        ASSERT_TRUE(moves_right(layout("ABC", "ABC", shape, bits), packed, random));
        ASSERT_TRUE(moves_right(packed, layout("BCA", "ABC", shape, bits), random));
      }
    }
  }
}

// Allo: int4 was converted to a different type.
TEST(KnownFaults, Int4RoundTrip) {
  for (const int64_t count : {16, 17, 31}) {
    const Layout bytes = layout("N<:8>", "N", {count}, 4);
    std::vector<uint8_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<uint8_t>(i * 7 % 16));
    for (const std::string_view text : {"N", "N<2n:8>", "N<2n:8>;lane=msb", "N<8n:32>", "[2n]N<2n>"}) {
      SCOPED_TRACE(text);
      const Layout packed = layout(text, "N", {count}, 4);
      EXPECT_EQ(reordered(packed, bytes, reordered<uint8_t>(bytes, packed, values, 0xff), uint8_t{0xff}), values);
    }
    const std::vector<uint8_t> low_first = reordered<uint8_t>(bytes, layout("N<2n:8>", "N", {count}, 4), values, 0);
    EXPECT_EQ(low_first[1], values[2] | values[3] << 4);
    const std::vector<uint8_t> high_first =
        reordered<uint8_t>(bytes, layout("N<2n:8>;lane=msb", "N", {count}, 4), values, 0);
    EXPECT_EQ(high_first[1], values[2] << 4 | values[3]);
  }
}

// TileLang: two threads stored to one packed word, and elements were lost.
TEST(KnownFaults, TwoThreadsInOnePackedWord) {
  std::mt19937_64 random(11);
  ThreadPool threads(8);
  for (const int64_t bits : {1, 3, 4, 12}) {
    const Dims shape{13, 37, 11};
    const Layout plain = layout("ABC", "ABC", shape, bits);
    for (const std::string_view text : {"CBA", "BCA", "ACB", "ACB<5b:64>", "BAC<5c:64>;fill=1", "CAB<4a>"}) {
      const Layout packed = layout(text, "ABC", shape, bits);
      std::vector<std::byte> source(static_cast<size_t>(plain.bytes())), expected(static_cast<size_t>(packed.bytes()));
      randomise(source, random);
      reorder_oracle(plain, packed, source, expected);
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<std::byte> out(expected.size(), std::byte{0xa5});
        ASSERT_TRUE(plan(plain, packed).run(source, out, threads, 1).ok());
        ASSERT_EQ(out, expected) << text << " of " << bits << " bits";
      }
    }
  }
  const Layout packed = layout("NC<8c:8>", "NC", {4, 16}, 1);
  EXPECT_TRUE(packed.shares_word('C')) << "which is what a kernel asks before it makes a loop parallel";
  EXPECT_FALSE(packed.shares_word('C', 8));
}

}  // namespace
}  // namespace tenon
