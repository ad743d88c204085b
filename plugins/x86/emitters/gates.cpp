// Sigmoid, and x times a gate between 0 and 1: Swish, Mish.
#include <cmath>
#include <limits>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/gates.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

constexpr uint32_t kSign = 0x80000000;

// denominator = (1 + e) 2^exponent, e by its parts times 2^exponent.
void one_more(VectorCode& c, const Vec& denominator, const Vec& power, const Vec& rest, int exponent) {
  c->vaddps(denominator, power, c.f32(std::ldexp(1.0f, exponent)));
  c->vfmadd231ps(denominator, power, rest);
}

}  // namespace

void multiply_by_large(VectorCode& c, const Vec& out, const Vec& product, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec large = c.temp();
  c.set(large, kGateUnit);
  c->vmaxps(large, large, x);
  if (c.avx512()) {
    constexpr uint32_t kNaNForMinusInfinity = 3u << 16;  // other classes of x: what is there
    c->vfixupimmps(large, x, c.u32(kNaNForMinusInfinity), 0);
    return c->vmulps(out, product, large);
  }
  c->vmulps(product, product, large);
  c.set(large, 0);
  c->vminps(large, large, x);
  c->vfmadd231ps(product, large, c.f32(0));
  c.move(out, product);
}

void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& x, const Vec& bounded, const Vec& power,
                         const Vec& rest) {
  const VectorCode::Scope scope(c);
  const Vec denominator = c.temp();
  one_more(c, denominator, power, rest, -kGateExponent);
  c->vminps(bounded, bounded, c.f32(kGateUnit));
  c->vdivps(bounded, bounded, denominator);
  multiply_by_large(c, out, bounded, x);
}

void bounded_magnitude(VectorCode& c, const Vec& out, const Vec& x, float size) {
  constexpr uint8_t kMagnitude = 2 << 2 | 2;  // of vrangeps: the lesser magnitude without its sign
  c.cut_dependency(out);
  c->vrangeps(out, x, c.f32(size), kMagnitude);
}

void positive_part(VectorCode& c, const Vec& out, const Vec& x) {
  // Of vfixupimmps, from the highest class on: positive, negative, +inf, -inf, 1, 0, NaN, NaN that signals.
  constexpr uint32_t kAnswers = 0x17131122;
  c.cut_dependency(out);
  c->vfixupimmps(out, x, c.u32(kAnswers), 0);
}

// What the reciprocal lacks is found from 1 and e apart, whose sum is rounded: by it, swish was 4.1 ulp off.
void multiply_by_gate(VectorCode& c, const Vec& out, const Vec& x, const Vec& a, const Vec& e) {
  const float one = std::ldexp(1.0f, kGateExponent);
  const VectorCode::Scope scope(c);
  const Vec correction = c.temp(), reciprocal = c.temp();
  c->vaddps(correction, e, c.f32(one));
  c->vrcp14ps(reciprocal, correction);
  c.set(correction, 1);
  c->vfnmadd231ps(correction, reciprocal, c.f32(one));
  c->vfnmadd231ps(correction, reciprocal, e);
  c->vmulps(e, e, a);
  c->vfmadd213ps(correction, reciprocal, reciprocal);
  positive_part(c, a, x);
  c->vfnmadd231ps(a, e, correction);
  c.move(out, a);
}

namespace {

// 1 / (1 + e^-x)
void sigmoid(VectorCode& c) {
  constexpr int kExponent = -32;  // e^104 is no float
  const Vec x = c.temp(), power = c.temp(), rest = c.temp();
  c.move(x, c.in(0));
  clamp_between(c, x, -104, 30);
  exponential_parts(c, power, rest, x, {.negated = true, .exponent = kExponent});
  one_more(c, x, power, rest, kExponent);
  c.set(rest, std::ldexp(1.0f, kExponent));
  c.divide_fast(c.out(), rest, x);
}

// ---- Swish ----

float alpha_of(const Attributes& attributes) {
  const Attribute* const alpha = attributes.find("alpha");
  const float* const value = alpha ? alpha->get_if<float>() : nullptr;
  return value ? *value : 1;
}

// With a smaller alpha the result is not 0 yet where the exponent ends.
bool takes_alpha(const Signature& signature) {
  const float size = std::abs(alpha_of(signature.attributes));
  return size == 0 || (size >= 0x1p-48f && size < std::numeric_limits<float>::infinity());
}

// z = alpha x as a sum of two floats. A negative alpha: -swish(-x) of -alpha, so that x and z have one sign.
void swish_avx512(VectorCode& c) {
  const float alpha = alpha_of(c.emission().attributes), size = std::abs(alpha);
  const Vec x = alpha < 0 ? c.temp() : c.in(0), a = c.temp(), z = c.temp(), power = c.temp(), e = c.temp();
  if (alpha < 0) c->vxorps(x, c.in(0), c.u32(kSign));
  bounded_magnitude(c, a, x, kGateEnd / size);
  const Power of{.negated = true, .exponent = kGateExponent};
  if (size == 1) {
    c.move(z, a);
    exponential_parts(c, power, e, z, of);
  } else {
    const VectorCode::Scope scope(c);
    const Vec low = c.temp();
    c.set(low, size);
    c->vmulps(z, a, low);
    c->vfmsub213ps(low, a, z);
    exponential_parts(c, power, e, z, of, &low);
  }
  c->vfmadd213ps(e, power, power);
  multiply_by_gate(c, alpha < 0 ? x : c.out(), x, a, e);
  if (alpha < 0) c->vxorps(c.out(), x, c.u32(kSign));
}

// Of alpha 0: half of x, and no bound.
void swish(VectorCode& c) {
  if (c.avx512() && alpha_of(c.emission().attributes) != 0) return swish_avx512(c);
  const float alpha = alpha_of(c.emission().attributes), size = std::abs(alpha);
  const Vec x = alpha < 0 ? c.temp() : c.in(0), bounded = c.temp(), z = c.temp();
  if (alpha < 0) c->vxorps(x, c.in(0), c.u32(kSign));
  c.move(bounded, x);
  clamp_between(c, bounded, -kGateEnd / size, kGateFull / size);
  const Vec power = c.temp(), rest = c.temp();
  const Power of{.negated = true, .exponent = -kGateExponent};
  if (size == 1) {
    c.move(z, bounded);
    exponential_parts(c, power, rest, z, of);
  } else {
    const VectorCode::Scope scope(c);
    const Vec low = c.temp();
    c.set(low, size);
    c->vmulps(z, bounded, low);
    c->vfmsub213ps(low, bounded, z);
    exponential_parts(c, power, rest, z, of, &low);
  }
  multiply_by_sigmoid(c, alpha < 0 ? x : c.out(), x, bounded, power, rest);
  if (alpha < 0) c->vxorps(c.out(), x, c.u32(kSign));
}

// x tanh(ln(1 + e^x)) = x w (w + 2) / (w (w + 2) + 2) with w = e^x; the gate is 1 beyond 12.
void mish(VectorCode& c) {
  const Vec x = c.in(0), bounded = c.temp(), w = c.temp(), sum = c.temp();
  c.move(bounded, x);
  clamp_between(c, bounded, -kGateEnd, 12);
  c.move(w, bounded);
  {
    const VectorCode::Scope scope(c);
    const Vec large_w = c.temp();
    exponential_parts(c, sum, large_w, w, {.exponent = kGateExponent});
    c->vfmadd213ps(large_w, sum, sum);
    c->vmulps(w, large_w, c.f32(kGateUnit));
    c->vaddps(sum, large_w, large_w);
    c->vfmadd231ps(sum, w, large_w);  // w (w + 2), rounded once
  }
  c.set(w, 2);
  c->vfmadd231ps(w, sum, c.f32(kGateUnit));
  c->vminps(bounded, bounded, c.f32(kGateUnit));
  c.divide_product(bounded, bounded, sum, w);
  multiply_by_large(c, bounded, bounded, x);
  // The sign of zero was lost in the quotient.
  if (c.avx512()) {
    constexpr uint32_t kZeroStays = 1u << 8;
    c->vfixupimmps(bounded, x, c.u32(kZeroStays), 0);
  } else {
    c->vandps(sum, x, c.u32(kSign));
    c->vorps(bounded, bounded, sum);
  }
  c.move(c.out(), bounded);
}

constexpr RowPair kRows[] = {
    {"Sigmoid",
     kF32Lanes,
     {.vectors = 4, .cycles = 8},
     {.vectors = 4, .cycles = 13, .in_turn = 4},
     2.7,
     algorithm<sigmoid>},
    {"Swish",
     kF32Lanes,
     {.vectors = 7, .cycles = 10},
     {.vectors = 7, .cycles = 12, .in_turn = 2},
     3.4,
     algorithm<swish>,
     takes_alpha},
    {"Mish", kF32Lanes, {.vectors = 6, .cycles = 17}, {.vectors = 6, .cycles = 21, .in_turn = 4}, 4, algorithm<mish>},
};

}  // namespace

Result<void> add_gate_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
