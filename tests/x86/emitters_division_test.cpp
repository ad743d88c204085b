// Quotients, remainders and powers of integers, and remainders of floats, in the hardest cases: near integral
// quotients, at the limits of types, and with operands of all sizes.
#include <bit>
#include <cmath>
#include <random>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

constexpr uint64_t kSeed = 20261124;
constexpr size_t kPairs = size_t{1} << 16;

class EmitterDivision : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  // Checks every row of `op` for this type, with full and half vectors.
  template <class Expected>
  void expect(std::string_view op, const Attributes& attributes, std::span<const Column> columns, Expected expected) {
    const ElementType type = columns[0].element;
    size_t rows = 0;
    for (const codegen::JitterRow* row : elementwise_table().rows()) {
      if (row->op.view() != op || isa_of(*row) != GetParam() || !row->types.contains(type)) continue;
      ++rows;
      for (int lanes = lanes_of(GetParam(), type), least = type.bits() == 64 ? lanes : lanes / 2; lanes >= least;
           lanes /= 2) {
        const RowRun run{row, GetParam(), lanes, {}, attributes};
        const auto got = run_row(run, columns, type);
        ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
        for (size_t i = 0; i < got->bits.size(); ++i) {
          const uint64_t a = columns[0].bits[i], b = columns[1].bits[i];
          ASSERT_EQ(got->bits[i], expected(a, b)) << describe(run) << ", " << type.to_string() << std::hex << ": 0x"
                                                  << a << ", 0x" << b << ", seed " << std::dec << kSeed;
        }
      }
    }
    EXPECT_EQ(rows, 1u) << op;
  }
};

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
T value_of(uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<T>>(bits));
}
template <class T>
uint64_t bits_of(T value) {
  return std::bit_cast<Bits<T>>(value);
}

template <class T>
ElementType type_of() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 8 ? kF64 : kF32;
  if constexpr (std::is_signed_v<T>) return sizeof(T) == 8 ? kI64 : kI32;
  return sizeof(T) == 8 ? kU64 : kU32;
}

// Integers of any number of bits, and pairs of which the first is a multiple of the second, or adjacent to one.
template <class T>
std::vector<Column> integer_pairs(int most_bits) {
  std::mt19937_64 random(kSeed);
  std::vector<Column> columns(2, {type_of<T>(), std::vector<uint64_t>(kPairs)});
  const auto draw = [&] {
    const auto unused = static_cast<int>(64 - most_bits + random() % static_cast<uint64_t>(most_bits));
    const uint64_t magnitude = random() >> unused;
    return static_cast<Bits<T>>(std::is_signed_v<T> && random() % 2 ? uint64_t{0} - magnitude : magnitude);
  };
  constexpr T kEnds[] = {0,
                         1,
                         static_cast<T>(-1),
                         2,
                         std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::min(),
                         static_cast<T>(std::numeric_limits<T>::max() - 1),
                         static_cast<T>(std::numeric_limits<T>::min() + 1)};
  const bool has_ends = most_bits == static_cast<int>(8 * sizeof(T));
  for (size_t i = 0; i < kPairs; ++i) {
    Bits<T> a = draw(), b = draw();
    if (i % 2 == 0 && most_bits > 16)
      a = b * (draw() >> (random() % (8 * sizeof(T)))) + static_cast<Bits<T>>(random() % 3) - 1;
    if (has_ends && i % 8 == 1) a = static_cast<Bits<T>>(kEnds[random() % std::size(kEnds)]);
    if (has_ends && i % 16 < 2) b = static_cast<Bits<T>>(kEnds[random() % std::size(kEnds)]);
    columns[0].bits[i] = a, columns[1].bits[i] = b;
  }
  return columns;
}

template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a));
  return a / b;
}
template <class T>
T remainder_of(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return a % b;
}
template <class T>
T modulus(T a, T b) {
  const T r = remainder_of(a, b);
  return r != 0 && std::is_signed_v<T> && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
template <class T>
T power(T a, T b) {
  if (std::is_signed_v<T> && b < 0) return a == 1 ? 1 : a == static_cast<T>(-1) ? (b % 2 ? a : 1) : 0;
  Bits<T> result = 1;
  for (auto base = static_cast<Bits<T>>(a), left = static_cast<Bits<T>>(b); left != 0; left >>= 1, base *= base)
    if (left & 1) result *= base;
  return static_cast<T>(result);
}

#define EXPECT_INTEGERS(T, op, function, attributes, columns) \
  expect(op, attributes, columns,                             \
         [](uint64_t a, uint64_t b) { return bits_of<T>(function(value_of<T>(a), value_of<T>(b))); })

TEST_P(EmitterDivision, OfIntegersOfAllSizes) {
  const auto check = [&]<class T>(T) {
    const std::vector<Column> pairs = integer_pairs<T>(8 * sizeof(T));
    EXPECT_INTEGERS(T, "Div", quotient, Attributes{}, pairs);
    EXPECT_INTEGERS(T, "Fmod", remainder_of, Attributes{}, pairs);
    EXPECT_INTEGERS(T, "Mod", modulus, Attributes{}, pairs);
    EXPECT_INTEGERS(T, "Pow", power, Attributes{}, pairs);
  };
  check(int32_t{});
  check(uint32_t{});
  check(int64_t{});
  check(uint64_t{});
}

// All pairs of bytes, and pairs of 16 bits.
TEST_P(EmitterDivision, OfIntegersThatFitF32) {
  const auto check = [&]<class T>(T) {
    std::vector<Column> bytes(2, {type_of<T>(), std::vector<uint64_t>(kPairs)});
    for (size_t i = 0; i < kPairs; ++i)
      for (size_t side = 0; side < 2; ++side) {
        const auto byte = static_cast<uint8_t>(i >> (8 * side));
        bytes[side].bits[i] = std::is_signed_v<T> ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
      }
    for (const std::vector<Column>& pairs : {bytes, integer_pairs<T>(std::is_signed_v<T> ? 15 : 16)}) {
      const Attributes narrow{{"fits_24_bits", 1}};
      EXPECT_INTEGERS(T, "Div", quotient, narrow, pairs);
      EXPECT_INTEGERS(T, "Fmod", remainder_of, narrow, pairs);
      EXPECT_INTEGERS(T, "Mod", modulus, narrow, pairs);
    }
  };
  check(int32_t{});
  check(uint32_t{});
}

// Arbitrary pairs, pairs whose quotient has any size up to the limits of the type, and multiples.
template <class T>
std::vector<Column> float_pairs() {
  std::mt19937_64 random(kSeed);
  std::vector<Column> columns(2, {type_of<T>(), std::vector<uint64_t>(kPairs)});
  constexpr T kEnds[] = {0,
                         -T{0},
                         std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::lowest(),
                         1};
  for (size_t i = 0; i < kPairs; ++i) {
    T x = value_of<T>(random()), y = value_of<T>(random());
    const int apart = static_cast<int>(random() % (sizeof(T) == 8 ? 2100 : 280));
    if (i % 4 == 1) x = std::ldexp(y, static_cast<int>(random() % 80)) * T(1.37);
    if (i % 4 == 2) y = std::ldexp(x, -apart) * T(0.71);
    if (i % 4 == 3)
      x = std::nextafter(y * T(random() % 100000), T(random() % 2 ? 1 : -1) * std::numeric_limits<T>::max());
    if (i % 64 == 0) x = kEnds[random() % std::size(kEnds)];
    if (i % 48 == 0) y = kEnds[random() % std::size(kEnds)];
    // Runs of lanes with small quotients, so that not all vectors need the slow path.
    if (i / 64 % 2 == 0) x = T(static_cast<int32_t>(random())) / 64, y = T(static_cast<int32_t>(random()) % 4096) / 8;
    columns[0].bits[i] = bits_of(x), columns[1].bits[i] = bits_of(y);
  }
  return columns;
}

template <class T>
uint64_t canonical(T value) {
  return std::isnan(value) ? bits_of(std::numeric_limits<T>::quiet_NaN()) : bits_of(value);
}

TEST_P(EmitterDivision, OfFloatsLeavesExactRemainders) {
  const auto check = [&]<class T>(T) {
    for (const codegen::JitterRow* row : elementwise_table().rows()) {
      const bool keeps_sign = row->op == "Fmod";
      if ((!keeps_sign && row->op != "Mod") || isa_of(*row) != GetParam() || !row->types.contains(type_of<T>()))
        continue;
      const std::vector<Column> pairs = float_pairs<T>();
      const RowRun run{row, GetParam(), lanes_of(GetParam(), type_of<T>())};
      const auto got = run_row(run, pairs, type_of<T>());
      ASSERT_TRUE(got.ok()) << got.error().message();
      for (size_t i = 0; i < kPairs; ++i) {
        const T x = value_of<T>(pairs[0].bits[i]), y = value_of<T>(pairs[1].bits[i]);
        T expected = std::fmod(x, y);
        if (!keeps_sign && expected != 0 && std::signbit(expected) != std::signbit(y)) expected += y;
        ASSERT_EQ(canonical(value_of<T>(got->bits[i])), canonical(expected))
            << describe(run) << ": " << x << ", " << y << ", seed " << kSeed;
      }
    }
  };
  check(float{});
  check(double{});
}

INSTANTIATE_TEST_SUITE_P(Isas, EmitterDivision, testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86::test
