// Gelu: x times the normal distribution function, or its approximation by tanh.
#include <string>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/gates.hpp"
#include "x86/emitters/piecewise.hpp"
#include "x86/emitters/piecewise_tables.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// z = x (factor + low), where factor + low = c1 + c2 x^2 with c1 = -2 sqrt(2 / pi) / ln 2 and c2 = 0.044715 c1. Two
// floats are needed because 2^z multiplies the error of z by z. Takes two scratch vectors.
void cubic_factor(VectorCode& c, const Vec& factor, const Vec& low, const Vec& x) {
  constexpr float kC1High = -0x1.26aecp1f;  // has few bits, so that the difference below is exact
  constexpr float kC1Low = -0x1.0de73ap-22f, kC2High = -0x1.a5a7dp-4f, kC2Low = 0x1.151aaep-29f;
  const VectorCode::Scope scope(c);
  const Vec square = c.temp(), small = c.temp();
  c->vmulps(square, x, x);
  c.set(low, kC1High);
  c.move(factor, square);
  c->vfmadd132ps(factor, low, c.f32(kC2High));
  c->vsubps(low, low, factor);
  c->vfmadd231ps(low, square, c.f32(kC2High));  // adds the rounding error of factor
  c.set(small, kC1Low);
  c->vfmadd231ps(small, square, c.f32(kC2Low));
  c->vfnmadd231ps(square, x, x);
  c->vfnmadd231ps(small, square, c.f32(kC2High));
  c->vaddps(low, low, small);
}

// power, n and f from z: n = z rounded to steps, `power` with its bits, f = z - n.
void split_cubic(VectorCode& c, const Vec& power, const Vec& n, const Vec& f, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec low = c.temp();
  cubic_factor(c, f, low, x);
  c.set(n, rounding_constant(c));
  c.move(power, x);
  c->vfmadd132ps(power, n, f);
  c->vsubps(n, power, n);
  c->vfmsub213ps(f, x, n);
  c->vfmadd231ps(f, low, x);
}

// x / (1 + 2^z): below x = -11 the gate is 0, above 6 it is 1.
void gelu_by_tanh(VectorCode& c) {
  constexpr float kTerms[] = {0x1.62e43p-1f, 0x1.ebff94p-3f, 0x1.c6ac7cp-5f};  // (2^f - 1) / f within 1e-7
  constexpr float kLongerTerms[] = {0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6b85p-5f, 0x1.3b2cf8p-7f};
  const Vec bounded = c.temp(), beyond = c.temp(), f = c.temp(), power = c.temp(), rest = c.temp();
  bound_gated(c, bounded, beyond, c.in(0), -11, 6);
  split_cubic(c, power, rest, f, bounded);
  power_of_two_steps(c, power, -kGateExponent, rest);
  c.avx512() ? c.polynomial(rest, f, kTerms) : c.polynomial(rest, f, kLongerTerms);
  c->vmulps(rest, rest, f);
  multiply_by_sigmoid(c, c.out(), bounded, beyond, power, rest);
}

// n = -a^2 / (2 ln 2) rounded to steps, with its bits in `power`. The rest of the exponent is -s / 2 with
// s = a^2 + 2 n ln 2; the fused multiply-add uses a^2 exactly.
void density_exponent(VectorCode& c, const Vec& power, const Vec& n, const Vec& s, const Vec& a) {
  constexpr float kHalfLog2E = 0x1.715476p-1f;
  constexpr float kTwoLn2High = 0x1.62ep0f, kTwoLn2Low = 0x1.0bfbe8p-14f;  // n times the first is exact
  c->vmulps(power, a, a);
  c.set(n, rounding_constant(c));
  c->vfnmadd132ps(power, n, c.f32(kHalfLog2E));
  c->vsubps(n, power, n);
  c->vmulps(s, n, c.f32(kTwoLn2High));
  c->vfmadd231ps(s, a, a);
  c->vfmadd231ps(s, n, c.f32(kTwoLn2Low));
}

// out = min(|x|, size); for NaN any number up to `size`. avx512.
void bounded_magnitude(VectorCode& c, const Vec& out, const Vec& x, float size) {
  constexpr uint8_t kMagnitude = 2 << 2 | 2;  // of vrangeps: the lesser magnitude without its sign
  c.cut_dependency(out);
  c->vrangeps(out, x, c.f32(size), kMagnitude);
}

// out = max(x, 0) with the sign of zeros kept, -0 for negative x, NaN for -inf and NaN: x - min(x, -0), rounded down,
// so that -1 + 1 is -0. avx512; writes all lanes of the 512-bit register. Registers differ.
void positive_part(VectorCode& c, const Vec& out, const Vec& x) {
  const Vec all = VectorCode::at(out, 512);
  c.set_u32(out, kSign32);
  c->vminps(out, x, out);  // -0 for both zeros and for NaN
  c->vsubps(all | Xbyak::util::T_rd_sae, VectorCode::at(x, 512), all);
}

constexpr float kErfEnd = 14.5f;  // a Phi(-a) is 0 there

// max(x, 0) - a Phi(-a) with a = |x|, Phi(-a) = e^(-a^2 / 2) R(a), R(a) = erfcx(a / sqrt(2)) / 2.
void gelu_by_erf_avx512(VectorCode& c) {
  constexpr float kTerms[] = {-0.5f, 0x1.0001ecp-3f, -0x1.555658p-6f};  // (e^(-s / 2) - 1) / s within 1e-7
  const Vec a = c.temp(), power = c.temp(), product = c.temp();
  bounded_magnitude(c, a, c.in(0), kErfEnd);
  {
    const VectorCode::Scope scope(c);
    const Vec n = c.temp(), s = c.temp();
    density_exponent(c, power, n, s, a);
    raise(c, power, n, s, kTerms, 0);
  }
  piecewise_polynomial(c, product, a, kNormalProduct32);
  positive_part(c, a, c.in(0));
  c->vfnmadd231ps(a, product, power);
  c.move(c.out(), a);
}

// The density is computed times 2^60, because e^(-a^2 / 2) may not be a float.
void gelu_by_erf(VectorCode& c) {
  if (c.avx512()) return gelu_by_erf_avx512(c);
  constexpr float kTerms[] = {-0.5f, 0.125f, -0x1.555c2ep-6f, 0x1.5558d8p-9f};
  const Vec x = c.in(0), a = c.temp(), power = c.temp(), rest = c.temp();
  c->vandps(a, x, c.u32(~kSign32));
  c.set(power, kErfEnd);
  c->vminps(a, power, a);
  {
    const VectorCode::Scope scope(c);
    const Vec n = c.temp(), s = c.temp();
    density_exponent(c, power, n, s, a);
    power_of_two_steps(c, power, 60, n);
    c.polynomial(rest, s, kTerms);
    c->vmulps(rest, rest, s);
  }
  c->vmulps(power, power, a);
  const Vec ratio = c.temp();
  piecewise_polynomial(c, ratio, a, kNormalRatio8);
  c->vmulps(ratio, ratio, power);
  c->vfmadd213ps(rest, ratio, ratio);
  c.set_u32(a, kSign32);  // -0: keeps the sign of x
  c->vmaxps(power, a, x);
  c->vfnmadd231ps(power, rest, c.f32(0x1p-60f));
  c->vminps(a, a, x);
  c->vfmadd132ps(a, power, c.f32(0));
  c.move(c.out(), a);
}

bool by_tanh(const Signature& signature) {
  const Attribute* const approximate = signature.attributes.find("approximate");
  const std::string* const text = approximate ? approximate->get_if<std::string>() : nullptr;
  return text && *text == "tanh";
}

constexpr RowPair kGeluRows[] = {
    {"Gelu",
     kF32Lanes,
     {.vectors = 8, .cycles = 15},
     {.vectors = 8, .cycles = 15, .in_turn = 2},
     2.7,
     algorithm<gelu_by_tanh>,
     by_tanh},
    {"Gelu",
     kF32Lanes,
     {.vectors = 7, .cycles = 19},
     {.vectors = 6, .cycles = 20, .in_turn = 2},
     3.8,
     algorithm<gelu_by_erf>},
};

}  // namespace

Result<void> add_gelu_rows(JitterTable& table) { return add_pairs(table, kGeluRows); }

}  // namespace tenon::x86
