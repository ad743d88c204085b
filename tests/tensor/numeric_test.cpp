#include <tenon/tensor/numeric.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tenon {
namespace {

using Rounding = ConvertOptions::Rounding;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

struct FormatRow {
  ElementType element;
  double max;
  double least;  // the smallest positive value
  int nans;      // how many codes are NaN
  int infinities;
};
const FormatRow kFormats[] = {
    {kF16, 65504, 0x1p-24, 2046, 2},    {kBF16, 0x1.fep127, 0x1p-133, 254, 2},
    {kF8E4M3FN, 448, 0x1p-9, 2, 0},     {kF8E4M3FNUZ, 240, 0x1p-10, 1, 0},
    {kF8E5M2, 57344, 0x1p-16, 6, 2},    {kF8E5M2FNUZ, 57344, 0x1p-17, 1, 0},
    {kF8E8M0, 0x1p127, 0x1p-127, 1, 0}, {kF4E2M1, 6, 0.5, 0, 0},
};

uint64_t codes(ElementType element) { return uint64_t{1} << element.bits(); }

TEST(FloatFormat, EveryCodeRoundTrips) {
  for (const FormatRow& row : kFormats) {
    double max = 0, least = kInf;
    int nans = 0, infinities = 0;
    for (uint64_t code = 0; code < codes(row.element); ++code) {
      const double value = decode_float(row.element, code);
      ConvertOptions options;
      options.saturate = !std::isinf(value);
      const uint64_t back = encode_float(row.element, value, options);
      if (std::isnan(value)) {
        ++nans;
        EXPECT_TRUE(std::isnan(decode_float(row.element, back)));
        continue;
      }
      EXPECT_EQ(back, code) << row.element.to_string() << " " << value;
      if (std::isinf(value))
        ++infinities;
      else
        max = std::max(max, value);
      if (value > 0) least = std::min(least, value);
    }
    EXPECT_EQ(max, row.max) << row.element.to_string();
    EXPECT_EQ(least, row.least) << row.element.to_string();
    EXPECT_EQ(nans, row.nans) << row.element.to_string();
    EXPECT_EQ(infinities, row.infinities) << row.element.to_string();
  }
}

// Between neighbours: the lower below the midpoint, the upper above, the even one at it.
TEST(FloatFormat, RoundsOnceAtEveryMidpoint) {
  for (const FormatRow& row : kFormats) {
    if (row.element == kF8E8M0) continue;
    for (uint64_t code = 0; decode_float(row.element, code) < row.max; ++code) {
      const double low = decode_float(row.element, code), high = decode_float(row.element, code + 1);
      const double middle = (low + high) / 2;
      const uint64_t sign = uint64_t{1} << (row.element.bits() - 1);
      const auto encode = [&](double value) { return encode_float(row.element, value); };
      const uint64_t even = code + (code & 1);
      ASSERT_EQ(encode(middle), even) << row.element.to_string() << " " << middle;
      ASSERT_EQ(encode(std::nextafter(middle, -kInf)), code) << row.element.to_string() << " " << middle;
      ASSERT_EQ(encode(std::nextafter(middle, kInf)), code + 1) << row.element.to_string() << " " << middle;
      const bool one_zero = row.element == kF8E4M3FNUZ || row.element == kF8E5M2FNUZ;
      ASSERT_EQ(encode(-middle), even == 0 && one_zero ? 0 : even | sign) << row.element.to_string() << " " << middle;
    }
  }
}

TEST(FloatFormat, DecodesAsTheOtherFormatsSay) {
  for (uint64_t code = 0; code < 256; ++code) {
    const auto same = [&](double a, double b) {
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
          << code << ": " << a << " " << b;
    };
    // e5m2 is the upper byte of an f16; a bias one higher halves.
    same(decode_float(kF8E5M2, code), decode_float(kF16, code << 8));
    const bool large = (code & 0x7f) >= 0x7c, zero = (code & 0x7f) == 0;
    if (!large && !zero) same(decode_float(kF8E5M2FNUZ, code), decode_float(kF8E5M2, code) / 2);
    if ((code & 0x7f) != 0x7f && !zero) same(decode_float(kF8E4M3FNUZ, code), decode_float(kF8E4M3FN, code) / 2);
  }
  EXPECT_EQ(decode_float(kF8E4M3FN, 0x38), 1);
  EXPECT_EQ(decode_float(kF8E4M3FN, 0xb9), -1.125);
  EXPECT_EQ(decode_float(kF8E8M0, 127), 1);
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint64_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_float(kF4E2M1, code), e2m1[code]);
    EXPECT_EQ(decode_float(kF4E2M1, code | 8), -e2m1[code]);
  }
}

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 CompilerF16;

TEST(FloatFormat, F16AsTheCompilerHasIt) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto theirs = static_cast<float>(std::bit_cast<CompilerF16>(static_cast<uint16_t>(code)));
    const float ours = f16::from_bits(static_cast<uint16_t>(code));
    const double decoded = decode_float(kF16, code);
    if (std::isnan(theirs)) {
      ASSERT_TRUE(std::isnan(ours) && std::isnan(decoded)) << code;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(theirs)) << code;
      ASSERT_EQ(decoded, static_cast<double>(theirs)) << code;
    }
  }
  const uint64_t seed = 1;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200000; ++i) {
    const auto word = static_cast<uint32_t>(random());
    const auto value = std::bit_cast<float>((word & 0x8fffffffu) | 0x30000000u);  // around the range of f16
    ASSERT_EQ(f16(value).bits, std::bit_cast<uint16_t>(static_cast<CompilerF16>(value)))
        << "seed " << seed << " " << value;
  }
}
#endif

// Both ways of rounding to 16 bits, by bit operations from float and by arithmetic from double, agree on every float
// whose discarded bits matter: each 16-bit value with each pattern of the bits around the rounding point.
TEST(FloatFormat, FastPathsAgreeWithEncode) {
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(float(f16(value))) && std::isnan(float(bf16(value)))) << high << " " << low;
        continue;
      }
      ASSERT_EQ(f16(value).bits, encode_float(kF16, value)) << value;
      ASSERT_EQ(bf16(value).bits, encode_float(kBF16, value)) << value;
    }
  }
}

TEST(FloatFormat, SixteenBitOverflow) {
  EXPECT_EQ(f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.f).bits, 0x7c00);
  EXPECT_EQ(f16(-1e30).bits, 0xfc00);
  EXPECT_EQ(f16(0x1p-25f).bits, 0);
  EXPECT_EQ(f16(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(f16(-0.f).bits, 0x8000);
  EXPECT_EQ(encode_float(kF32, 1e300), 0x7f800000u);
}

TEST(FloatFormat, DoublesRoundOnce) {
  // Just above the midpoint of 1 and the next f16, yet the midpoint itself when rounded to float first.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(f16(value).bits, 0x3c01);
  EXPECT_EQ(f16(static_cast<float>(value)).bits, 0x3c00);
  EXPECT_EQ(bf16(1 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
}

TEST(FloatFormat, IntegersRoundOnce) {
  const int64_t base = int64_t{1} << 60, half = int64_t{1} << 52;  // a bf16's last place at 2^60 is 2^53
  EXPECT_EQ(float(bf16(base + half)), 0x1p60f);
  EXPECT_EQ(float(bf16(base + half + 1)), 0x1p60f + 0x1p53f);
  EXPECT_EQ(float(bf16(-(base + half + 1))), -(0x1p60f + 0x1p53f));
  EXPECT_EQ(float(bf16(INT64_MIN)), -0x1p63f);
  EXPECT_EQ(float(bf16(UINT64_MAX)), 0x1p64f);
  EXPECT_EQ(float(f16(2049)), 2048);
  EXPECT_EQ(float(f16(70000)), std::numeric_limits<float>::infinity());
}

struct SaturationRow {
  double value;
  uint64_t saturated[4], overflowed[4];  // e4m3fn, e4m3fnuz, e5m2, e5m2fnuz
};

TEST(FloatFormat, SaturationOfEightBits) {
  const ElementType elements[] = {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ};
  const SaturationRow rows[] = {
      {0.0, {0, 0, 0, 0}, {0, 0, 0, 0}},
      {-0.0, {0x80, 0, 0x80, 0}, {0x80, 0, 0x80, 0}},
      {kNaN, {0x7f, 0x80, 0x7e, 0x80}, {0x7f, 0x80, 0x7e, 0x80}},
      {-kNaN, {0xff, 0x80, 0xfe, 0x80}, {0xff, 0x80, 0xfe, 0x80}},
      {kInf, {0x7e, 0x7f, 0x7b, 0x7f}, {0x7f, 0x80, 0x7c, 0x80}},
      {-kInf, {0xfe, 0xff, 0xfb, 0xff}, {0xff, 0x80, 0xfc, 0x80}},
      {1e6, {0x7e, 0x7f, 0x7b, 0x7f}, {0x7f, 0x80, 0x7c, 0x80}},
      {-1e6, {0xfe, 0xff, 0xfb, 0xff}, {0xff, 0x80, 0xfc, 0x80}},
      {1e-30, {0, 0, 0, 0}, {0, 0, 0, 0}},
      {-1e-30, {0x80, 0, 0x80, 0}, {0x80, 0, 0x80, 0}},
      {5e-324, {0, 0, 0, 0}, {0, 0, 0, 0}},
  };
  for (const SaturationRow& row : rows) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(encode_float(elements[i], row.value, {.saturate = true}), row.saturated[i])
          << elements[i].to_string() << " " << row.value;
      EXPECT_EQ(encode_float(elements[i], row.value, {.saturate = false}), row.overflowed[i])
          << elements[i].to_string() << " " << row.value;
    }
  }
}

// A value overflows if it is rounded beyond the largest, not if it is larger.
TEST(FloatFormat, OverflowIsAskedAfterRounding) {
  struct Row {
    ElementType element;
    double halfway;
    uint64_t below, at;
  };
  const Row rows[] = {
      {kF8E4M3FN, 464, 0x7e, 0x7e},  // a tie with an even code below it
      {kF8E4M3FNUZ, 248, 0x7f, 0x80},
      {kF8E5M2, 61440, 0x7b, 0x7c},
      {kF8E5M2FNUZ, 61440, 0x7f, 0x80},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(encode_float(row.element, std::nextafter(row.halfway, 0), {.saturate = false}), row.below);
    EXPECT_EQ(encode_float(row.element, row.halfway, {.saturate = false}), row.at);
  }
  EXPECT_EQ(encode_float(kF8E4M3FN, std::nextafter(464, kInf), {.saturate = false}), 0x7fu);
}

TEST(FloatFormat, FourBits) {
  const std::pair<double, uint64_t> cases[] = {
      {0.25, 0},  {std::nextafter(0.25, 1), 1},
      {5, 6},     {std::nextafter(5, 6), 7},
      {7, 7},     {100, 7},
      {kInf, 7},  {-kInf, 15},
      {kNaN, 8},  {-0.0, 8},
      {-3.5, 14}, {1.05, 2},
  };
  for (const auto& [value, code] : cases) {
    EXPECT_EQ(encode_float(kF4E2M1, value), code) << value;
    EXPECT_EQ(encode_float(kF4E2M1, value, {.saturate = false}), code) << value;  // there is nothing else to give
  }
}

TEST(FloatFormat, ScaleRoundings) {
  struct Row {
    double value;
    uint64_t up, down, nearest, nearest_even;
  };
  const Row rows[] = {
      {1, 127, 127, 127, 127},
      {-2, 128, 128, 128, 128},  // no sign
      {1.25, 128, 127, 127, 127},
      {1.5, 128, 127, 128, 128},  // halfway: 127 is odd
      {3, 129, 128, 129, 128},    // halfway: 128 is even
      {3.5, 129, 128, 129, 129},
      {std::nextafter(1, 2), 128, 127, 127, 127},
      {0, 0, 0, 0, 0},
      {0x1p-127, 0, 0, 0, 0},
      {0x1p-200, 0, 0, 0, 0},
      {5e-324, 0, 0, 0, 0},
      {0x1.8p-127, 1, 0, 1, 0},
      {0x1p127, 254, 254, 254, 254},
      {kNaN, 255, 255, 255, 255},
  };
  for (const Row& row : rows) {
    const auto encode = [&](Rounding rounding) {
      return encode_float(kF8E8M0, row.value, {.e8m0_rounding = rounding});
    };
    EXPECT_EQ(encode(Rounding::up), row.up) << row.value;
    EXPECT_EQ(encode(Rounding::down), row.down) << row.value;
    EXPECT_EQ(encode(Rounding::nearest), row.nearest) << row.value;
    EXPECT_EQ(encode(Rounding::nearest_even), row.nearest_even) << row.value;
  }
  for (const double large : {0x1.1p127, 0x1p128, kInf}) {
    EXPECT_EQ(encode_float(kF8E8M0, large, {.saturate = true}), 254u) << large;
    EXPECT_EQ(encode_float(kF8E8M0, large, {.saturate = false}), 255u) << large;
  }
  EXPECT_EQ(encode_float(kF8E8M0, 0x1.1p127, {.saturate = false, .e8m0_rounding = Rounding::down}), 254u);
}

TEST(Bits, EveryWidthAndOffset) {
  for (int bits = 1; bits <= 64; ++bits) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    constexpr int64_t kCount = 19;
    std::vector<std::byte> data((static_cast<size_t>(kCount) * static_cast<size_t>(bits) + 7) / 8);  // not a byte more
    std::mt19937_64 random(static_cast<uint64_t>(bits));
    std::array<uint64_t, kCount> expected{};
    for (int round = 0; round < 3; ++round) {
      for (int64_t i = 0; i < kCount; ++i) {
        const uint64_t value = random();
        expected[static_cast<size_t>(i)] = value & mask;
        store_bits(data.data(), bits, i, value);
      }
      for (int64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(load_bits(data.data(), bits, i), expected[static_cast<size_t>(i)]) << bits << " bits, element " << i;
    }
  }
}

TEST(Bits, FirstElementIsLowest) {
  std::byte data[2] = {};
  store_bits(data, 4, 0, 0x1);
  store_bits(data, 4, 1, 0x2);
  store_bits(data, 4, 2, 0xf3);  // the low four bits count
  EXPECT_EQ(data[0], std::byte{0x21});
  EXPECT_EQ(data[1], std::byte{0x03});
}

TEST(Dispatch, FindsTheCppType) {
  const ElementType all[] = {kF32, kF64, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool};
  for (const ElementType element : all) {
    ElementType seen;
    EXPECT_TRUE(dispatch_number(element, [&]<class T>() { seen = element_type_of<T>(); }));
    EXPECT_EQ(seen, element);
  }
  for (const ElementType element : {kF8E4M3FN, kI4, kString, kC64, ElementType()})
    EXPECT_FALSE(dispatch_number(element, []<class T>() { FAIL(); }));
}

}  // namespace
}  // namespace tenon
