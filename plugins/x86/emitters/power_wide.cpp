// a^b = 2^(b log2 a) of f64. The logarithm is a sum of two numbers, as is its product with b: the error before rounding
// is less than half a unit in the last place, so powers that are exactly f64 numbers are exact.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// A constant as an unevaluated sum.
struct Sum {
  double high, low;
};
constexpr Sum kTwoThirds{0x1.5555555555555p-1, 0x1.5555555555555p-55};
constexpr Sum kLog2ESum{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr Sum kLn2Sum{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// high + low = x y exactly, for floats x and y.
void product(VectorCode& c, const Vec& high, const Vec& low, const Vec& x, const Vec& y) {
  c->vmulpd(high, x, y);
  c.move(low, x);
  c->vfmsub213pd(low, y, high);
}
void product(VectorCode& c, const Vec& high, const Vec& low, const Vec& x, const Sum& y) {
  c->vmulpd(high, x, c.f64(y.high));
  c.move(low, x);
  c->vfmsub132pd(low, high, c.f64(y.high));
  c->vfmadd231pd(low, x, c.f64(y.low));
}
// sum + rest = x + y, where x is 0 or not smaller than y. Registers differ.
void add(VectorCode& c, const Vec& sum, const Vec& rest, const Vec& x, const Vec& y) {
  c->vaddpd(sum, x, y);
  c->vsubpd(rest, sum, x);
  c->vsubpd(rest, y, rest);
}

// Nine scratch vectors, in the order in which a power allocates them.
struct Registers {
  Vec magnitude, f, e, a, b, u, s, t, v;
  explicit Registers(VectorCode& c)
      : magnitude(c.temp()),
        f(c.temp()),
        e(c.temp()),
        a(c.temp()),
        b(c.temp()),
        u(c.temp()),
        s(c.temp()),
        t(c.temp()),
        v(c.temp()) {}
};

// a + v = ln(1 + f) = 2 s + s t, s = f / (2 + f) and t = s^2 (2/3 + 2/5 s^2 ...), all of them sums.
void logarithm(VectorCode& c, const Registers& r) {
  constexpr double kTerms[] = {0x1.9999999999977p-2, 0x1.2492492497653p-2, 0x1.c71c71be2325fp-3, 0x1.745d1b41adfd0p-3,
                               0x1.3b12af4008fd6p-3, 0x1.1137d6a200b86p-3, 0x1.db0d5d2e55cfap-4, 0x1.00d2f5ac52693p-3};
  const auto& [magnitude, f, e, a, b, u, s, t, v] = r;
  // s, and its rounding error in f.
  c->vaddpd(a, f, c.f64(2));
  c->vsubpd(t, a, c.f64(2));
  c->vsubpd(b, f, t);
  c.set_u64(u, std::bit_cast<uint64_t>(1.0));
  c->vdivpd(u, u, a);
  c->vmulpd(s, f, u);
  c->vfnmadd231pd(f, s, a);
  c->vfnmadd231pd(f, s, b);
  c->vmulpd(f, f, u);
  // a + u = s^2
  product(c, a, u, s, s);
  c->vaddpd(b, f, f);
  c->vfmadd231pd(u, s, b);
  // t + v = the product with 2/3, plus the other terms.
  wide_polynomial(c, b, a, kTerms);
  c->vmulpd(b, b, a);
  c->vmulpd(b, b, a);
  product(c, t, v, a, kTwoThirds);
  c->vfmadd231pd(v, u, c.f64(kTwoThirds.high));
  c->vaddpd(v, v, b);
  add(c, a, u, t, v);
  // t + v = s (a + u)
  product(c, t, v, s, a);
  c->vfmadd231pd(v, s, u);
  c->vfmadd231pd(v, f, a);
  c->vaddpd(b, s, s);
  c->vaddpd(f, f, f);
  add(c, a, u, b, t);
  c->vaddpd(v, v, u);
  c->vaddpd(v, v, f);
}

// t + u = b log2 |a|, with t clamped to [-1100, 1100], and u = 0 at the limits.
void exponent(VectorCode& c, const Registers& r, const Mask& mask) {
  constexpr double kGreatest = 0x1p65, kLimit = 1100;
  const auto& [magnitude, f, e, a, b, u, s, t, v] = r;
  product(c, t, u, a, kLog2ESum);
  c->vfmadd231pd(u, v, c.f64(kLog2ESum.high));
  add(c, a, v, e, t);
  c->vaddpd(v, v, u);
  // For greater b every power except those of 1 is 0 or infinite.
  c.set_u64(e, std::bit_cast<uint64_t>(-kGreatest));
  c->vmaxpd(e, e, c.in(1));
  c.set_u64(t, std::bit_cast<uint64_t>(kGreatest));
  c->vminpd(e, t, e);
  product(c, t, u, e, a);
  c->vfmadd231pd(u, e, v);
  c->vandpd(v, t, c.u64(~kSign64));
  c.compare(mask, Compare::less, v, c.f64(kLimit));
  c.keep(u, mask, u);
  c.set_u64(v, std::bit_cast<uint64_t>(-kLimit));
  c->vmaxpd(t, v, t);
  c.set_u64(v, std::bit_cast<uint64_t>(kLimit));
  c->vminpd(t, v, t);
}

// s = 2^(t + u): with n = t rounded, t - n + u is 0 or dominated by t - n.
void raise(VectorCode& c, const Registers& r) {
  const auto& [magnitude, f, e, a, b, u, s, t, v] = r;
  c.round(e, t, Rounding::nearest_even);
  c->vsubpd(t, t, e);
  add(c, a, v, t, u);
  product(c, t, u, a, kLn2Sum);
  c->vfmadd231pd(u, v, c.f64(kLn2Sum.high));
  wide_polynomial(c, s, t, wide_exponential_terms());
  c->vmulpd(f, t, t);
  c->vfmadd213pd(s, f, u);
  // 1 + t, and its rounding error.
  c.set_u64(v, std::bit_cast<uint64_t>(1.0));
  add(c, f, a, v, t);
  c->vaddpd(s, s, a);
  c->vaddpd(s, s, f);
  wide_scale(c, s, s, e, b);
}

// s = |a|^b becomes a^b: handles signs, zeros, infinities and NaN like std::pow.
void finish(VectorCode& c, const Registers& r, const Mask& mask) {
  const Vec a = c.in(0), b = c.in(1);
  const auto& [magnitude, zero, infinity, of_zero, of_infinity, half, s, whole, t] = r;
  c.set_u64(zero, 0);
  c.set_u64(infinity, kInfinity64);
  // Negative a: NaN unless b is an integer.
  c.round(whole, b, Rounding::nearest_even);
  c.move(half, s);
  c.set_u64(t, kNaN64);
  c.replace(half, mask, Compare::not_equal, whole, b, t);
  c.replace(s, mask, Compare::less, a, zero, half);
  c.compare(mask, Compare::less, b, zero);
  c.select(of_zero, mask, infinity, zero);
  c.select(of_infinity, mask, zero, infinity);
  c.replace(s, mask, Compare::equal, magnitude, zero, of_zero);
  c.replace(s, mask, Compare::equal, magnitude, infinity, of_infinity);
  // Odd powers have the sign of a: b is an integer, b / 2 is not.
  c->vmulpd(half, b, c.f64(0.5));
  c.round(of_zero, half, Rounding::nearest_even);
  c->vandpd(t, a, c.u64(kSign64));
  c.compare(mask, Compare::not_equal, half, of_zero);
  c.keep(t, mask, t);
  c.compare(mask, Compare::equal, whole, b);
  c.keep(t, mask, t);
  c->vorpd(s, s, t);
  c.set_u64(t, kNaN64);
  c.replace(s, mask, Compare::unordered, a, b, t);
  c.set_u64(t, std::bit_cast<uint64_t>(1.0));
  c.replace(s, mask, Compare::equal, a, t, t);
  c.replace(s, mask, Compare::equal, b, zero, t);
}

void wide_power(VectorCode& c) {
  const Registers r(c);
  const Mask mask = c.mask_temp();
  c->vandpd(r.magnitude, c.in(0), c.u64(~kSign64));
  wide_split(c, r.magnitude, r.f, r.e, r.a, mask);
  logarithm(c, r);
  exponent(c, r, mask);
  raise(c, r);
  finish(c, r, mask);
  c.move(c.out(), r.s);
}

constexpr RowPair kWidePowerRows[] = {
    {"Pow",
     kF64Only,
     {.vectors = 10, .cycles = 130},
     {.vectors = 9, .masks = 1, .cycles = 100},
     1.5,
     algorithm<wide_power>},
};

}  // namespace

Result<void> add_wide_power_rows(JitterTable& table) { return add_pairs(table, kWidePowerRows); }

}  // namespace tenon::x86
