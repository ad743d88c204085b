// e^x and ln x of f64. Models use f64 for its accuracy and on little data, so these are plain reductions and
// polynomials without tables. Polynomials: minimax, by the Remez algorithm.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

constexpr double kWideLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts: products of the first one with integers up to 2^11 are exact.
constexpr double kWideLn2High = 0x1.62e42fefa38p-1, kWideLn2Low = 0x1.ef35793c7673p-45;

}  // namespace

std::span<const double> wide_exponential_terms() {
  static constexpr double kTerms[] = {0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.5555555550885p-5,
                                      0x1.1111111127bdep-7,  0x1.6c16c18428117p-10, 0x1.a01a012a54325p-13,
                                      0x1.a0199a11e212ap-16, 0x1.71df25669dfc3p-19, 0x1.28ad6dc9b519ep-22,
                                      0x1.ad7f3d4d66f3ap-26};
  return kTerms;
}

void wide_polynomial(VectorCode& c, const Vec& out, const Vec& x, std::span<const double> terms) {
  c.set_u64(out, std::bit_cast<uint64_t>(terms.back()));
  for (size_t i = terms.size() - 1; i-- > 0;) c->vfmadd213pd(out, x, c.f64(terms[i]));
}

// avx2: by two factors, because 2^n itself may not be an f64 number.
void wide_scale(VectorCode& c, const Vec& out, const Vec& y, const Vec& n, const Vec& scratch) {
  if (c.avx512()) return c->vscalefpd(out, y, n);
  constexpr double kToBits = 0x1.8p52;  // after adding this, a number of less than 51 bits is in the low bits
  c->vmulpd(scratch, n, c.f64(0.5));
  c.round(scratch, scratch, Rounding::down);
  c->vsubpd(n, n, scratch);
  for (const Vec& part : {scratch, n}) {
    c->vaddpd(part, part, c.f64(kToBits));
    c->vpsllq(part, part, kMantissaBits64);
    c->vpaddq(part, part, c.u64(kOne64));
    c->vmulpd(y, y, part);
  }
  c.move(out, y);
}

namespace {

// n = x / ln 2 rounded, r = x - n ln 2, e^x = 2^n e^r.
void exponential(VectorCode& c) {
  constexpr double kZeroBelow = -750, kInfiniteFrom = 710;
  const Vec r = c.temp(), n = c.temp(), q = c.temp(), square = c.temp(), rest = c.temp();
  // The second operand is returned for NaN.
  c.set_u64(n, std::bit_cast<uint64_t>(kZeroBelow));
  c->vmaxpd(r, n, c.in(0));
  c.set_u64(n, std::bit_cast<uint64_t>(kInfiniteFrom));
  c->vminpd(r, n, r);
  c->vmulpd(n, r, c.f64(kWideLog2E));
  c.round(n, n, Rounding::nearest_even);
  c->vfnmadd231pd(r, n, c.f64(kWideLn2High));
  c->vfnmadd231pd(r, n, c.f64(kWideLn2Low));
  wide_polynomial(c, q, r, wide_exponential_terms());
  c->vmulpd(square, r, r);
  c->vmulpd(q, q, square);
  // 1 + r, and its rounding error.
  c->vaddpd(square, r, c.f64(1));
  c->vsubpd(rest, square, c.f64(1));
  c->vsubpd(rest, r, rest);
  c->vaddpd(q, q, rest);
  c->vaddpd(q, q, square);
  wide_scale(c, c.out(), q, n, square);
}

void split_avx512(VectorCode& c, const Vec& x, const Vec& f, const Vec& e, const Mask& below_one) {
  constexpr uint8_t kThreeQuarters = 3, kNaNBelowZero = 2 << 2;
  c->vgetexppd(e, x);
  c->vgetmantpd(f, x, kThreeQuarters | kNaNBelowZero);
  c.compare(below_one, Compare::less, f, c.f64(1));
  c->vaddpd(e | c.opmask(below_one), e, c.f64(1));
  c->vsubpd(f, f, c.f64(1));
}

// Denormals are multiplied by 2^54 first.
void split_avx2(VectorCode& c, const Vec& x, const Vec& f, const Vec& e, const Vec& t, const Mask& mask) {
  // 2^52 + 2^11 + k has k + 2^11 in its low bits: k in two's complement with the top bit flipped.
  constexpr uint64_t kBiasBits = 0x4330000000000800;
  constexpr double kBias = 0x1p52 + 0x1p11;
  c.compare(mask, Compare::less, x, c.f64(0x1p-1022));
  c->vmulpd(t, x, c.f64(0x1p54));
  c.select(f, mask, t, x);
  c->vpsubq(t, f, c.u64(kThreeQuarters64));
  c->vandpd(t, t, c.u64(kExponentMask64));
  c->vpsubq(f, f, t);
  c->vsubpd(f, f, c.f64(1));
  c->vpsrlq(t, t, kMantissaBits64);
  c->vpxor(t, t, c.u64(kBiasBits));
  c->vsubpd(e, t, c.f64(kBias));
  c->vandpd(t, c.vector(mask), c.f64(-54));
  c->vaddpd(e, e, t);
}

}  // namespace

void wide_split(VectorCode& c, const Vec& x, const Vec& f, const Vec& e, const Vec& scratch, const Mask& mask) {
  c.avx512() ? split_avx512(c, x, f, e, mask) : split_avx2(c, x, f, e, scratch, mask);
}

namespace {

// avx2: f = ln x for finite x above 0 becomes ln x for any x. Destroys t and u.
void finish_avx2(VectorCode& c, const Vec& f, const Vec& t, const Vec& u, const Mask& mask) {
  const Vec x = c.in(0);
  c.set_u64(t, kInfinity64);
  c.compare(mask, Compare::less, x, t);
  c.select(f, mask, f, x);
  c.set_u64(t, 0);
  c.compare(mask, Compare::less_equal, x, t);
  c->vcmppd(t, x, t, static_cast<uint8_t>(Compare::equal));
  c.set_u64(u, kNaN64);
  c.select(f, mask, u, f);
  c.set_u64(u, kMinusInfinity64);
  c->vblendvpd(f, f, u, t);
}

// ln(1 + f) = 2 atanh(s), s = f / (2 + f), and 2 s = f - s f, so that ln(1 + f) = f - (h - s (h + R)) with h = f^2 / 2
// and R = s^2 (2/3 + 2/5 s^2 ...), relative error below 2^-62: rounding errors are small compared to f.
void wide_logarithm(VectorCode& c) {
  constexpr double kTerms[] = {0x1.555555555554fp-1, 0x1.999999999c0f8p-2, 0x1.24924921ec07bp-2, 0x1.c71c7488dd4a5p-3,
                               0x1.745c4c79ffabbp-3, 0x1.3b358bca07134p-3, 0x1.0dcf1206e8925p-3, 0x1.1b69f7a9d2147p-3};
  const Vec f = c.temp(), e = c.temp(), s = c.temp(), square = c.temp(), sum = c.temp();
  const Mask mask = c.mask_temp();
  wide_split(c, c.in(0), f, e, s, mask);
  c->vaddpd(s, f, c.f64(2));
  c->vdivpd(s, f, s);
  c->vmulpd(square, s, s);
  wide_polynomial(c, sum, square, kTerms);
  c->vmulpd(sum, sum, square);
  c->vmulpd(square, f, f);
  c->vmulpd(square, square, c.f64(0.5));
  c->vaddpd(sum, sum, square);
  c->vmulpd(sum, sum, s);
  c->vfmadd231pd(sum, e, c.f64(kWideLn2Low));
  c->vsubpd(square, square, sum);
  c->vsubpd(square, square, f);
  c->vfmsub132pd(e, square, c.f64(kWideLn2High));
  if (!c.avx512()) finish_avx2(c, e, s, square, mask);
  c.move(c.out(), e);
}

constexpr RowPair kWideFunctionRows[] = {
    {"Exp",
     kF64Only,
     {.vectors = 5, .cycles = 28},
     {.vectors = 5, .cycles = 20, .in_turn = 2},
     1,
     algorithm<exponential>},
    {"Log",
     kF64Only,
     {.vectors = 6, .cycles = 44},
     {.vectors = 5, .masks = 1, .cycles = 32, .in_turn = 2},
     1,
     algorithm<wide_logarithm>},
};

}  // namespace

Result<void> add_wide_function_rows(JitterTable& table) { return add_pairs(table, kWideFunctionRows); }

}  // namespace tenon::x86
