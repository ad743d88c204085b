#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/tensor.hpp>

#include <cmath>
#include <limits>
#include <random>

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

ElementType sint(int bits) { return {ElementKind::sint, static_cast<uint8_t>(bits)}; }
ElementType uint(int bits) { return {ElementKind::uint, static_cast<uint8_t>(bits)}; }

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

Tensor converted(const Tensor& source, ElementType to, const ConvertOptions& options = {}) {
  auto out = convert(source, to, options);
  EXPECT_TRUE(out.ok()) << out.error().to_string();
  return *std::move(out);
}

std::vector<uint64_t> codes(const Tensor& tensor) {
  std::vector<uint64_t> out;
  for (int64_t i = 0; i < tensor.size(); ++i) out.push_back(load_bits(tensor.data(), tensor.element().bits(), i));
  return out;
}

std::vector<std::string> texts(const Tensor& tensor) {
  const auto span = tensor.as<std::string>();
  return {span.begin(), span.end()};
}

// The values of the ONNX cases test_cast_FLOAT_to_FLOAT8* and test_cast_no_saturate_*.
TEST(Convert, FloatToEightBitsAsOnnxCases) {
  const auto source = row<float>({0.47892547f, 0.48033667f, 0.49968487f, 0.81910545f, 0.47031248f, 0.7229038f, 1e6f,
                                  1e-7f, kNaN, kInf, kInf, -kInf, -1e-7f, 1e-7f, -1e6f});
  struct Row {
    ElementType element;
    bool saturate;
    std::vector<uint64_t> codes;
  };
  const Row rows[] = {
      {kF8E4M3FN, true, {47, 47, 48, 53, 47, 52, 126, 0, 127, 126, 126, 254, 128, 0, 254}},
      {kF8E4M3FNUZ, true, {55, 55, 56, 61, 55, 60, 127, 0, 128, 127, 127, 255, 0, 0, 255}},
      {kF8E5M2, true, {56, 56, 56, 59, 56, 58, 123, 0, 126, 123, 123, 251, 128, 0, 251}},
      {kF8E5M2FNUZ, true, {60, 60, 60, 63, 60, 62, 127, 0, 128, 127, 127, 255, 0, 0, 255}},
      {kF8E4M3FN, false, {47, 47, 48, 53, 47, 52, 127, 0, 127, 127, 127, 255, 128, 0, 255}},
      {kF8E4M3FNUZ, false, {55, 55, 56, 61, 55, 60, 128, 0, 128, 128, 128, 128, 0, 0, 128}},
      {kF8E5M2, false, {56, 56, 56, 59, 56, 58, 124, 0, 126, 124, 124, 252, 128, 0, 252}},
      {kF8E5M2FNUZ, false, {60, 60, 60, 63, 60, 62, 128, 0, 128, 128, 128, 128, 0, 0, 128}},
  };
  for (const Row& r : rows)
    EXPECT_EQ(codes(converted(source, r.element, {.saturate = r.saturate})), r.codes) << r.element.to_string();
}

TEST(Convert, FloatToFourBitsAsOnnxCases) {
  const auto source =
      row<float>({0.48f, 0.25f, 1.05f, -3.5f, -8, 9, 1e6f, 1e-7f, kNaN, kInf, kInf, -kInf, -4, 0.01f, -0.f});
  const std::vector<uint64_t> expected = {1, 0, 2, 14, 15, 7, 7, 0, 8, 7, 7, 15, 14, 0, 8};
  EXPECT_EQ(codes(converted(source, kF4E2M1)), expected);
  EXPECT_EQ(codes(converted(converted(source, kF16), kF4E2M1)), expected);
  const auto back = converted(converted(source, kF4E2M1), kF32);
  const float values[] = {0.5f, 0, 1, -4, -6, 6, 6, 0, -0.f, 6, 6, -6, -4, 0, -0.f};
  for (size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(back.as<float>()[i], values[i]);
    EXPECT_EQ(std::signbit(back.as<float>()[i]), std::signbit(values[i]));
  }
}

TEST(Convert, ScaleAsOnnxCases) {
  const auto source = row<float>({0, 0.124f, 0.25f, 0.5f, 1.1f, 2, 4, 8});
  const auto scales = converted(source, kF8E8M0);
  EXPECT_EQ(codes(scales), (std::vector<uint64_t>{0, 124, 125, 126, 128, 128, 129, 130}));
  EXPECT_EQ(converted(scales, kF32).as<float>()[0], 0x1p-127f);
  EXPECT_EQ(converted(scales, kF16).as<f16>()[0].bits, 0);
  EXPECT_EQ(codes(converted(source, kF8E8M0, {.e8m0_rounding = ConvertOptions::Rounding::down})),
            (std::vector<uint64_t>{0, 123, 125, 126, 127, 128, 129, 130}));
}

TEST(Convert, FloatToNarrowIntegersWrapsAsOnnxCases) {
  std::vector<float> values;
  for (int i = -9; i <= 15; ++i) values.push_back(static_cast<float>(i));
  for (const ElementType element : {kI4, kU4, kI2, kU2}) {
    const uint64_t mask = (uint64_t{1} << element.bits()) - 1;
    std::vector<uint64_t> expected;
    for (const float value : values) expected.push_back(static_cast<uint64_t>(static_cast<int64_t>(value)) & mask);
    EXPECT_EQ(codes(converted(row(values), element)), expected) << element.to_string();
    EXPECT_EQ(codes(converted(converted(row(values), kF16), element)), expected) << element.to_string();
  }
  EXPECT_EQ(converted(row<float>({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, kNaN}), kI4).to_ints(), (Ints{0, 2, 2, 0, -2, 0}));
}

TEST(Convert, FloatToIntegersTruncatesAndSaturates) {
  const auto source = row<double>({1.9, -1.9, 1e30, -1e30, NAN, INFINITY, -INFINITY, 127.5, 128, -128.9, -129, 255.9});
  EXPECT_EQ(converted(source, kI8).to_ints(), (Ints{1, -1, 127, -128, 0, 127, -128, 127, 127, -128, -128, 127}));
  EXPECT_EQ(converted(source, kU8).to_ints(), (Ints{1, 0, 255, 0, 0, 255, 0, 127, 128, 0, 0, 255}));
  EXPECT_EQ(converted(source, sint(12)).to_ints(),
            (Ints{1, -1, 2047, -2048, 0, 2047, -2048, 127, 128, -128, -129, 255}));
  EXPECT_EQ(converted(source, uint(33)).to_ints(),
            (Ints{1, 0, (int64_t{1} << 33) - 1, 0, 0, (int64_t{1} << 33) - 1, 0, 127, 128, 0, 0, 255}));
  const auto edges = row<double>({0x1p63, -0x1p63, std::nextafter(0x1p63, 0), 0x1p64, std::nextafter(0x1p64, 0), -1});
  const auto i64 = converted(edges, kI64);
  EXPECT_EQ(i64.to_ints(), (Ints{INT64_MAX, INT64_MIN, INT64_MAX - 1023, INT64_MAX, INT64_MAX, -1}));
  const Tensor unsigned_edges = converted(edges, kU64);
  const auto u64 = unsigned_edges.as<uint64_t>();
  EXPECT_EQ(
      std::vector<uint64_t>(u64.begin(), u64.end()),
      (std::vector<uint64_t>{uint64_t{1} << 63, 0, (uint64_t{1} << 63) - 1024, UINT64_MAX, UINT64_MAX - 2047, 0}));
}

TEST(Convert, IntegersKeepTheirLowBits) {
  const auto source = row<int64_t>({-1, 300, -300, 8, INT64_MIN, INT64_MAX});
  EXPECT_EQ(converted(source, kU8).to_ints(), (Ints{255, 44, 212, 8, 0, 255}));
  EXPECT_EQ(converted(source, kI8).to_ints(), (Ints{-1, 44, -44, 8, 0, -1}));
  EXPECT_EQ(converted(source, kI4).to_ints(), (Ints{-1, -4, 4, -8, 0, -1}));
  EXPECT_EQ(converted(source, sint(10)).to_ints(), (Ints{-1, 300, -300, 8, 0, -1}));
  EXPECT_EQ(converted(converted(source, kI4), kI8).to_ints(), (Ints{-1, -4, 4, -8, 0, -1}));
  EXPECT_EQ(converted(converted(source, kI4), kU64).as<uint64_t>()[0], UINT64_MAX);
}

TEST(Convert, WideIntegersRoundToFloatOnce) {
  // Rounded to double first, the value would be a tie and go down.
  const int64_t value = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;
  EXPECT_EQ(converted(row<int64_t>({value, -value}), kF32).as<float>()[0], 0x1p62f + 0x1p39f);
  EXPECT_EQ(converted(row<int64_t>({value, -value}), kF32).as<float>()[1], -(0x1p62f + 0x1p39f));
  EXPECT_EQ(converted(row<uint64_t>({UINT64_MAX}), kF32).as<float>()[0], 0x1p64f);
  EXPECT_EQ(converted(row<uint64_t>({UINT64_MAX}), kF64).as<double>()[0], 0x1p64);
  // The same of a width without a C++ type.
  const int64_t half = (int64_t{1} << 61) + (int64_t{1} << 37) + 1;
  EXPECT_EQ(converted(converted(row<int64_t>({half}), sint(63)), kF32).as<float>()[0], 0x1p61f + 0x1p38f);
  EXPECT_EQ(float(converted(row<int64_t>({(int64_t{1} << 60) + (int64_t{1} << 52) + 1}), kBF16).as<bf16>()[0]),
            0x1p60f + 0x1p53f);
}

TEST(Convert, Booleans) {
  EXPECT_EQ(converted(row<float>({0, -0.f, 0.1f, kNaN, kInf}), kBool).to_ints(), (Ints{0, 0, 1, 1, 1}));
  EXPECT_EQ(converted(row<int64_t>({0, 256, -1}), kBool).to_ints(), (Ints{0, 1, 1}));
  EXPECT_EQ(converted(converted(row<int64_t>({0, 1, 2}), kI4), kBool).to_ints(), (Ints{0, 1, 1}));
  const auto flags = row<bool>({false, true});
  EXPECT_EQ(converted(flags, kF16).as<f16>()[1].bits, 0x3c00);
  EXPECT_EQ(converted(flags, kI2).to_ints(), (Ints{0, 1}));
  EXPECT_EQ(codes(converted(flags, kF8E4M3FN)), (std::vector<uint64_t>{0, 0x38}));
  uint8_t odd[] = {0, 2, 255};  // anything but 0 is true
  const auto borrowed = *Tensor::borrow(kBool, {3}, odd, sizeof odd);
  EXPECT_EQ(converted(borrowed, kI32).to_ints(), (Ints{0, 1, 1}));
  EXPECT_EQ(converted(borrowed, kI4).to_ints(), (Ints{0, 1, 1}));
  EXPECT_EQ(texts(converted(borrowed, kString)), (std::vector<std::string>{"0", "1", "1"}));
}

TEST(Convert, NumbersToText) {
  // The first six are of the ONNX case test_cast_FLOAT_to_STRING.
  EXPECT_EQ(
      texts(converted(row<float>({0.9767611f, 0.6048455f, 0.03918779f, 0.064147495f, 0.31798318f, 0.29614022f, 100.5f,
                                  3, -0.f, kNaN, kInf, -kInf, 1e-5f, 1e20f, 314.15926f, 0.0001f, 123456.f}),
                      kString)),
      (std::vector<std::string>{"0.9767611", "0.6048455", "0.03918779", "0.064147495", "0.31798318", "0.29614022",
                                "100.5", "3", "-0", "NaN", "INF", "-INF", "1e-05", "1e+20", "314.15927", "0.0001",
                                "123456"}));
  EXPECT_EQ(texts(converted(row<double>({0.1, 1e15}), kString)), (std::vector<std::string>{"0.1", "1000000000000000"}));
  EXPECT_EQ(texts(converted(row<f16>({f16(0.1f), f16(65504.f), f16(0x1p-24f)}), kString)),
            (std::vector<std::string>{"0.1", "65500", "6e-08"}));
  EXPECT_EQ(texts(converted(row<int64_t>({INT64_MIN, 0, 42}), kString)),
            (std::vector<std::string>{"-9223372036854775808", "0", "42"}));
  EXPECT_EQ(texts(converted(converted(row<int64_t>({-8, 7}), kI4), kString)), (std::vector<std::string>{"-8", "7"}));
}

TEST(Convert, EveryNarrowFloatSurvivesText) {
  for (const ElementType element : {kF16, kBF16, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1}) {
    const int64_t count = int64_t{1} << element.bits();
    auto source = *Tensor::zeros(element, {count});
    for (int64_t i = 0; i < count; ++i) store_bits(source.mutable_data(), element.bits(), i, static_cast<uint64_t>(i));
    const auto back = converted(converted(source, kString), element, {.saturate = false});
    for (int64_t i = 0; i < count; ++i) {
      const double a = source.double_at(i), b = back.double_at(i);
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << element.to_string() << " code " << i;
    }
  }
}

TEST(Convert, TextToFloats) {
  const auto source =
      row<std::string>({"3.14", "1000", "1e-5", "1E8", "INF", "+inf", "-INF", "NaN", "+2.5", "-0", " 7 ", ".5", "1e400",
                        "-1e400", "1e-400", "0.1e-99999999999999999999", "1e99999999999999999999"});
  const double expected[] = {3.14, 1000, 1e-5, 1e8,      INFINITY,  INFINITY, -INFINITY, NAN,     2.5,
                             -0.,  7,    .5,   INFINITY, -INFINITY, 0,        0,         INFINITY};
  const auto f64 = converted(source, kF64), f32 = converted(source, kF32), f16s = converted(source, kF16);
  for (size_t i = 0; i < std::size(expected); ++i) {
    const auto same = [&](double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; };
    EXPECT_TRUE(same(f64.as<double>()[i], expected[i])) << i;
    EXPECT_TRUE(same(f32.as<float>()[i], static_cast<float>(expected[i]))) << i;
    EXPECT_TRUE(same(f16s.double_at(static_cast<int64_t>(i)), decode_float(kF16, encode_float(kF16, expected[i]))))
        << i;
  }
  // Rounded to float once: by way of double this is a tie.
  EXPECT_EQ(converted(row<std::string>({"1.00000005960464477540"}), kF32).as<float>()[0], 1 + 0x1p-23f);
}

TEST(Convert, TextToIntegers) {
  const auto source = row<std::string>({"42", "-7", "100.5", "-100.5", "1e3", "9223372036854775807",
                                        "99999999999999999999", "-99999999999999999999", "NaN", "inf", "+5"});
  EXPECT_EQ(converted(source, kI64).to_ints(),
            (Ints{42, -7, 100, -100, 1000, INT64_MAX, INT64_MAX, INT64_MIN, 0, INT64_MAX, 5}));
  EXPECT_EQ(converted(source, kI8).to_ints(), (Ints{42, -7, 100, -100, 127, 127, 127, -128, 0, 127, 5}));
  EXPECT_EQ(converted(source, kU4).to_ints(), (Ints{15, 0, 15, 0, 15, 15, 15, 0, 0, 15, 5}));
  EXPECT_EQ(converted(row<std::string>({"18446744073709551615"}), kU64).as<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(converted(row<std::string>({"0", "1", "0.0", "-2"}), kBool).to_ints(), (Ints{0, 1, 0, 1}));
}

TEST(Convert, NoNumberIsQuoted) {
  for (const char* text : {"", "Hello World!", "1.5x", "--1", "+-1", "1e", "0x10", "1,5", "e5", ".", "1 2"}) {
    for (const ElementType element : {kF64, kF32, kF16, kI64, kU64, kBool}) {
      const auto refused = convert(row<std::string>({"1", text}), element);
      ASSERT_FALSE(refused.ok()) << text << " " << element.to_string();
      EXPECT_THAT(refused.error().message(),
                  testing::HasSubstr(str("element 1 of a tensor str[2] is no number: ", quote(text))));
    }
  }
  const auto refused = convert(row<std::string>({std::string(100000, 'x')}), kF32);
  ASSERT_FALSE(refused.ok());
  EXPECT_LT(refused.error().message().size(), 200u);
}

TEST(Convert, Complex) {
  const auto source = row<std::complex<double>>({{1.5, -2}, {0.1, 0}});
  const auto narrow = converted(source, kC64);
  EXPECT_EQ(narrow.as<std::complex<float>>()[1], std::complex<float>(0.1f, 0));
  EXPECT_EQ(converted(narrow, kC128).as<std::complex<double>>()[0], std::complex<double>(1.5, -2));
  EXPECT_EQ(convert(source, kF64).error().code(), Code::unsupported);
  EXPECT_EQ(convert(row<float>({1}), kC64).error().code(), Code::unsupported);
  EXPECT_EQ(convert(row<std::string>({"1"}), kC64).error().code(), Code::unsupported);
}

TEST(Convert, SameTypeShares) {
  const auto source = row<float>({1, 2});
  EXPECT_EQ(converted(source, kF32).data(), source.data());
  EXPECT_FALSE(convert(source, ElementType()).ok());
  EXPECT_FALSE(convert(Tensor(), kF32).ok());
}

// Every pair of types compared with the elementwise way: read and set by value. Lengths cross the internal blocks.
TEST(Convert, EveryPairAgreesWithElementwise) {
  std::vector<ElementType> types = {kF64,    kF32,        kF16,    kBF16,   kF8E4M3FN, kF8E4M3FNUZ,
                                    kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1, kBool};
  for (const int bits : {1, 2, 3, 4, 5, 8, 12, 16, 24, 32, 33, 63, 64}) {
    types.push_back(sint(bits));
    types.push_back(uint(bits));
  }
  const uint64_t seed = 7;
  std::mt19937_64 random(seed);
  for (const ElementType from : types) {
    auto source = *Tensor::zeros(from, {257});
    for (int64_t i = 0; i < source.size(); ++i)
      store_bits(source.mutable_data(), from.bits(), i, random() >> (random() % 64));
    if (from.is_bool())
      for (auto& value : source.mutable_as<uint8_t>()) value &= 1;
    for (const ElementType to : types) {
      if (from == to) continue;
      const auto out = converted(source, to);
      auto expected = *Tensor::zeros(to, {257});
      for (int64_t i = 0; i < source.size(); ++i) {
        // Unsigned values beyond i64 have no way by int_at: bool, float and wider integers take them by value.
        const bool beyond = from == kU64 && source.int_at(i) < 0;
        if (from.is_float())
          expected.set_double(i, source.double_at(i));
        else if (!beyond || to.is_int() || to.is_bool())
          expected.set_int(i, source.int_at(i));
        else
          store_bits(expected.mutable_data(), to.bits(), i, load_bits(out.data(), to.bits(), i));
      }
      for (int64_t i = 0; i < source.size(); ++i) {
        if (to.is_float() && std::isnan(expected.double_at(i))) {
          ASSERT_TRUE(std::isnan(out.double_at(i)))
              << from.to_string() << " to " << to.to_string() << ", seed " << seed;
        } else {
          ASSERT_EQ(load_bits(out.data(), to.bits(), i), load_bits(expected.data(), to.bits(), i))
              << from.to_string() << " to " << to.to_string() << " of " << source.double_at(i) << ", seed " << seed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon
