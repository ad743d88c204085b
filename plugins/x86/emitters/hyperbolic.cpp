// sinh and cosh by e^|x| / 4, which is finite where they are.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

constexpr float kEnd = 89.6f;  // both are infinite there

// a = min(|x|, kEnd) becomes r of its exponential; its power of two, divided by 4, goes to `power`.
void reduce_magnitude(VectorCode& c, const Vec& a, const Vec& power) {
  const VectorCode::Scope scope(c);
  const Vec n = c.temp();
  c->vandps(a, c.in(0), c.u32(~kSign32));
  c.set(n, kEnd);
  c->vminps(a, n, a);
  reduce_exponent(c, n, power, a);
  c->vpsubd(power, power, c.u32(2u << kMantissaBits32));
}

// q = (e^a - 1) / 4; sinh(x) = 2 (q + q / (4 q + 1)) with the sign of x; tiny x are returned as they are.
void hyperbolic_sine(VectorCode& c) {
  const Vec x = c.in(0), a = c.temp(), power = c.temp(), p = c.temp();
  reduce_magnitude(c, a, power);
  exponential_less_one_polynomial(c, p, a);
  c->vsubps(a, power, c.f32(0.25f));
  c->vfmadd231ps(a, power, p);
  c.set(p, 1);
  c->vfmadd231ps(p, a, c.f32(4));
  c->vdivps(p, a, p);  // a may be infinite
  c->vaddps(a, a, p);
  c->vaddps(a, a, a);
  c.join_sign(a, a, x);
  const Mask tiny = c.mask_temp();
  c->vandps(p, x, c.u32(~kSign32));
  c.compare(tiny, Compare::less, p, c.f32(0x1p-12f));
  c.select(c.out(), tiny, x, a);
}

// h = e^|x| / 4; cosh(x) = 2 (h + 1 / (16 h))
void hyperbolic_cosine(VectorCode& c) {
  const Vec a = c.temp(), power = c.temp(), p = c.temp();
  reduce_magnitude(c, a, power);
  exponential_polynomial(c, p, a);
  c->vmulps(p, p, power);
  c.set(power, 0x1p-4f);
  c->vdivps(power, power, p);
  c->vaddps(p, p, power);
  c->vaddps(c.out(), p, p);
}

constexpr RowPair kHyperbolicRows[] = {
    {"Sinh",
     kF32Lanes,
     {.vectors = 4, .cycles = 15, .in_turn = 2},
     {.vectors = 4, .masks = 1, .cycles = 27, .in_turn = 4},
     2.2,
     algorithm<hyperbolic_sine>},
    {"Cosh",
     kF32Lanes,
     {.vectors = 4, .cycles = 9},
     {.vectors = 4, .cycles = 14, .in_turn = 2},
     1.6,
     algorithm<hyperbolic_cosine>},
};

}  // namespace

Result<void> add_hyperbolic_rows(JitterTable& table) { return add_pairs(table, kHyperbolicRows); }

}  // namespace tenon::x86
