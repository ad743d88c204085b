// Quotients and remainders of integers by quotients of floats, because vector units have no integer division.
//
// As long as |a| fits the mantissa of p bits, the rounded quotient a / b is on the same side of each integer as the
// exact one: an exact quotient that is not an integer differs from any integer by at least 1 / |b|, and rounding moves
// it by less than |a / b| 2^-p. So f64 divides 32-bit integers exactly, and f32 those of 24 bits. 64-bit integers take
// two such quotients, the second of the remainder of the first, and a correction by one.
//
// A divisor of 0 gives 0; quotients wrap around.
#include "x86/emitters/convert.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

enum class Part : uint8_t { quotient, remainder, modulus };  // modulus: the remainder with the sign of the divisor

bool is_signed(const VectorCode& c) { return c.element().is_signed_int(); }

// ---- Corrections of results, in lanes of either width ----

// out = the sign bit, copied to all bits of each lane. Registers differ.
void smear_sign(VectorCode& c, const Vec& out, const Vec& x) {
  if (!c.wide()) return c->vpsrad(out, x, 31);
  if (c.avx512()) return c->vpsraq(out, x, 63);
  c->vxorpd(out, out, out);
  c->vpcmpgtq(out, out, x);
}
void add_integers(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  c.wide() ? c->vpaddq(out, a, b) : c->vpaddd(out, a, b);
}
void subtract_integers(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  c.wide() ? c->vpsubq(out, a, b) : c->vpsubd(out, a, b);
}

// out = all ones where r is not 0 and its sign differs from that of x, else 0; r | -r is negative unless r is 0.
void differs_in_sign(VectorCode& c, const Vec& out, const Vec& r, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec t = c.temp();
  c->vxorpd(t, t, t);
  subtract_integers(c, t, t, r);
  c->vorpd(t, t, r);
  c->vxorpd(out, r, x);
  c->vandpd(t, t, out);
  smear_sign(c, out, t);
}

// Turns the remainder r into the modulus: adds the divisor where its sign differs.
void add_divisor(VectorCode& c, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec other = c.temp();
  differs_in_sign(c, other, r, c.in(1));
  c->vandpd(other, other, c.in(1));
  add_integers(c, r, r, other);
}

// r = 0 where the divisor is 0.
void zero_by_zero(VectorCode& c, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec b = c.in(1);
  if (c.avx512()) {
    const Mask some = c.mask_temp();
    c.wide() ? c->vptestmq(c.opmask(some), b, b) : c->vptestmd(c.opmask(some), b, b);
    return c.keep(c.out(), some, r);
  }
  const Vec zero = c.temp();
  c->vpxor(zero, zero, zero);
  c.wide() ? c->vpcmpeqq(zero, zero, b) : c->vpcmpeqd(zero, zero, b);
  c->vpandn(c.out(), zero, r);
}

// ---- 32 bits, in f32 ----

// r = quotients or remainders of operands that fit 24 bits.
template <Part kPart>
void divide_narrow(VectorCode& c, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec b = c.temp(), t = c.temp();
  c->vcvtdq2ps(r, c.in(0));
  c->vcvtdq2ps(b, c.in(1));
  c->vdivps(t, r, b);
  if (kPart == Part::quotient) return c->vcvttps2dq(r, t);
  constexpr uint8_t kToZero = static_cast<uint8_t>(Rounding::to_zero);
  c.avx512() ? c->vrndscaleps(t, t, kToZero) : c->vroundps(t, t, kToZero);
  c->vfnmadd231ps(r, t, b);
  c->vcvttps2dq(r, r);
}

// ---- 32 bits, in f64 ----

// out = x in f64; x has half the width.
void to_f64(VectorCode& c, const Vec& out, const Vec& x) {
  if (is_signed(c)) return c->vcvtdq2pd(out, x);
  if (c.avx512()) return c->vcvtudq2pd(out, x);
  c->vpmovzxdq(out, x);
  c->vorpd(out, out, c.u64(kTwo52Bits));
  c->vsubpd(out, out, c.f64(kTwo52));
}

// out = t / b, truncated; out has half the width. Destroys t.
void quotient_of_f64(VectorCode& c, const Vec& out, const Vec& t, const Vec& b) {
  c->vdivpd(t, t, b);
  if (is_signed(c)) return c->vcvttpd2dq(out, t);
  if (c.avx512()) return c->vcvttpd2udq(out, t);
  c->vroundpd(t, t, static_cast<uint8_t>(Rounding::to_zero));
  c->vaddpd(t, t, c.f64(kTwo52));  // moves the quotient to the low half
  take_low_halves(c, out, t);
}

// q = quotients. A vector of f64 holds all lanes, or half of them.
void quotients(VectorCode& c, const Vec& q) {
  const VectorCode::Scope scope(c);
  const int bits = vector_bits(c.avx512() ? Isa::avx512 : Isa::avx2), half = bits / 2;
  const int lanes_bits = c.lanes() * c.element().bits();
  const Vec t = c.temp(bits), u = c.temp(bits), lower = VectorCode::at(t, half);
  const auto low = [&](const Vec& x) { return VectorCode::at(x, half); };
  to_f64(c, t, low(c.in(0)));
  to_f64(c, u, low(c.in(1)));
  quotient_of_f64(c, low(q), t, u);
  if (lanes_bits == half) return;
  const auto upper = [&](const Vec& out, const Vec& x) {
    c.avx512() ? c->vextracti64x4(Xbyak::Ymm(out.getIdx()), Xbyak::Zmm(x.getIdx()), 1)
               : c->vextracti128(Xbyak::Xmm(out.getIdx()), Xbyak::Ymm(x.getIdx()), 1);
    to_f64(c, out, low(out));
  };
  upper(t, c.in(0));
  upper(u, c.in(1));
  quotient_of_f64(c, lower, t, u);
  const Xbyak::Zmm q512(q.getIdx());
  const Xbyak::Ymm q256(q.getIdx());
  c.avx512() ? c->vinserti64x4(q512, q512, Xbyak::Ymm(t.getIdx()), 1)
             : c->vinserti128(q256, q256, Xbyak::Xmm(t.getIdx()), 1);
}

template <Part kPart>
void divide(VectorCode& c) {
  const Vec r = c.temp();
  if (c.emission().attributes.find("fits_24_bits")) {
    divide_narrow<kPart>(c, r);
  } else {
    quotients(c, r);
    if (kPart != Part::quotient) {
      c->vpmulld(r, r, c.in(1));
      c->vpsubd(r, c.in(0), r);
    }
  }
  if (kPart == Part::modulus && is_signed(c)) add_divisor(c, r);
  zero_by_zero(c, r);
}

// ---- 64 bits ----

// out = t / u, truncated, modulo 2^64; `whole`: it may be negative. Destroys t.
void wide_quotient(VectorCode& c, const Vec& out, const Vec& t, const Vec& u, bool whole) {
  c->vdivpd(t, t, u);
  if (c.avx512()) return whole ? c->vcvttpd2qq(out, t) : c->vcvttpd2uqq(out, t);
  c.round(t, t, Rounding::to_zero);
  whole_to_64(c, out, t);
}

// q, r: a = q b + r, possibly off by one. Rounding is monotonic, so the second quotient is never too small: either r
// has the sign of a and is less than b, or it is too small by b once. The operand of the second quotient fits 63 bits
// and a sign, except for unsigned divisors from 2^63 on.
void divide_twice(VectorCode& c, const Vec& q, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec a = c.in(0), b = c.in(1), t = c.temp(), u = c.temp();
  wide_int_to_f64(c, t, a, !is_signed(c));
  wide_int_to_f64(c, u, b, !is_signed(c));
  wide_quotient(c, q, t, u, is_signed(c));
  multiply_64(c, r, q, b);
  c->vpsubq(r, a, r);
  wide_int_to_f64(c, t, r, false);
  wide_quotient(c, u, t, u, true);
  c->vpaddq(q, q, u);
  multiply_64(c, u, u, b);
  c->vpsubq(r, r, u);
}

// For signed operands: where r does not have the sign of a, the quotient moves by one towards 0.
void step_signed(VectorCode& c, const Vec& q, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec a = c.in(0), b = c.in(1), wrong = c.temp(), unlike = c.temp(), t = c.temp();
  differs_in_sign(c, wrong, r, a);
  c->vxorpd(t, a, b);
  smear_sign(c, unlike, t);
  c->vxorpd(t, b, unlike);
  c->vpsubq(t, t, unlike);  // b with the sign of a
  c->vandpd(t, t, wrong);
  c->vpaddq(r, r, t);
  c->vpaddq(q, q, wrong);
  c->vandpd(t, wrong, unlike);
  c->vpaddq(t, t, t);
  c->vpsubq(q, q, t);
}

// For unsigned operands: likewise where r is negative. For divisors from 2^63 on, the quotient is 1 where a >= b (the
// sign bit of a is set and that of a - b is clear), else 0.
void step_unsigned(VectorCode& c, const Vec& q, const Vec& r) {
  const VectorCode::Scope scope(c);
  const Vec a = c.in(0), b = c.in(1), all = c.temp(), t = c.temp();
  smear_sign(c, all, r);
  c->vpaddq(q, q, all);
  c->vandpd(t, all, b);
  c->vpaddq(r, r, t);
  const Mask large = c.negative(c.avx512() ? c.mask_temp() : Mask{}, b);
  c->vpsubq(t, a, b);
  c->vandnpd(t, t, a);
  smear_sign(c, all, t);
  c->vandpd(t, all, b);
  c->vpsubq(t, a, t);
  c.select(r, large, t, r);
  c->vxorpd(t, t, t);
  c->vpsubq(t, t, all);
  c.select(q, large, t, q);
}

template <Part kPart>
void divide_wide(VectorCode& c) {
  const Vec q = c.temp(), r = c.temp();
  divide_twice(c, q, r);
  is_signed(c) ? step_signed(c, q, r) : step_unsigned(c, q, r);
  if (kPart == Part::modulus && is_signed(c)) add_divisor(c, r);
  zero_by_zero(c, kPart == Part::quotient ? q : r);
}

// ---- Rows ----

constexpr Cost kNarrow2{.vectors = 3, .cycles = 24}, kNarrow512{.vectors = 3, .masks = 1, .cycles = 24};
constexpr Cost kWide2{.vectors = 6, .cycles = 44}, kWide512{.vectors = 6, .masks = 1, .cycles = 40};

constexpr RowPair kIntegerDivisionRows[] = {
    {"Div", kInt32, kNarrow2, kNarrow512, 0, algorithm<divide<Part::quotient>>},
    {"Fmod", kInt32, kNarrow2, kNarrow512, 0, algorithm<divide<Part::remainder>>},
    {"Mod", kInt32, kNarrow2, kNarrow512, 0, algorithm<divide<Part::modulus>>},
    {"Div", kInt64, kWide2, kWide512, 0, algorithm<divide_wide<Part::quotient>>},
    {"Fmod", kInt64, kWide2, kWide512, 0, algorithm<divide_wide<Part::remainder>>},
    {"Mod", kInt64, kWide2, kWide512, 0, algorithm<divide_wide<Part::modulus>>},
};

}  // namespace

Result<void> add_integer_division_rows(JitterTable& table) { return add_pairs(table, kIntegerDivisionRows); }

}  // namespace tenon::x86
