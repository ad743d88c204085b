// What a divisor s is multiplied by (passes/standing_divisors.cpp): k, once for many quotients.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using codegen::kF32Lanes;

// 2^(126 - e) for the exponent e of s as floats have it, so that |s k| is in [1/2, 1); up to 4 where s is too large for
// that, and from 2^-23 on where it is no normal number. So x k is infinite, or not as exact as x, only where the
// quotient is.
constexpr uint32_t kExponent = 0x7f800000, kOfUnit = 0x7e800000, kLeastNormal = 0x00800000;

void divisor_scale(VectorCode& c) {
  const Vec k = c.out(), exponent = c.temp();
  c->vandps(exponent, c.in(0), c.u32(kExponent));
  c.set_u32(k, kOfUnit);
  c->vpsubd(k, k, exponent);
  c->vpmaxsd(k, k, c.u32(kLeastNormal));
}

constexpr RowPair kRows[] = {
    {"DivisorScale", kF32Lanes, {.vectors = 1, .cycles = 2}, {.vectors = 1, .cycles = 2}, 0, algorithm<divisor_scale>},
};

}  // namespace

Result<void> add_divisor_rows(codegen::JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
