// x times a gate between 0 and 1: Swish, Mish, Gelu. Far below 0 the gate is smaller than any float while the product
// is not yet: powers of two are multiplied last. x = -inf gives NaN (-inf * 0), as the formulas do.
#include <cmath>
#include <string>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

constexpr uint32_t kSign = 0x80000000;

// e^x times the largest float is 0 below -192. Powers of two of avx2 end before: there a comparison answers.
float lowest_exponent(const VectorCode& c) { return c.avx512() ? -300.0f : -174.0f; }

// out = x product 2^n where `exponent` (the mask `negative` says so) is below 0, else x product. Destroys
// `product` and `power`; takes two scratch vectors on avx2.
void multiply_gate(VectorCode& c, const Vec& out, const Vec& x, const Vec& product, const Mask& negative,
                   const PowerOfTwo& power, const Vec& exponent) {
  {
    // A product of the largest x must not overflow before it is scaled.
    const VectorCode::Scope scope(c);
    const Vec least = c.temp();
    c.set(least, -0x1p127f);
    c->vmaxps(least, least, x);
    c->vmulps(product, product, least);
  }
  if (c.avx512()) {
    c->vscalefps(product | c.opmask(negative), product, power.n);
    c->vfmadd231ps(product | c.opmask(negative), x, c.f32(0));  // -inf becomes NaN
    return c.move(out, product);
  }
  const VectorCode::Scope scope(c);
  const Vec one = c.temp();
  const Mask reached = c.mask_temp();
  c.set(one, lowest_exponent(c));
  c.compare(reached, Compare::greater_equal, exponent, one);
  c->vandps(power.rest, power.rest, c.vector(reached));
  c.set(one, 0);
  c->vminps(one, one, x);
  c->vfmadd231ps(product, one, c.f32(0));  // -inf becomes NaN
  c.set(one, 1);
  for (const Vec& factor : {power.half, power.rest}) {
    c.select(factor, negative, factor, one);
    c->vmulps(product, product, factor);
  }
  c.move(out, product);
}

// out = x / (1 + e^-(z + low)), low being null or a small correction of z. With e = e^-|z|:
// (z < 0 ? e : 1) / (1 + e). Takes six scratch vectors on avx2; four and a mask on avx512.
void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& x, const Vec& z, const Vec* low) {
  const Mask negative = c.negative(c.avx512() ? c.mask_temp() : Mask{}, z);
  const Vec r = c.temp(), n = c.temp(), p = c.temp();
  c->vorps(r, z, c.u32(kSign));
  c.set(n, lowest_exponent(c));
  c->vmaxps(r, n, r);
  reduce_exponent(c, n, r);
  if (low) {
    c->vandnps(p, z, c.u32(kSign));
    c->vxorps(p, p, *low);
    c->vaddps(r, r, p);
  }
  exponential_polynomial(c, p, r);
  const PowerOfTwo power = power_of_two(c, n);
  scale(c, r, p, power);
  {
    const VectorCode::Scope scope(c);
    const Vec one = c.temp();
    c.set(one, 1);
    c->vaddps(r, r, one);
    c.select(p, negative, p, one);
  }
  c->vdivps(p, p, r);
  multiply_gate(c, out, x, p, negative, power, z);
}

float alpha_of(const VectorCode& c) {
  const Attribute* const alpha = c.emission().attributes.find("alpha");
  const float* const value = alpha ? alpha->get_if<float>() : nullptr;
  return value ? *value : 1;
}

// z = alpha x as a sum of two floats. A negative alpha: -swish(-x) of -alpha, so that x and z have one sign.
void swish(VectorCode& c) {
  const float alpha = alpha_of(c);
  if (alpha == 1) return multiply_by_sigmoid(c, c.out(), c.in(0), c.in(0), nullptr);
  const Vec z = c.temp(), low = c.temp(), x = alpha < 0 ? c.temp() : c.in(0);
  if (alpha < 0) c->vxorps(x, c.in(0), c.u32(kSign));
  c.set(low, std::abs(alpha));
  c->vmulps(z, x, low);
  c->vfmsub213ps(low, x, z);
  {
    // Where z is infinite, low is no number.
    const VectorCode::Scope scope(c);
    const Vec size = c.temp();
    const Mask small = c.mask_temp();
    c->vandps(size, z, c.u32(~kSign));
    c.compare(small, Compare::less, size, c.f32(1000));
    c.keep(low, small, low);
  }
  multiply_by_sigmoid(c, alpha < 0 ? x : c.out(), x, z, &low);
  if (alpha < 0) c->vxorps(c.out(), x, c.u32(kSign));
}

// x tanh(ln(1 + e^x)) = x w (w + 2) / (w (w + 2) + 2) with w = e^x; 1 beyond 30.
void mish(VectorCode& c) {
  const Vec x = c.in(0), r = c.temp(), n = c.temp(), p = c.temp();
  const Mask negative = c.negative(c.avx512() ? c.mask_temp() : Mask{}, x);
  c.move(r, x);
  clamp_between(c, r, lowest_exponent(c), 30);
  reduce_exponent(c, n, r);
  exponential_polynomial(c, p, r);
  const PowerOfTwo power = power_of_two(c, n);
  scale(c, r, p, power);
  c.select(p, negative, p, r);
  {
    const VectorCode::Scope scope(c);
    const Vec sum = c.temp();
    c->vaddps(sum, r, c.f32(2));
    c->vmulps(p, p, sum);
    c->vfmadd213ps(r, sum, c.f32(2));
  }
  c->vdivps(p, p, r);
  multiply_gate(c, c.out(), x, p, negative, power, x);
}

// x / (1 + e^-z) with z = x (c1 + c2 x^2), c1 = 2 sqrt(2 / pi), c2 = 0.044715 c1; each factor as a sum of two floats,
// since e^z multiplies the error of z by z. Beyond 16 the gate is 0 or 1.
void gelu_by_tanh(VectorCode& c) {
  constexpr double kC1 = 1.5957691216057307117597842397, kC2 = 0.044715 * kC1;
  constexpr float kC1High = 0x1.98840p0f;  // of few bits: the difference below is exact
  constexpr auto kC1Low = static_cast<float>(kC1 - kC1High);
  constexpr auto kC2High = static_cast<float>(kC2), kC2Low = static_cast<float>(kC2 - kC2High);
  const Vec x = c.temp(), z = c.temp(), low = c.temp();
  {
    const VectorCode::Scope scope(c);
    const Vec square = c.temp(), square_low = c.temp(), factor = c.temp();
    c.move(x, c.in(0));
    clamp_between(c, x, -16, 16);
    c->vmulps(square, x, x);
    c.move(square_low, x);
    c->vfmsub213ps(square_low, x, square);
    c.set(factor, kC1High);
    c->vfmadd231ps(factor, square, c.f32(kC2High));
    c.set(low, kC1High);
    c->vsubps(low, low, factor);
    c->vfmadd231ps(low, square, c.f32(kC2High));
    c->vfmadd231ps(low, square_low, c.f32(kC2High));
    c->vfmadd231ps(low, square, c.f32(kC2Low));
    c->vaddps(low, low, c.f32(kC1Low));
    c->vmulps(z, x, factor);
    c->vmulps(low, low, x);
    c->vfmsub213ps(x, factor, z);
    c->vaddps(low, low, x);
  }
  multiply_by_sigmoid(c, c.out(), c.in(0), z, &low);
}

// max(x, 0) - |x| Phi(-|x|) with Phi(-a) = e^(-a^2 / 2) R(a), R(a) = erfcx(a / sqrt(2)) / 2 rational. With
// n = round(-a^2 / (2 ln 2)) the exponent's rest is s / -2 for s = a^2 + 2 n ln 2; the multiply-add takes a^2 exactly.
void gelu_by_erf(VectorCode& c) {
  constexpr float kRound = 0x1.8p23f, kHalfLog2E = 0x1.715476p-1f;
  constexpr float kTwoLn2High = 0x1.62e4p0f, kTwoLn2Low = 0x1.7f7d1cp-19f;  // n times the first is exact
  constexpr float kEnd = 14.5f;                                             // the product is 0 there
  // (e^(-s / 2) - 1) / s, as exponential_polynomial in s.
  constexpr float kExp[] = {-0.5f, 0.125f, -0x1.5554dcp-6f, 0x1.5554eap-9f, -0x1.120c0ap-12f, 0x1.6d4bfep-16f};
  // R on [0, 14.5], relative error 2^-27, made as the function in error_function.cpp.
  constexpr float kUpper[] = {0.5f, 0x1.c0e2aep-2f, 0x1.775f9p-3f, 0x1.4d039cp-5f, 0x1.0df17ap-8f};
  constexpr float kLower[] = {1, 0x1.acb38ap+0f, 0x1.33e56ep+0f, 0x1.e0e14ep-2f, 0x1.a165d2p-4f, 0x1.5251dap-7f};
  const Vec x = c.in(0), a = c.temp(), n = c.temp(), s = c.temp(), p = c.temp(), q = c.temp();
  c->vandps(a, x, c.u32(~kSign));
  c.set(n, kEnd);
  c->vminps(a, n, a);
  c->vmulps(s, a, a);
  c.set(n, kRound);
  c->vfnmadd231ps(n, s, c.f32(kHalfLog2E));
  c->vsubps(n, n, c.f32(kRound));
  c->vmulps(s, n, c.f32(kTwoLn2High));
  c->vfmadd231ps(s, a, a);
  c->vfmadd231ps(s, n, c.f32(kTwoLn2Low));
  c.polynomial(p, a, kUpper);
  c->vmulps(p, p, a);
  c.polynomial(q, a, kLower);
  c->vdivps(p, p, q);
  c.polynomial(q, s, kExp);
  c->vmulps(q, q, s);
  c->vfmadd213ps(p, q, p);  // p + p (e^(-s / 2) - 1)
  scale(c, p, p, power_of_two(c, n));
  c.set_u32(a, kSign);  // -0: the sign of x stays
  c->vmaxps(q, a, x);
  c->vsubps(p, q, p);
  c->vminps(q, a, x);
  c->vfmadd132ps(q, p, c.f32(0));  // -inf becomes NaN
  c.move(c.out(), q);
}

bool by_tanh(const Signature& signature) {
  const Attribute* const approximate = signature.attributes.find("approximate");
  const std::string* const text = approximate ? approximate->get_if<std::string>() : nullptr;
  return text && *text == "tanh";
}

constexpr RowPair kRows[] = {
    {"Swish", kF32Lanes, {.vectors = 9, .cycles = 17}, {.vectors = 7, .masks = 1, .cycles = 17}, 4, algorithm<swish>},
    {"Mish", kF32Lanes, {.vectors = 6, .cycles = 19}, {.vectors = 4, .masks = 1, .cycles = 18}, 4, algorithm<mish>},
    {"Gelu",
     kF32Lanes,
     {.vectors = 9, .cycles = 26},
     {.vectors = 7, .masks = 1, .cycles = 19},
     4,
     algorithm<gelu_by_tanh>,
     by_tanh},
    {"Gelu", kF32Lanes, {.vectors = 6, .cycles = 16}, {.vectors = 5, .cycles = 18}, 4.6, algorithm<gelu_by_erf>},
};

}  // namespace

Result<void> add_gate_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
