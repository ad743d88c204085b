// What a divisor s is multiplied by (passes/standing_divisors.cpp): k, and h + l = 1 / (s k), once for many quotients.
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

// 1 / (s k) less one to two units of its last place, so that what it lacks has its sign.
void divisor_high(VectorCode& c) {
  const Vec h = c.out(), scaled = c.temp();
  c->vmulps(scaled, c.in(0), c.in(1));
  c.set(h, 1 - 0x1p-23f);
  c->vdivps(h, h, scaled);
}

// What h lacks, h r + h r^2 for r = 1 - h s k; where s is 0, infinite or NaN, any of the sign of h.
void divisor_low(VectorCode& c) {
  constexpr float kLeastLack = 0x1p-60f;
  const Vec l = c.out(), scaled = c.temp(), lack = c.temp();
  c->vmulps(scaled, c.in(0), c.in(1));
  c.set(lack, 1);
  c->vfnmadd231ps(lack, c.in(2), scaled);
  c->vmaxps(lack, lack, c.f32(kLeastLack));  // of NaN, too
  c->vmulps(l, lack, c.in(2));
  c->vfmadd231ps(l, l, lack);
}

constexpr RowPair kRows[] = {
    {"DivisorScale", kF32Lanes, {.vectors = 1, .cycles = 2}, {.vectors = 1, .cycles = 2}, 0, algorithm<divisor_scale>},
    {"DivisorHigh", kF32Lanes, {.vectors = 1, .cycles = 6}, {.vectors = 1, .cycles = 10}, 2, algorithm<divisor_high>},
    {"DivisorLow", kF32Lanes, {.vectors = 2, .cycles = 4}, {.vectors = 2, .cycles = 4}, 2, algorithm<divisor_low>},
};

}  // namespace

Result<void> add_divisor_rows(codegen::JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
