// Passes on quotients: by constants, by loop-invariant values, of narrow integers, and of uniform values.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

// Every significand of x, both halves of the exponent's range, and NaN.
TEST(QuotientFactors, GiveTheBitsOfTheQuotient) {
  std::mt19937 random(20261122);
  std::vector<float> divisors = {1.4142135f,    255,          3, 6, -6, 0.1f, 127.5f, 1e-10f, 2.5066283f,
                                 0x1.fffffep3f, 0x1.000002p0f};
  while (divisors.size() < 40)
    divisors.push_back(
        std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, static_cast<int>(random() % 40) - 20));
  int found = 0;
  for (const float divisor : divisors) {
    const auto by = quotient_factors(divisor);
    if (!by) continue;
    ++found;
    for (uint32_t bits = 0; bits < 1u << 23; ++bits) {
      const float x = std::bit_cast<float>(0x3f800000u | bits);
      ASSERT_EQ(std::fma(x, by->high, x * by->low), x / divisor) << x << " by " << divisor;
    }
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const float x : {kInfinity, -kInfinity, 0.0f, -0.0f, 0x1.fffffep127f, 0x1p-60f}) {
      const float y = std::fma(x, by->high, x * by->low);
      EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(x / divisor)) << x << " by " << divisor;
    }
    for (int step = 0; step < 20000; ++step) {  // tiny numbers
      const float x = std::bit_cast<float>(static_cast<uint32_t>(random()) % 0x10000000u);
      const float y = std::fma(x, by->high, x * by->low), wanted = x / divisor;
      EXPECT_TRUE(y == wanted || y == std::nextafter(wanted, 2 * wanted) || y == std::nextafter(wanted, 0.0f))
          << x << " by " << divisor;
    }
  }
  EXPECT_GE(found, 36) << "of 40";
}

TEST(QuotientFactors, PowersOfTwoAreExactAndOthersHaveNone) {
  const auto quarter = quotient_factors(-4);
  ASSERT_TRUE(quarter);
  EXPECT_EQ(quarter->high, -0.25f);
  EXPECT_EQ(quarter->low, 0);
  for (const float divisor : {0.0f, -0.0f, 0x1p-149f, 0x1p-61f, 0x1p61f, std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(quotient_factors(divisor)) << divisor;
}

TEST_P(Passes, QuotientsByConstantsAreProducts) {
  const auto kernel_by = [](const std::string& bits) {
    return row_kernel(GetParam().lanes,
                      load("f32") + "    %11:f32 = Scalar {bits = " + bits + "}\n    %20:f32 = Div %10, %11\n");
  };
  const LinearKernel kernel = optimised(kernel_by("0x40e00000"), {.memory_operands = false});
  const std::string text = print(kernel);
  EXPECT_EQ(count(text, "Div "), 0) << text;
  EXPECT_EQ(count(text, "Fma "), 2) << text;
  EXPECT_EQ(count(text, "Scalar"), 4) << "of the loop and the tail\n" << text;
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float) { return x / 7; });
  const std::string half = print(optimised(kernel_by("0x40000000"), {.memory_operands = false}));
  EXPECT_EQ(count(half, "Mul "), 2) << half;
  EXPECT_EQ(count(half, "Fma "), 0) << half;
  EXPECT_EQ(count(print(optimised(kernel_by("0x0"), {.memory_operands = false})), "Div "), 2);
}

// Maps floats to integers so that neighbours differ by 1 and both zeros are equal.
int64_t place_of(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits < 0 ? -int64_t{bits & 0x7fffffff} : bits;
}

// Divisors of one kind and any x. Infinities, zeros and NaN equal those of the quotient, and so do the bits of almost
// all other results.
class StandingQuotients : public Passes {
 protected:
  // The quotient of a polynomial in x with `steps` steps, or of x itself.
  std::string text_of(std::string_view attributes, int steps = 0) const {
    std::string inside = load("f32");
    int last = 10;
    for (int i = 0; i < steps; ++i) {
      const int product = 100 + 2 * i, sum = product + 1;
      inside += str("    %", product, ":f32 = Mul %", std::exchange(last, sum), ", %10\n    %", sum, ":f32 = Add %",
                    product, ", %10\n");
    }
    std::string text = row_kernel(GetParam().lanes, inside + str("    %20:f32 = Div %", last, ", W", attributes, "\n"));
    const std::string divisor = str("%", 6 + 2 * (2 + 2 * steps));  // after the registers of the loop and the tail
    for (size_t at; (at = text.find('W')) != std::string::npos;) text.replace(at, 1, divisor);
    const std::string_view before = "%3:g = Zero\n";
    text.insert(text.find(before) + before.size(), str("  ", divisor, ":f32 = BroadcastLoad f32 [%2]\n"));
    return text;
  }
  static bool is_moderate(float s) {
    const float magnitude = std::abs(s);
    return magnitude == 0 || !std::isfinite(s) || (magnitude >= 0x1p-126f && magnitude <= 0x1p122f);
  }
  // Hard numbers and random ones. For divisors that are not moderate, quotients are exact.
  template <class IsDivisor>
  void expect_quotients(const LinearKernel& kernel, IsDivisor is_divisor) {
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
    std::vector<float> hard{0, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), kMost, -kMost};
    for (const int exponent :
         {-149, -148, -127, -126, -125, -101, -100, -99, -60, -1, 0, 1, 99, 100, 101, 121, 122, 126, 127})
      for (const float m : {1.0f, -1.0f, 1.5f, 0x1.fffffep0f}) hard.push_back(std::ldexp(m, exponent));
    std::mt19937 random(5);
    const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
    std::vector<float> divisors = hard;
    while (divisors.size() < 1000) divisors.push_back(any());
    size_t apart = 0;
    for (size_t which = 0; which < divisors.size(); ++which) {
      // A power of two divided by 2 - 2^-23 is near the middle of two floats.
      const bool is_hard = which < hard.size();
      const float divisor = divisors[which];
      if (!is_divisor(divisor)) continue;
      std::vector<float> x = hard;
      while (x.size() < 500) x.push_back(any());
      while (x.size() < 1000) x.push_back(divisor * std::ldexp(any(), -100));  // quotients of some size
      const std::vector<float> y = run(*code, x, divisor);
      for (size_t i = 0; i < x.size(); ++i) {
        const float wanted = x[i] / divisor;
        if (std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(wanted)) continue;
        if (std::isnan(wanted) && std::isnan(y[i])) continue;
        const bool is_small = std::abs(wanted) < 0x1p-100f, is_exact = x[i] == 0 || !std::isfinite(wanted);
        const int64_t most = is_exact || !is_moderate(divisor) ? 0 : is_small ? 2 : 1;
        ASSERT_LE(std::abs(place_of(y[i]) - place_of(wanted)), most) << x[i] << " by " << divisor << " is " << y[i];
        apart += !is_small && !is_hard && std::abs(divisor) < 0x1p100f;
      }
    }
    EXPECT_LE(apart, 3u) << "of a million";
  }
};

TEST_P(StandingQuotients, ByAnyDivisorAreProducts) {
  LinearKernel few = parsed(text_of(""));
  few.extents = {5 * GetParam().lanes};
  EXPECT_EQ(count(print(optimised(few, {.memory_operands = false})), "Div "), 2);
  const LinearKernel kernel = optimised(text_of(""), {.memory_operands = false});
  EXPECT_EQ(count(print(kernel), "OddDivisor "), 1) << print(kernel);
  EXPECT_EQ(count(print(kernel), "DivStanding "), 2) << print(kernel);
  expect_quotients(kernel, [](float) { return true; });
}

TEST_P(StandingQuotients, ByModerateDivisorsNeedNoCheck) {
  LinearKernel few = parsed(text_of(" {moderate = 1}"));
  few.extents = {8 * GetParam().lanes};
  EXPECT_EQ(count(print(optimised(few, {.memory_operands = false})), "DivAlike "), 1) << "of the loop, and a tail";
  const LinearKernel kernel = optimised(text_of(" {moderate = 1}"), {.memory_operands = false});
  EXPECT_EQ(count(print(kernel), "OddDivisor "), 0) << print(kernel);
  EXPECT_EQ(count(print(kernel), "Fma "), 3) << print(kernel);
  expect_quotients(kernel, is_moderate);
}

// With two units for products, fewer quotients pay for the preparation of their divisor.
TEST_P(StandingQuotients, OfFewVectorsByTwoUnits) {
  const auto products = [&](int vectors, double units) {
    LinearKernel kernel = parsed(text_of(""));
    kernel.extents = {vectors * GetParam().lanes};
    PassOptions options(FormPasses{.isa = GetParam().isa, .memory_operands = false});
    options.vector_units = units;
    EXPECT_TRUE(optimise(kernel, options).ok());
    return count(print(kernel), "DivStanding ");
  };
  EXPECT_EQ(products(9, 1), 0);
  EXPECT_EQ(products(9, 2), 2);
  EXPECT_EQ(products(5, 2), 0);
}

// A quotient takes as long as eight other operations of each unit. A product and the sum that uses it count as one.
TEST_P(StandingQuotients, WithLittleBesideThem) {
  const auto products = [&](int steps, double units) {
    LinearKernel kernel = parsed(text_of("", steps));
    PassOptions options(FormPasses{.isa = GetParam().isa, .memory_operands = false});
    options.vector_units = units;
    EXPECT_TRUE(optimise(kernel, options).ok());
    return count(print(kernel), "DivStanding ");
  };
  EXPECT_EQ(products(6, 1), 2) << "and a load and a store";
  EXPECT_EQ(products(7, 1), 0);
  EXPECT_EQ(products(14, 2), 2);
  EXPECT_EQ(products(15, 2), 0);
}

// The divider needs ten cycles for a root and eight for a quotient, which two units could use for other operations.
class Roots : public Passes {
 protected:
  // A kernel with the operators `inside`, in which W is replaced by `attributes`.
  LinearKernel kernel_of(const std::string& inside, double units, std::string_view attributes) {
    std::string text = row_kernel(GetParam().lanes, load("f32") + inside);
    for (size_t at; (at = text.find('W')) != std::string::npos;) text.replace(at, 1, attributes);
    LinearKernel kernel = parsed(text);
    PassOptions options(FormPasses{.isa = GetParam().isa, .memory_operands = false});
    options.vector_units = units;
    options.cycles = [](const LinearKernel&, const snippet::Instruction& one) {
      const std::string_view op = one.op.view();
      return op == "Sqrt" ? 10. : op == "Div" ? 8. : op == "SqrtByProducts" ? 11. : 1.;
    };
    EXPECT_TRUE(optimise(kernel, options).ok());
    return kernel;
  }
  bool has_products() const { return GetParam().isa == Isa::avx512 && GetParam().lanes == 16; }
};

TEST_P(Roots, GoBesideTheDivider) {
  const std::string quotient = "    %11:f32 = Sqrt %10W\n    %20:f32 = Div %10, %11\n",
                    root = "    %20:f32 = Sqrt %10W\n",
                    two = "    %11:f32 = Sqrt %10W\n    %12:f32 = Sqrt %11W\n    %20:f32 = Div %10, %12\n";
  const auto products = [&](const std::string& inside, double units, std::string_view attributes = " {moderate = 1}") {
    return count(print(kernel_of(inside, units, attributes)), "SqrtByProducts ") / 2;  // of the loop and the tail
  };
  EXPECT_EQ(products(quotient, 2), has_products());
  EXPECT_EQ(products(two, 2), has_products() ? 2 : 0);
  std::string busy;
  for (int i = 30; i < 42; ++i) busy += str("    %", i, ":f32 = Mul %", i == 30 ? 10 : i - 1, ", %10\n");
  busy += "    %11:f32 = Sqrt %41W\n    %12:f32 = Sqrt %11W\n    %20:f32 = Div %10, %12\n";
  EXPECT_EQ(products(busy, 2), has_products()) << "the divider keeps one, which takes it no longer than all else";
  EXPECT_EQ(products(root, 2), has_products());
  EXPECT_EQ(products(quotient, 1), has_products());
  EXPECT_EQ(products(root, 1), 0) << "no less than the divider takes";
  EXPECT_EQ(products(quotient, 2, ""), 0) << "denormals";
}

// Roots of all significands, with even and odd exponents, and of NaN, equal those of the machine.
TEST_P(Roots, ByProductsAreRoundedRight) {
  const LinearKernel kernel = kernel_of("    %20:f32 = Sqrt %10W\n", 2, " {moderate = 1}");
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(count(print(kernel), "SqrtByProducts ") > 0, has_products());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0,  -0.0f,     kInfinity, -kInfinity,     std::numeric_limits<float>::quiet_NaN(),
                       -1, -0x1p-60f, 0x1p-100f, 0x1.fffffep127f};
  const auto check_roots = [&] {
    const std::vector<float> y = run(*code, x, 0.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const float wanted = std::sqrt(x[i]);
      if (std::isnan(wanted) && std::isnan(y[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(wanted)) << x[i];
    }
  };
  check_roots();
  x.resize(1 << 16);
  for (const uint32_t exponent : {0x0d800000u, 0x3f800000u, 0x40000000u, 0x7f000000u})  // from 2^-100 on
    for (uint32_t bits = 0; bits < 1u << 23; bits += 1 << 16) {
      for (uint32_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(exponent + bits + i);
      check_roots();
      if (HasFailure()) return;
    }
}

// Products by 2 become a sum, by other powers a shift, by neighbours of powers also a sum or difference. By other
// numbers they remain.
TEST_P(Passes, ProductsOfIntegersByPowersOfTwo) {
  const auto check_by = [&]<class T>(std::string_view element, uint64_t factor, std::string_view op) {
    for (const std::string_view operands : {"%10, %11", "%11, %10"}) {
      const LinearKernel kernel = optimised(
          row_kernel(GetParam().lanes,
                     load(element) + str("    %11:", element, " = Scalar {bits = ", static_cast<int64_t>(factor),
                                         "}\n    %20:", element, " = Mul ", operands, "\n"),
                     element));
      EXPECT_EQ(count(print(kernel), str(" = ", op)), factor == 3 ? 4 : 2) << print(kernel);
      EXPECT_EQ(count(print(kernel), " = Mul ") > 0, op == "Mul") << print(kernel);
      const auto code = compiled(kernel);
      ASSERT_NE(code, nullptr);
      check<T>(*code, [&](T x, T) { return static_cast<T>(static_cast<uint64_t>(x) * factor); });
    }
  };
  for (const auto& [factor, op] : {std::pair{0x2u, "Add"},
                                   {0x4u, "MulByPower"},
                                   {0x80000000u, "MulByPower"},
                                   {0x0u, "Mul"},
                                   {0x1u, "Mul"},
                                   {0x3u, "Add"},
                                   {0x5u, "MulByPower"},
                                   {0x7u, "Sub"},
                                   {0x80000001u, "MulByPower"},
                                   {0x7fffffffu, "Sub"},
                                   {0xffffffffu, "Mul"},
                                   {0xfffffffdu, "Sub"},
                                   {0xfffffff9u, "MulByPower"},
                                   {0x6u, "Mul"},
                                   {0xfffffffbu, "Mul"},
                                   {0xfffffffeu, "Mul"}}) {
    check_by.template operator()<int32_t>("i32", factor, op);
    check_by.template operator()<uint32_t>("u32", factor, op);
  }
  if (GetParam().lanes * 64 > vector_bits(GetParam().isa)) return;
  check_by.template operator()<int64_t>("i64", uint64_t{1} << 63, "MulByPower");
  check_by.template operator()<int64_t>("i64", (uint64_t{1} << 40) + 1, "MulByPower");
  check_by.template operator()<uint64_t>("u64", uint64_t{0} - 7, "Sub");
  check_by.template operator()<uint64_t>("u64", uint64_t{1} << 33, "MulByPower");
}

// Applies only to unsigned elements that were loaded from 8 or 16 bits.
TEST_P(Passes, NarrowIntegersAreConvertedAsSigned) {
  for (const auto& [element, lane, marked] :
       {std::tuple{"u8", "u32", 2}, {"u16", "u32", 2}, {"u32", "u32", 0}, {"i8", "i32", 0}}) {
    const LinearKernel kernel = optimised(row_kernel(
        GetParam().lanes, str("    %10:", lane, " = Load@ ", element, " [%0 + %3]!\n    %20:f32 = Convert %10\n")));
    EXPECT_EQ(count(print(kernel), "fits_i32"), marked) << print(kernel);
    EXPECT_NE(compiled(kernel), nullptr);
  }
  const LinearKernel sums = optimised(row_kernel(
      GetParam().lanes, "    %10:u32 = Load@ u8 [%0 + %3]!\n    %11:u32 = Add %10, %10\n    %20:f32 = Convert %11\n"));
  EXPECT_EQ(count(print(sums), "fits_i32"), 0) << print(sums);
}

// Applies if both operands are loaded from 8 or 16 bits, wrapped to these, or constants that fit them.
TEST_P(Passes, NarrowIntegersDivideInF32) {
  const auto marked = [&](const std::string& operand, std::string_view lane = "i32") {
    const LinearKernel kernel = optimised(
        row_kernel(GetParam().lanes, str("    %10:", lane, " = Load@ ", lane == "i32" ? "i16" : "u16", " [%0 + %3]!\n",
                                         operand, "    %19:", lane, " = Div %10, %11\n    %20:f32 = Convert %19\n")));
    EXPECT_NE(compiled(kernel), nullptr);
    return count(print(kernel), "fits_24_bits") > 0;
  };
  EXPECT_TRUE(marked("    %11:i32 = Load@ i8 [%0 + %3]!\n"));
  EXPECT_TRUE(marked("    %11:u32 = Load@ u16 [%0 + %3]!\n", "u32"));
  EXPECT_FALSE(marked("    %11:i32 = Load@ i32 [%0 + %3]!\n"));
  EXPECT_TRUE(marked("    %11:i32 = Scalar {bits = 0xffff8000}\n"));
  EXPECT_FALSE(marked("    %11:i32 = Scalar {bits = 0xffff7fff}\n"));
  EXPECT_TRUE(marked("    %11:u32 = Scalar {bits = 0xffff}\n", "u32"));
  EXPECT_FALSE(marked("    %11:u32 = Scalar {bits = 0x10000}\n", "u32"));
  EXPECT_FALSE(marked("    %11:i32 = Add %10, %10\n"));
  EXPECT_TRUE(marked("    %12:i32 = Add %10, %10\n    %11:i32 = Wrap %12 {to = \"i8\"}\n"));
}

// Applies only to uniform values.
TEST_P(Passes, QuotientsOfWhatIsAlikeTakeOneLane) {
  const auto kernel_of = [&](std::string_view operand) {
    return optimised(row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Scalar {bits = 0x40400000}\n" +
                              "    %13:f32 = Div %12, " + std::string(operand) +
                              "\n    %14:f32 = Abs %13\n    %15:f32 = Sqrt %14\n" + "    %20:f32 = Add %10, %15\n"));
  };
  EXPECT_EQ(count(print(kernel_of("%10")), "Alike"), 0);
  const LinearKernel kernel = kernel_of("%11");
  EXPECT_EQ(count(print(kernel), "DivAlike"), 2) << print(kernel);
  EXPECT_EQ(count(print(kernel), "SqrtAlike"), 2);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + std::sqrt(std::abs(3 / w)); });
}

// A quotient that is used only by another quotient or root, possibly through other operators, is not broadcast.
TEST_P(Passes, WhatIsAlikeIsSpreadOnce) {
  const auto kernel_of = [&](std::string_view last) {
    return optimised(row_kernel(GetParam().lanes,
                                load("f32") + weight("f32") + "    %12:f32 = Scalar {bits = 0x40400000}\n" +
                                    "    %13:f32 = Div %12, %11\n    %14:f32 = Mul %13, %13\n    %15:f32 = Sqrt %14\n" +
                                    "    %20:f32 = Add " + std::string(last) + "\n"));
  };
  EXPECT_EQ(count(print(kernel_of("%13, %15")), "first_lane"), 0);
  const LinearKernel kernel = kernel_of("%10, %15");
  EXPECT_EQ(count(print(kernel), "first_lane"), 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + std::sqrt((3 / w) * (3 / w)); });
}

// A reduction that is used only by a root, or of which one element is stored, is not broadcast.
TEST_P(Passes, FoldsThatOneLaneIsWantedOfAreNotSpread) {
  const auto kernel_of = [&](std::string_view last) {
    return optimised(row_kernel(GetParam().lanes, load("f32") + "    %12:f32 = FoldLanes %10 {by = \"Max\"}\n" +
                                                      "    %13:f32 = Sqrt %12\n    %20:f32 = Add " + std::string(last) +
                                                      "\n"));
  };
  const LinearKernel kernel = kernel_of("%10, %13");
  EXPECT_EQ(count(print(kernel), "{by = \"Max\", first_lane = 1}"), 2) << print(kernel);
  EXPECT_EQ(count(print(kernel_of("%12, %13")), "first_lane"), 0);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  std::mt19937 random(20261127);
  for (const int64_t width : widths(GetParam().lanes)) {
    std::vector<float> x(static_cast<size_t>(width));
    for (float& value : x) value = static_cast<float>(random() % 1000) / 8;  // lanes that are not loaded are 0
    const std::vector<float> y = run(*code, x, 0.0f);
    for (int64_t i = 0; i < width; ++i) {
      const int64_t begin = i / GetParam().lanes * GetParam().lanes, end = std::min(begin + GetParam().lanes, width);
      const float most = *std::max_element(x.begin() + begin, x.begin() + end);
      ASSERT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(i)] + std::sqrt(most)) << i << " of " << width;
    }
  }
}

TENON_ON_ALL_MACHINES(Passes);
TENON_ON_ALL_MACHINES(StandingQuotients);
TENON_ON_ALL_MACHINES(Roots);

}  // namespace
}  // namespace tenon::x86::testing
