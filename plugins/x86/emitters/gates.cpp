// Sigmoid, and products of x and a gate between 0 and 1: Swish, Mish. gates.hpp describes the special values.
#include <cmath>
#include <limits>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/gates.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

constexpr float kGateUnit = 0x1p-75f;  // 2^-kGateExponent

// denominator = (1 + e) 2^exponent, from the parts of e 2^exponent.
void one_more(VectorCode& c, const Vec& denominator, const Vec& power, const Vec& rest, int exponent) {
  c->vaddps(denominator, power, c.f32(std::ldexp(1.0f, exponent)));
  c->vfmadd231ps(denominator, power, rest);
}

}  // namespace

void bound_gated(VectorCode& c, const Vec& bounded, const Vec& beyond, const Vec& x, float zero, float full) {
  const bool rises = zero < full;
  rises ? c->vminps(bounded, x, c.f32(full)) : c->vmaxps(bounded, x, c.f32(full));
  c->vsubps(beyond, bounded, x);
  rises ? c->vmaxps(bounded, bounded, c.f32(zero)) : c->vminps(bounded, bounded, c.f32(zero));
}

// Subtracting a `beyond` of 0 keeps the sign of a product that is zero.
void add_beyond(VectorCode& c, const Vec& out, const Vec& product, const Vec& beyond) {
  c->vfmsub132ps(product, beyond, c.f32(kGateUnit));
  c.move(out, product);
}

void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& bounded, const Vec& beyond, const Vec& power,
                         const Vec& rest) {
  const VectorCode::Scope scope(c);
  const Vec denominator = c.temp();
  one_more(c, denominator, power, rest, -kGateExponent);
  c->vdivps(bounded, bounded, denominator);
  add_beyond(c, out, bounded, beyond);
}

namespace {

// 1 / (1 + e^-x)
void sigmoid(VectorCode& c) {
  constexpr int kExponent = -32;  // because e^104 is not a float
  const Vec x = c.temp(), power = c.temp(), rest = c.temp();
  c.move(x, c.in(0));
  clamp_between(c, x, -104, 30);
  exponential_parts(c, power, rest, x, {.negated = true, .exponent = kExponent});
  one_more(c, x, power, rest, kExponent);
  c.set(rest, std::ldexp(1.0f, kExponent));
  c->vdivps(c.out(), rest, x);
}

// ---- Swish ----

float alpha_of(const Attributes& attributes) {
  const Attribute* const alpha = attributes.find("alpha");
  const float* const value = alpha ? alpha->get_if<float>() : nullptr;
  return value ? *value : 1;
}

// With a smaller alpha the result would not be 0 yet where the exponent is clamped.
bool takes_alpha(const Signature& signature) {
  const float size = std::abs(alpha_of(signature.attributes));
  return size == 0 || (size >= 0x1p-44f && size < std::numeric_limits<float>::infinity());
}

// x / 2, but NaN for infinities, because 0 * x is NaN there.
void swish_of_zero(VectorCode& c) {
  const Vec zero = c.temp(), half = c.temp();
  c.set(zero, 0);
  c->vmulps(zero, zero, c.in(0));
  c->vmulps(half, c.in(0), c.f32(0.5f));
  c->vaddps(c.out(), half, zero);
}

// x / (1 + e^(-alpha x)), alpha x as a sum of two floats.
void swish(VectorCode& c) {
  const float alpha = alpha_of(c.emission().attributes);
  if (alpha == 0) return swish_of_zero(c);
  const Vec bounded = c.temp(), beyond = c.temp(), z = c.temp(), power = c.temp(), rest = c.temp();
  bound_gated(c, bounded, beyond, c.in(0), -kGateEnd / alpha, kGateFull / alpha);
  const Power of{.negated = alpha > 0, .exponent = -kGateExponent};
  if (std::abs(alpha) == 1) {
    c.move(z, bounded);
    exponential_parts(c, power, rest, z, of);
  } else {
    const VectorCode::Scope scope(c);
    const Vec low = c.temp();
    c.set(low, std::abs(alpha));
    c->vmulps(z, bounded, low);
    c->vfmsub213ps(low, bounded, z);
    exponential_parts(c, power, rest, z, of, &low);
  }
  multiply_by_sigmoid(c, c.out(), bounded, beyond, power, rest);
}

// x tanh(ln(1 + e^x)) = x w (w + 2) / (w (w + 2) + 2) with w = e^x; 0 below -110; the gate is 1 above 12.
void mish(VectorCode& c) {
  const Vec bounded = c.temp(), beyond = c.temp(), w = c.temp(), sum = c.temp();
  bound_gated(c, bounded, beyond, c.in(0), -110, 12);
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
  c.divide_product(bounded, bounded, sum, w);
  add_beyond(c, c.out(), bounded, beyond);
}

constexpr RowPair kGateRows[] = {
    {"Sigmoid",
     kF32Lanes,
     {.vectors = 4, .cycles = 8},
     {.vectors = 4, .cycles = 10, .in_turn = 4},
     2.7,
     algorithm<sigmoid>},
    {"Swish",
     kF32Lanes,
     {.vectors = 7, .cycles = 9},
     {.vectors = 7, .cycles = 11, .in_turn = 2},
     3,
     algorithm<swish>,
     takes_alpha},
    {"Mish", kF32Lanes, {.vectors = 7, .cycles = 16}, {.vectors = 7, .cycles = 19, .in_turn = 4}, 4, algorithm<mish>},
};

}  // namespace

Result<void> add_gate_rows(JitterTable& table) { return add_pairs(table, kGateRows); }

}  // namespace tenon::x86
