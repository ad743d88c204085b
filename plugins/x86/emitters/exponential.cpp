#include "x86/emitters/exponential.hpp"

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

constexpr float kRound = 0x1.8p23f;  // x + kRound has the nearest integer of x in its low bits
constexpr float kLog2E = 0x1.715476p0f;
constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;
constexpr uint32_t kOne = 0x3f800000;  // bits of 1
constexpr int kMantissaBits = 23;

void subtract_n_ln2(VectorCode& c, const Vec& n, const Vec& x) {
  c->vfnmadd231ps(x, n, c.f32(kLn2High));
  c->vfnmadd231ps(x, n, c.f32(kLn2Low));
}

}  // namespace

void reduce_exponent(VectorCode& c, const Vec& n, const Vec& x) {
  c.set(n, kRound);
  c->vfmadd231ps(n, x, c.f32(kLog2E));
  c->vsubps(n, n, c.f32(kRound));
  subtract_n_ln2(c, n, x);
}

// With the exponent's bias in the rounding constant, the low bits are 2^n's exponent field.
void reduce_exponent(VectorCode& c, const Vec& n, const Vec& power, const Vec& x) {
  constexpr float kBiased = kRound + 127;
  c.set(power, kBiased);
  c->vfmadd231ps(power, x, c.f32(kLog2E));
  c->vsubps(n, power, c.f32(kBiased));
  c->vpslld(power, power, kMantissaBits);
  subtract_n_ln2(c, n, x);
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

// 2^n (1 + p) - 1 = 2^n p + (2^n - 1).
void exponential_less_one(VectorCode& c, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec n = c.temp(), power = c.temp(), p = c.temp();
  reduce_exponent(c, n, power, x);
  exponential_less_one_polynomial(c, p, x);
  c->vsubps(x, power, c.f32(1));
  c->vfmadd231ps(x, power, p);
}

PowerOfTwo power_of_two(VectorCode& c, const Vec& n) {
  if (c.avx512()) return {n, n, n};
  const Vec half = c.temp();
  c->vcvtps2dq(n, n);
  c->vpsrad(half, n, 1);
  c->vpsubd(n, n, half);
  for (const Vec& part : {half, n}) {
    c->vpslld(part, part, kMantissaBits);
    c->vpaddd(part, part, c.u32(kOne));
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

constexpr float kZeroBelow = -104;    // e^x < 2^-150 rounds to 0
constexpr float kOverflow = 88.875f;  // e^x > 2^128, and n = 128

// 2^n e^r. 0.6 ulp.
void exponential(VectorCode& c) {
  const Vec r = c.temp(), n = c.temp(), p = c.temp();
  c.move(r, c.in(0));
  clamp_between(c, r, kZeroBelow, kOverflow);
  reduce_exponent(c, n, r);
  exponential_polynomial(c, p, r);
  scale(c, c.out(), p, power_of_two(c, n));
}

// Beyond 88 as (e^(x - ln 2) - 1/2) * 2 would be; there 2^(n-1) serves, and the last doubling overflows:
// 2 (2^(n-1) p + (2^(n-1) - 1/2)). Tiny x are their own result: halving would cut denormals.
void exponential_minus_one(VectorCode& c) {
  const Vec x = c.in(0), r = c.temp(), n = c.temp(), power = c.temp(), p = c.temp();
  c.move(r, x);
  clamp_between(c, r, -30, kOverflow);
  reduce_exponent(c, n, power, r);
  // Exponents up to 128: halved they are floats.
  c->vpsubd(power, power, c.u32(1u << kMantissaBits));
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

// (e^2x - 1) / (e^2x + 1), with the sign of x for the sake of -0. Beyond 9.02 it is 1.
void hyperbolic_tangent(VectorCode& c) {
  const Vec t = c.temp(), denominator = c.temp();
  c->vaddps(t, c.in(0), c.in(0));
  clamp_between(c, t, -20, 20);
  exponential_less_one(c, t);
  c->vaddps(denominator, t, c.f32(2));
  c->vdivps(t, t, denominator);
  c.copy_sign(c.out(), t, c.in(0));
}

// e = e^-|x| is at most 1: (x < 0 ? e : 1) / (1 + e).
void sigmoid(VectorCode& c) {
  const Vec r = c.temp(), n = c.temp(), p = c.temp();
  c->vorps(r, c.in(0), c.u32(0x80000000));
  c.set(n, kZeroBelow);
  c->vmaxps(r, n, r);
  reduce_exponent(c, n, r);
  exponential_polynomial(c, p, r);
  scale(c, p, p, power_of_two(c, n));
  c.set(r, 1);
  c->vaddps(n, p, r);
  const Mask negative = c.negative(c.avx512() ? c.mask_temp() : Mask{}, c.in(0));
  c.select(p, negative, p, r);
  c->vdivps(c.out(), p, n);
}

// ---- Hyperbolic functions: by e^|x| / 4, which is finite as long as they are ----

constexpr float kHyperbolicEnd = 89.6f;  // both are infinite there

// q = (e^a - 1) / 4; sinh(x) = 2 (q + q / (4 q + 1)) with the sign of x; tiny x are their own result.
void hyperbolic_sine(VectorCode& c) {
  const Vec x = c.in(0), a = c.temp(), n = c.temp(), power = c.temp(), p = c.temp();
  c->vandps(a, x, c.u32(0x7fffffff));
  c.set(n, kHyperbolicEnd);
  c->vminps(a, n, a);
  reduce_exponent(c, n, power, a);
  c->vpsubd(power, power, c.u32(2u << kMantissaBits));
  exponential_less_one_polynomial(c, p, a);
  c->vsubps(a, power, c.f32(0.25f));
  c->vfmadd231ps(a, power, p);
  c.set(p, 1);
  c->vfmadd231ps(p, a, c.f32(4));
  c->vdivps(p, a, p);
  c->vaddps(a, a, p);
  c->vaddps(a, a, a);
  c.copy_sign(a, a, x);
  const Mask tiny = c.mask_temp();
  c->vandps(p, x, c.u32(0x7fffffff));
  c.compare(tiny, Compare::less, p, c.f32(0x1p-12f));
  c.select(c.out(), tiny, x, a);
}

// h = e^|x| / 4; cosh(x) = 2 (h + 1 / (16 h))
void hyperbolic_cosine(VectorCode& c) {
  const Vec a = c.temp(), n = c.temp(), power = c.temp(), p = c.temp();
  c->vandps(a, c.in(0), c.u32(0x7fffffff));
  c.set(n, kHyperbolicEnd);
  c->vminps(a, n, a);
  reduce_exponent(c, n, power, a);
  c->vpsubd(power, power, c.u32(2u << kMantissaBits));
  exponential_polynomial(c, p, a);
  c->vmulps(p, p, power);
  c.set(n, 0x1p-4f);
  c->vdivps(n, n, p);
  c->vaddps(p, p, n);
  c->vaddps(c.out(), p, p);
}

constexpr RowPair kRows[] = {
    {"Sinh",
     kF32Lanes,
     {.vectors = 5, .cycles = 15},
     {.vectors = 4, .masks = 1, .cycles = 18},
     3,
     algorithm<hyperbolic_sine>},
    {"Cosh", kF32Lanes, {.vectors = 4, .cycles = 15}, {.vectors = 4, .cycles = 13}, 2, algorithm<hyperbolic_cosine>},
    {"Exp", kF32Lanes, {.vectors = 4, .cycles = 10}, {.vectors = 4, .cycles = 9}, 1, algorithm<exponential>},
    {"Expm1",
     kF32Lanes,
     {.vectors = 5, .cycles = 11},
     {.vectors = 5, .masks = 1, .cycles = 12},
     2,
     algorithm<exponential_minus_one>},
    {"Tanh", kF32Lanes, {.vectors = 5, .cycles = 12}, {.vectors = 5, .cycles = 15}, 3, algorithm<hyperbolic_tangent>},
    {"Sigmoid",
     kF32Lanes,
     {.vectors = 4, .cycles = 12},
     {.vectors = 3, .masks = 1, .cycles = 13},
     2.5,
     algorithm<sigmoid>},
};

}  // namespace

Result<void> add_exponential_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
