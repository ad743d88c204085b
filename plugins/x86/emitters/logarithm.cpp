// Logarithms and functions of them: x = 2^e (1 + f) with 1 + f in [3/4, 3/2), ln x = e ln 2 + ln(1 + f).
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/piecewise.hpp"
#include "x86/emitters/piecewise_tables.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

constexpr float kLn2 = 0x1.62e43p-1f;

// f becomes e ln 2 + ln(1 + f); minimax polynomial, relative error below 2^-26. Takes one scratch vector.
void logarithm_of_parts(VectorCode& c, const Vec& f, const Vec& e) {
  constexpr float kTerms[] = {-0.5f,          0x1.55557cp-2f,  -0x1.00009cp-2f, 0x1.997a94p-3f, -0x1.54defp-3f,
                              0x1.275b46p-3f, -0x1.0d452cp-3f, 0x1.ba3f34p-4f,  -0x1.928ba2p-5f};
  const VectorCode::Scope scope(c);
  const Vec q = c.temp();
  c.polynomial(q, f, kTerms);
  c->vmulps(q, q, f);
  c->vfmadd213ps(q, f, f);
  c->vfmadd132ps(e, q, c.f32(kLn2));
  c.move(f, e);
}

// avx512 needs no special cases for denormals, zeros and infinities: the exponent of 0 is -inf, that of inf is inf.
void logarithm_avx512(VectorCode& c) {
  constexpr uint8_t kThreeQuarters = 3, kNaNBelowZero = 2 << 2;
  const Vec x = c.in(0), f = c.temp(), e = c.temp();
  const Mask below_one = c.mask_temp();
  c->vgetexpps(e, x);
  c->vgetmantps(f, x, kThreeQuarters | kNaNBelowZero);
  c.compare(below_one, Compare::less, f, c.f32(1));
  c->vaddps(e | c.opmask(below_one), e, c.f32(1));
  c->vsubps(f, f, c.f32(1));
  logarithm_of_parts(c, f, e);
  c.move(c.out(), f);
}

// x = 2^e (1 + f), for normal x.
void split_avx2(VectorCode& c, const Vec& f, const Vec& e, const Vec& x) {
  c->vpsubd(e, x, c.u32(kThreeQuarters32));
  c->vandps(e, e, c.u32(kExponentMask32));
  c->vpsubd(f, x, e);
  c->vpsrad(e, e, kMantissaBits32);
  c->vcvtdq2ps(e, e);
  c->vsubps(f, f, c.f32(1));
}

// Jumps to `to` where all lanes are normal numbers above 0. t and u are scratch.
void jump_if_normal(VectorCode& c, const Vec& t, const Vec& u, const Xbyak::Label& to) {
  constexpr uint32_t kLeastNormal = 0x00800000, kNotFinite = 0x7f800000;
  c->vpsubd(t, c.in(0), c.u32(kLeastNormal));
  c->vpaddd(u, t, c.u32(kSign32 - (kNotFinite - kLeastNormal)));  // overflows into the sign if not finite
  c->vorps(t, t, u);
  c->vtestps(t, t);
  c->jz(to, Xbyak::CodeGenerator::T_NEAR);
}

// f = ln x. Denormals are multiplied by 2^23 first. Lanes that are not positive and finite are selected separately: x
// for inf and NaN.
void logarithm_of_any(VectorCode& c, const Vec& f, const Vec& e) {
  constexpr float kLeastNormal = 0x1p-126f;
  const Vec x = c.in(0), t = c.temp();
  const Mask mask = c.mask_temp();
  c.compare(mask, Compare::less, x, c.f32(kLeastNormal));
  c->vmulps(t, x, c.f32(0x1p23f));
  c.select(f, mask, t, x);
  c->vandps(t, c.vector(mask), c.f32(-23));
  split_avx2(c, f, e, f);
  c->vaddps(e, e, t);
  logarithm_of_parts(c, f, e);
  c.set_u32(t, 0x7f800000);
  c.compare(mask, Compare::less, x, t);
  c.select(f, mask, f, x);
  c.set(t, 0);
  c.compare(mask, Compare::less_equal, x, t);
  c->vcmpps(t, x, t, static_cast<uint8_t>(Compare::equal));
  c.set_u32(e, kNaN32);
  c.select(f, mask, e, f);
  c.set_u32(e, kMinusInfinity32);
  c->vblendvps(f, f, e, t);
}

void logarithm_avx2(VectorCode& c) {
  const Vec f = c.temp(), e = c.temp();
  Xbyak::Label normal, done;
  jump_if_normal(c, f, e, normal);
  logarithm_of_any(c, f, e);
  c->jmp(done, Xbyak::CodeGenerator::T_NEAR);
  c->L(normal);
  split_avx2(c, f, e, c.in(0));
  logarithm_of_parts(c, f, e);
  c->L(done);
  c.move(c.out(), f);
}

void logarithm(VectorCode& c) { c.avx512() ? logarithm_avx512(c) : logarithm_avx2(c); }

// a becomes ln(1 + a) for 0 <= a <= 2^60 with full accuracy for small a: 1 + a gives the exponent, and
// f = (1 + a) 2^-e - 1 = a 2^-e + (2^-e - 1). Takes three scratch vectors.
void logarithm_of_one_more(VectorCode& c, const Vec& a) {
  const VectorCode::Scope scope(c);
  const Vec e = c.temp(), power = c.temp();
  c->vaddps(e, a, c.f32(1));
  c->vpsubd(e, e, c.u32(kThreeQuarters32));
  c->vandps(e, e, c.u32(kExponentMask32));
  c.set_u32(power, kOne32);
  c->vpsubd(power, power, e);
  c->vpsrad(e, e, kMantissaBits32);
  c->vcvtdq2ps(e, e);
  c->vmulps(a, a, power);
  c->vsubps(power, power, c.f32(1));
  c->vaddps(a, a, power);
  logarithm_of_parts(c, a, e);
}

// max(x, 0) + e G(e) with e = e^-|x|, G(e) = ln(1 + e) / e.
void softplus(VectorCode& c) {
  const Vec x = c.in(0), e = c.temp();
  c->vorps(e, x, c.u32(kSign32));
  exponential(c, e, e);
  const Vec y = c.temp();
  c.avx512() ? piecewise_polynomial(c, y, e, kLogOfSum16) : piecewise_polynomial(c, y, e, kLogOfSum8);
  const Vec positive = c.temp();
  c.set(positive, 0);
  c->vmaxps(positive, positive, x);
  c->vfmadd213ps(y, e, positive);
  c.move(c.out(), y);
}

// ---- Inverse hyperbolic functions ----

constexpr float kBig = 0x1p60f, kShrink = 0x1p-32f;  // beyond kBig the 1 is negligible, and squares might overflow
constexpr float kShrunkLn = 32 * kLn2;

// y (computed from a; a itself where it is big) becomes ln(1 + y), or ln a where a is big; infinite where a is.
void logarithm_or_big(VectorCode& c, const Vec& y, const Vec& a, const Mask& mask) {
  const VectorCode::Scope scope(c);
  const Vec t = c.temp();
  c->vmulps(t, a, c.f32(kShrink));
  c.compare(mask, Compare::greater, a, c.f32(kBig));
  c.select(y, mask, t, y);
  logarithm_of_one_more(c, y);
  c.set(t, kShrunkLn + kLn2);
  c.keep(t, mask, t);
  c->vaddps(y, y, t);
  c.set_u32(t, 0x7f800000);
  c.compare(mask, Compare::equal, a, t);
  c.select(y, mask, a, y);
}

// sign(x) ln(1 + y), y = a + a^2 / (1 + sqrt(a^2 + 1)), a = |x|
void inverse_hyperbolic_sine(VectorCode& c) {
  const Vec x = c.in(0), a = c.temp(), y = c.temp();
  const Mask mask = c.mask_temp();
  c->vandps(a, x, c.u32(~kSign32));
  {
    const VectorCode::Scope scope(c);
    const Vec square = c.temp();
    c->vmulps(square, a, a);
    c->vaddps(y, square, c.f32(1));
    c->vsqrtps(y, y);
    c->vaddps(y, y, c.f32(1));
    c->vdivps(y, square, y);
    c->vaddps(y, y, a);
  }
  logarithm_or_big(c, y, a, mask);
  c.join_sign(c.out(), y, x);
}

// ln(1 + y), y = t + sqrt(t^2 + 2 t), t = x - 1; NaN below 1.
void inverse_hyperbolic_cosine(VectorCode& c) {
  const Vec x = c.in(0), t = c.temp(), y = c.temp();
  const Mask mask = c.mask_temp();
  c->vsubps(t, x, c.f32(1));
  c->vaddps(y, t, t);
  c->vfmadd231ps(y, t, t);
  c->vsqrtps(y, y);
  c->vaddps(y, y, t);
  logarithm_or_big(c, y, x, mask);
  c.set(t, 1);
  c.compare(mask, Compare::less, x, t);
  c.set_u32(t, kNaN32);
  c.select(c.out(), mask, t, y);
}

// sign(x) ln(1 + y) / 2, y = 2 a / (1 - a), a = |x|; infinite at 1, NaN beyond.
void inverse_hyperbolic_tangent(VectorCode& c) {
  const Vec x = c.in(0), a = c.temp(), y = c.temp();
  const Mask mask = c.mask_temp();
  c->vandps(a, x, c.u32(~kSign32));
  c.set(y, 1);
  c->vsubps(y, y, a);
  c->vdivps(y, a, y);
  c->vaddps(y, y, y);
  logarithm_of_one_more(c, y);
  c->vmulps(y, y, c.f32(0.5f));
  const Vec t = c.temp();
  c.set(t, 1);
  c.compare(mask, Compare::greater, a, t);
  c.set_u32(t, kNaN32);
  c.select(y, mask, t, y);
  c.compare(mask, Compare::equal, a, c.f32(1));
  c.set_u32(t, 0x7f800000);
  c.select(y, mask, t, y);
  c.join_sign(c.out(), y, x);
}

constexpr RowPair kLogarithmRows[] = {
    {"Log",
     kF32Lanes,
     {.vectors = 5, .cycles = 14},
     {.vectors = 3, .masks = 1, .cycles = 9, .in_turn = 2},
     1,
     algorithm<logarithm>},
    {"Softplus",
     kF32Lanes,
     {.vectors = 5, .cycles = 16, .in_turn = 2},
     {.vectors = 5, .cycles = 17, .in_turn = 4},
     3.4,
     algorithm<softplus>},
    {"Asinh",
     kF32Lanes,
     {.vectors = 7, .cycles = 24},
     {.vectors = 6, .masks = 1, .cycles = 35, .in_turn = 2},
     2,
     algorithm<inverse_hyperbolic_sine>},
    {"Acosh",
     kF32Lanes,
     {.vectors = 7, .cycles = 23},
     {.vectors = 6, .masks = 1, .cycles = 26, .in_turn = 2},
     2.2,
     algorithm<inverse_hyperbolic_cosine>},
    {"Atanh",
     kF32Lanes,
     {.vectors = 6, .cycles = 20},
     {.vectors = 5, .masks = 1, .cycles = 25, .in_turn = 2},
     2.2,
     algorithm<inverse_hyperbolic_tangent>},
};

}  // namespace

Result<void> add_logarithm_rows(JitterTable& table) { return add_pairs(table, kLogarithmRows); }

}  // namespace tenon::x86
