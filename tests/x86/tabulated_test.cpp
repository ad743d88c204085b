// erf and tanh of polynomials by tables that are computed for each: their accuracy, and which functions have none.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "emitters_support.hpp"
#include "x86/emitters/odd_table.hpp"

namespace tenon::x86::test {
namespace {

using Outer = OddFunction::Outer;

constexpr uint32_t kSeed = 20261127;
// Absolute, for values up to 1: the polynomial is within 7/8 of 2^-24; its constant term and the last sum are rounded
// by up to 2^-25 each.
constexpr double kWithin = kOddTableError;
constexpr double kMost = std::numeric_limits<float>::max();

float as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

const codegen::JitterRow* row_for(Name op, const Attributes& attributes, Isa isa) {
  const ElementType type[] = {kF32};
  for (const codegen::JitterRow* row : elementwise_table().rows())
    if (isa_of(*row) == isa && row->matches({op, type, type, attributes})) return row;
  return nullptr;
}

// Floats of all sizes, and floats whose results have all sizes; each with both signs, in pairs.
Column arguments(const OddFunction& function) {
  Column x{kF32, {}};
  const auto add = [&](float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    x.bits.push_back(bits);
    x.bits.push_back(bits ^ 0x80000000u);
  };
  for (const float special : {0.0f, 0x1p-149f, 0x1p-126f, 1.0f, std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    add(special);
  for (uint64_t bits = 0; bits < 0x7f800000; bits += 65521) add(as_float(bits));
  std::mt19937 random(kSeed);
  const float end = odd_table(function, Isa::avx512, 16)->end;
  for (int i = 0; i < 50000; ++i) add(end * 1.1f * std::ldexp(static_cast<float>(random() >> 8), -24));
  while (x.bits.size() % 16 != 0) add(0);
  return x;
}

std::string text_of(const OddFunction& function) {
  std::string text = odd_function_name(function.outer).str();
  for (const float factor : function.inner) text += " " + std::to_string(factor);
  return text;
}

std::vector<OddFunction> functions() {
  std::vector<OddFunction> made = {{Outer::erf, {1}},
                                   {Outer::erf, {std::numbers::sqrt2_v<float> / 2}},
                                   {Outer::erf, {0x1p40f}},
                                   {Outer::erf, {0x1p-40f}},
                                   {Outer::tanh, {0.7978846f, 0.7978846f * 0.044715f}},
                                   {Outer::erf, {0.5f, 0, 0.01f, 0.001f}},
                                   {Outer::erf, {4.0f / 3, 0x1p-6f}},
                                   {Outer::erf, {4.0f / 3, 0x1.cp-4f}},
                                   {Outer::tanh, {1, 0x1p-6f}}};
  std::mt19937 random(kSeed);
  const auto part = [&] { return static_cast<float>(random() % 1000) / 1000; };
  for (int i = 0; i < 12; ++i) {
    const float scale = std::ldexp(part() + 0.25f, static_cast<int>(random() % 21) - 10);
    made.push_back({i % 2 == 0 ? Outer::erf : Outer::tanh, {scale, scale * scale * scale * part() * 0.2f}});
  }
  return made;
}

TEST(TabulatedFunctions, LieWithinTheStatedDistance) {
  size_t checked = 0;
  for (const OddFunction& function : functions()) {
    const Column x = arguments(function);
    for (const Isa isa : machine_isas()) {
      const auto table = odd_table(function, isa);
      if (!table) continue;
      ++checked;
      const Attributes attributes = odd_function_attributes(function);
      const RowRun run{
          row_for(odd_function_name(function.outer), attributes, isa), isa, lanes_of(isa, kF32), {}, attributes};
      ASSERT_NE(run.row, nullptr);
      const auto got = run_row(run, std::span(&x, 1), kF32);
      ASSERT_TRUE(got.ok()) << got.error().message();
      double worst = 0;
      for (size_t i = 0; i < x.bits.size(); ++i) {
        const float value = as_float(x.bits[i]), made = as_float(got->bits[i]);
        const double exact = function(value);
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(made)) << text_of(function) << " of NaN is " << made;
          continue;
        }
        ASSERT_FALSE(std::isnan(made)) << text_of(function) << " of " << value;
        worst = std::max(worst, std::abs(made - exact));
        ASSERT_LE(std::abs(made - exact), kWithin)
            << text_of(function) << " of " << value << " is " << made << ", " << isa_name(isa) << ", seed " << kSeed;
        if (std::abs(value) >= table->end) {
          ASSERT_EQ(std::abs(made), 1) << text_of(function) << " of " << value;
        }
        if (i % 2 == 1) {
          ASSERT_EQ(got->bits[i] ^ got->bits[i - 1], 0x80000000u) << text_of(function) << " of " << value;
        }
        if (value == 0) {
          ASSERT_EQ(got->bits[i], x.bits[i]) << "zeros are their own results";
        }
      }
      if (std::getenv("TENON_EMITTER_REPORT"))
        std::printf("%s %s: %zu powers, within %.3g = %.2f of 2^-24\n", text_of(function).c_str(),
                    std::string(isa_name(isa)).c_str(), table->powers(), worst, worst * 0x1p24);
    }
  }
  EXPECT_GE(checked, 12 * machine_isas().size());
}

// scale x + x f(x). The error of f, as above, is multiplied by x and scale. The sum and the part linear in x are
// rounded, on avx512 downwards.
TEST(TabulatedFunctions, GatesLieWithinTheStatedDistance) {
  size_t checked = 0;
  for (const float scale : {0.5f, 1.0f, 0x1p-20f})
    for (OddFunction function : functions())
      for (const Isa isa : machine_isas())
        for (const int lanes : {lanes_of(isa, kF32), 4}) {
          function.scale = scale;
          if (!odd_table(function, isa)) continue;
          ++checked;
          const Column x = arguments(function);
          const Attributes attributes = odd_gate_attributes(function);
          const RowRun run{row_for(odd_gate_name(function.outer), attributes, isa), isa, lanes, {}, attributes};
          ASSERT_NE(run.row, nullptr);
          const auto got = run_row(run, std::span(&x, 1), kF32);
          ASSERT_TRUE(got.ok()) << got.error().message();
          for (size_t i = 0; i < x.bits.size(); ++i) {
            const float value = as_float(x.bits[i]), made = as_float(got->bits[i]);
            const double f = function(value), exact = static_cast<double>(scale) * value + value * f;
            const double size = std::abs(static_cast<double>(value));
            const double within =
                kWithin * scale * size + 0x1p-24 * scale * size + 0x1p-23 * std::abs(exact) + 0x1p-148;
            // -inf times 0 is NaN; a result that is too large becomes the largest number, rounded down.
            const bool right = std::isnan(value) || (value == -std::numeric_limits<float>::infinity())
                                   ? std::isnan(made)
                               : std::abs(exact) > kMost ? std::abs(made) >= kMost && std::signbit(made) == (value < 0)
                                                         : std::abs(made - exact) <= within;
            // Smaller terms may become 0 before they are added.
            const bool has_sign = std::isnan(made) || (value != 0 && size * scale < 0x1p-125) ||
                                  std::signbit(made) == std::signbit(value);
            ASSERT_TRUE(right && has_sign)
                << text_of(function) << " gate " << scale << " of " << value << " is " << made << ", " << isa_name(isa)
                << ", " << lanes << " lanes, seed " << kSeed;
          }
        }
  EXPECT_GE(checked, 3 * 12 * machine_isas().size());
}

// The first interval is only the half above 0. The difference of f from 1 at the end needs no power.
TEST(TabulatedFunctions, TablesHaveNoMorePowersThanTheWidestIntervalTakes) {
  const OddFunction by_erf{Outer::erf, {std::numbers::sqrt2_v<float> / 2}};
  const OddFunction by_tanh{Outer::tanh, {0.7978846f, 0.7978846f * 0.044715f}};
  EXPECT_EQ(odd_table(by_erf, Isa::avx2)->powers(), 7u);
  EXPECT_EQ(odd_table(by_tanh, Isa::avx2)->powers(), 7u);
  EXPECT_EQ(odd_table(by_erf, Isa::avx512)->powers(), 6u);
  EXPECT_EQ(odd_table(by_tanh, Isa::avx512)->powers(), 6u);
}

TEST(TabulatedFunctions, ThereIsNoTableWhereItWouldBeLongOrOutOfBounds) {
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    EXPECT_FALSE(odd_table({Outer::tanh, {1}}, isa)) << "even intervals up to 9 are too wide for so few powers";
    EXPECT_TRUE(odd_table({Outer::tanh, {1}}, isa, 16));
    EXPECT_FALSE(odd_table({Outer::erf, {0}}, isa));
    EXPECT_FALSE(odd_table({Outer::erf, {0x1p-70f}}, isa));
    EXPECT_FALSE(odd_table({Outer::erf, {0x1p70f}}, isa));
    EXPECT_FALSE(odd_table({Outer::erf, {std::numeric_limits<float>::infinity()}}, isa));
    EXPECT_FALSE(odd_table({Outer::erf, {std::numeric_limits<float>::quiet_NaN()}}, isa));
  }
}

}  // namespace
}  // namespace tenon::x86::test
