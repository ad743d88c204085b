#include "x86/emitters/exponential.hpp"

#include <array>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

constexpr float kRound = 0x1.8p23f;  // x + kRound has the nearest integer of x in its low bits
constexpr float kLog2E = 0x1.715476p0f;
constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;
constexpr uint8_t kLessMagnitude = 2;  // of vrangeps: sign of the first operand, lesser magnitude; never NaN

// 2^(i/16)
constexpr std::array<uint32_t, 16> kSixteenths{0x3f800000, 0x3f85aac3, 0x3f8b95c2, 0x3f91c3d3, 0x3f9837f0, 0x3f9ef532,
                                               0x3fa5fed7, 0x3fad583f, 0x3fb504f3, 0x3fbd08a4, 0x3fc5672a, 0x3fce248c,
                                               0x3fd744fd, 0x3fe0ccdf, 0x3feac0c7, 0x3ff5257d};

int step_bits(const VectorCode& c) { return c.avx512() ? 4 : 3; }

// Entry i: the bits of 2^(i/16) or 2^(i/8), plus those of the exponent, minus those that adding n in steps contributes.
void look_up_power(VectorCode& c, const Vec& power, int exponent, bool steps_are_added) {
  std::array<uint32_t, 16> entries{};
  const int bits = step_bits(c);
  const uint32_t count = 1u << bits;
  for (uint32_t i = 0; i < count; ++i) {
    entries[i] = kSixteenths[i * 16 / count] + (static_cast<uint32_t>(exponent) << kMantissaBits32);
    if (steps_are_added) entries[i] -= i << (kMantissaBits32 - bits);
  }
  c.look_up(power, power, std::span(entries).first(count));
}

// power = x / ln 2 + constant (or -x / ln 2), n = power - constant.
void round_exponent(VectorCode& c, const Vec& power, const Vec& n, const Vec& x, float constant, bool negated) {
  c.set(n, constant);
  c.move(power, x);
  negated ? c->vfnmadd132ps(power, n, c.f32(kLog2E)) : c->vfmadd132ps(power, n, c.f32(kLog2E));
  c->vsubps(n, power, n);
}

}  // namespace

float rounding_constant(const VectorCode& c) { return kRound / static_cast<float>(1 << step_bits(c)); }

void power_of_two_steps(VectorCode& c, const Vec& power, int exponent, const Vec& scratch) {
  c->vpslld(scratch, power, static_cast<uint8_t>(kMantissaBits32 - step_bits(c)));
  look_up_power(c, power, exponent, true);
  c->vpaddd(power, power, scratch);
}

namespace {

// The same from n itself: one operation less, and not on the dependency chain of the other factor.
void power_of_two_scaled(VectorCode& c, const Vec& power, int exponent, const Vec& n) {
  look_up_power(c, power, exponent, false);
  c->vscalefps(power, power, n);
}

}  // namespace

void raise(VectorCode& c, const Vec& power, const Vec& n, const Vec& rest, std::span<const float> terms, int exponent) {
  const VectorCode::Scope scope(c);
  const Vec sum = c.temp();
  power_of_two_scaled(c, power, exponent, n);
  c.polynomial(sum, rest, terms);
  c->vmulps(rest, rest, power);
  c->vfmadd231ps(power, sum, rest);
}

// r + r^2 (1/2 + r/6 ...): error 2^-29 on avx512.
void exponential_less_one_near_zero(VectorCode& c, const Vec& rest, const Vec& r, const Vec& scratch) {
  constexpr float kTerms[] = {0x1.00022p-1f, 0x1.5556a8p-3f}, kLongerTerms[] = {0.5f, 0x1.555b7ep-3f, 0x1.555884p-5f};
  c.avx512() ? c.polynomial(scratch, r, kTerms) : c.polynomial(scratch, r, kLongerTerms);
  c->vmulps(r, r, r);
  c->vfmadd231ps(rest, scratch, r);
}

void exponential_parts(VectorCode& c, const Vec& power, const Vec& rest, const Vec& x, const Power& of,
                       const Vec* low) {
  const VectorCode::Scope scope(c);
  const Vec n = c.temp();
  round_exponent(c, power, n, x, rounding_constant(c), of.negated);
  c.avx512() ? power_of_two_scaled(c, power, of.exponent, n) : power_of_two_steps(c, power, of.exponent, rest);
  of.negated ? c->vfnmsub231ps(x, n, c.f32(kLn2High)) : c->vfnmadd231ps(x, n, c.f32(kLn2High));
  if (low) of.negated ? c->vsubps(x, x, *low) : c->vaddps(x, x, *low);  // before x is squared
  c.move(rest, x);
  c->vfnmadd231ps(rest, n, c.f32(kLn2Low));
  exponential_less_one_near_zero(c, rest, x, n);
}

namespace {

// On avx2, x from here down gives n = -252.5, where one of the two factors is 0. A nonzero product that underflows to 0
// would take 20 times as long. So do results between here and e^-104, which few models have; masked scores are below.
constexpr float kZeroBelow = -175.0196f;
constexpr float kOverflow = 88.875f;  // e^x > 2^128, and n = 128

void clamp_from_below(VectorCode& c, const Vec& x, float low) {
  const VectorCode::Scope scope(c);
  const Vec bound = c.temp();
  c.set(bound, low);
  c->vmaxps(x, bound, x);
}

// Scaled by the n of the given x, which may be any number; r is bounded, also for infinities and NaN.
void exponential_avx512(VectorCode& c, const Vec& out, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec power = c.temp(), n = c.temp(), rest = c.temp();
  round_exponent(c, power, n, x, rounding_constant(c), false);
  c->vfnmadd231ps(x, n, c.f32(kLn2High));
  c->vfnmadd231ps(x, n, c.f32(kLn2Low));
  c->vrangeps(x, x, c.f32(0x1p-5f), kLessMagnitude);
  look_up_power(c, power, 0, false);
  c.move(rest, x);
  {
    const VectorCode::Scope inner(c);
    const Vec scratch = out.getIdx() == x.getIdx() ? c.temp() : out;
    exponential_less_one_near_zero(c, rest, x, scratch);
  }
  c->vfmadd213ps(rest, power, power);
  c->vscalefps(out, rest, n);
}

// For x <= 0 or any x (body/numbers.hpp). 2^n is applied as two factors, because it may not be a float itself: with
// m = n + 254, the low bits after adding the rounding constant are the exponent fields m / 2 and m - m / 2.
void exponential_avx2(VectorCode& c, const Vec& out, const Vec& x, bool below_1) {
  constexpr uint32_t kExponents = 0x7f800000;
  constexpr float kBias = 254;
  const VectorCode::Scope scope(c);
  below_1 ? clamp_from_below(c, x, kZeroBelow) : clamp_between(c, x, kZeroBelow, kOverflow);
  const Vec power = c.temp(), rest = c.temp(), n = c.temp();
  round_exponent(c, power, n, x, rounding_constant(c) + kBias, false);
  const Vec half = out.getIdx() == x.getIdx() ? c.temp() : out;
  c->vpslld(half, power, static_cast<uint8_t>(kMantissaBits32 - 1 - step_bits(c)));
  c->vandps(half, half, c.u32(kExponents));
  power_of_two_steps(c, power, -127, rest);
  c->vpsubd(power, power, half);
  c->vfnmadd231ps(x, n, c.f32(kLn2High));
  c.move(rest, x);
  c->vfnmadd231ps(rest, n, c.f32(kLn2Low));
  exponential_less_one_near_zero(c, rest, x, n);
  c->vfmadd213ps(rest, power, power);
  c->vmulps(out, rest, half);
}

// e^x 2^exponent for x <= 0. x is clamped where the result is negligible beside the rest of its row
// (body/scaled_powers.hpp), so no intermediate value is denormal.
void exponential_scaled(VectorCode& c, const Vec& out, const Vec& x, int exponent) {
  constexpr float kLeast = -105;
  const VectorCode::Scope scope(c);
  clamp_from_below(c, x, kLeast);
  const Vec power = c.temp(), rest = c.temp();
  exponential_parts(c, power, rest, x, {.exponent = exponent});
  c->vfmadd213ps(rest, power, power);
  c.move(out, rest);
}

}  // namespace

void exponential(VectorCode& c, const Vec& out, const Vec& x) {
  c.avx512() ? exponential_avx512(c, out, x) : exponential_avx2(c, out, x, false);
}

// ---- With integral n ----

// The rounding constant includes the exponent bias, so the low bits are the exponent field of 2^n.
void reduce_exponent(VectorCode& c, const Vec& n, const Vec& power, const Vec& x) {
  constexpr float kBiased = kRound + 127;
  c.set(power, kBiased);
  c->vfmadd231ps(power, x, c.f32(kLog2E));
  c->vsubps(n, power, c.f32(kBiased));
  c->vpslld(power, power, kMantissaBits32);
  c->vfnmadd231ps(x, n, c.f32(kLn2High));
  c->vfnmadd231ps(x, n, c.f32(kLn2Low));
}

void exponential_polynomial(VectorCode& c, const Vec& out, const Vec& r) {
  // (e^r - 1 - r) / r^2 within 6.5e-8.
  constexpr float kTerms[] = {1, 1, 0.5f, 0x1.5554dcp-3f, 0x1.5554eap-5f, 0x1.120c0ap-7f, 0x1.6d4bfep-10f};
  c.polynomial(out, r, kTerms);
}

void exponential_less_one_polynomial(VectorCode& c, const Vec& out, const Vec& r) {
  // The same function within 2e-9; then r + r^2 q.
  constexpr float kTerms[] = {0.5f, 0x1.555556p-3f, 0x1.555502p-5f, 0x1.110fc2p-7f, 0x1.6d2e08p-10f, 0x1.a2d998p-13f};
  c.polynomial(out, r, kTerms);
  c->vmulps(out, out, r);
  c->vfmadd213ps(out, r, r);
}

PowerOfTwo power_of_two(VectorCode& c, const Vec& n) {
  if (c.avx512()) return {n, n, n};
  const Vec half = c.temp();
  c->vcvtps2dq(n, n);
  c->vpsrad(half, n, 1);
  c->vpsubd(n, n, half);
  for (const Vec& part : {half, n}) {
    c->vpslld(part, part, kMantissaBits32);
    c->vpaddd(part, part, c.u32(kOne32));
  }
  return {n, half, n};
}

void scale(VectorCode& c, const Vec& out, const Vec& x, const PowerOfTwo& power) {
  if (c.avx512()) return c->vscalefps(out, x, power.n);
  c->vmulps(out, x, power.half);
  c->vmulps(out, out, power.rest);
}

void clamp_between(VectorCode& c, const Vec& x, float low, float high) {
  const VectorCode::Scope scope(c);
  const Vec bound = c.temp();
  c.set(bound, low);
  c->vmaxps(x, bound, x);
  c.set(bound, high);
  c->vminps(x, bound, x);
}

namespace {

void exponential_row(VectorCode& c) {
  const Vec x = c.temp();
  c.move(x, c.in(0));
  if (const Attribute* exponent = c.emission().attributes.find("exponent"))
    return exponential_scaled(c, c.out(), x, static_cast<int>(*exponent->get_if<int64_t>()));
  c.avx512() ? exponential_avx512(c, c.out(), x)
             : exponential_avx2(c, c.out(), x, c.emission().attributes.has("below_1"));
}

// Beyond 88 it is computed like (e^(x - ln 2) - 1/2) * 2: with 2^(n-1), and the last doubling overflows:
// 2 (2^(n-1) p + (2^(n-1) - 1/2)). Tiny x are returned as they are, because halving would round denormals.
void exponential_minus_one(VectorCode& c) {
  const Vec x = c.in(0), r = c.temp(), n = c.temp(), power = c.temp(), p = c.temp();
  c.move(r, x);
  clamp_between(c, r, -30, kOverflow);
  reduce_exponent(c, n, power, r);
  // Exponents up to 128; halved, the powers are floats.
  c->vpsubd(power, power, c.u32(1u << kMantissaBits32));
  exponential_less_one_polynomial(c, p, r);
  c->vsubps(r, power, c.f32(0.5f));
  c->vfmadd231ps(r, power, p);
  c->vaddps(r, r, r);
  c->vandps(p, x, c.u32(0x7fffffff));
  c.set(n, 0x1p-25f);
  const Mask tiny = c.mask_temp();
  c.compare(tiny, Compare::less, p, n);
  c.select(c.out(), tiny, x, r);
}

constexpr RowPair kExponentialRows[] = {
    {"Exp",
     kF32Lanes,
     {.vectors = 4, .cycles = 8, .in_turn = 2},
     {.vectors = 4, .cycles = 7, .in_turn = 4},
     1.1,
     algorithm<exponential_row>},
    {"Expm1",
     kF32Lanes,
     {.vectors = 5, .cycles = 11},
     {.vectors = 5, .masks = 1, .cycles = 14, .in_turn = 2},
     1.5,
     algorithm<exponential_minus_one>},
};

}  // namespace

Result<void> add_exponential_rows(JitterTable& table) { return add_pairs(table, kExponentialRows); }

}  // namespace tenon::x86
