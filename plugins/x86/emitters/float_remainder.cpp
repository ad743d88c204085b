// Remainders of floats, exact.
//
// With t the quotient rounded to an integer, x - t y is a number of the type, so one fused multiply-add computes it
// exactly. Its sign tells whether t is too large. Quotients from 2^(p-1) on are integers and may have been rounded up;
// their remainder is at most 2^-p of x, and the same step is repeated on it. Quotients beyond the type's range are left
// to the x87 unit.
#include <limits>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using Xbyak::Label;
using namespace Xbyak::util;

constexpr int kArea = 64;  // bytes of a vector on the stack

// out = remainders, lane by lane (last first). Takes rax. fprem reduces the quotient by up to 63 bits at a time; C2,
// bit 10 of the status word, says that it has not finished.
void remainder_by_lanes(VectorCode& c, const Vec& out) {
  constexpr int kUnfinished = 1 << 10;
  const int bytes = c.element().bits() / 8;
  Label next, more;
  c->push(rcx);
  c->sub(rsp, 2 * kArea);
  c->vmovups(c->ptr[rsp], c.in(0));
  c->vmovups(c->ptr[rsp + kArea], c.in(1));
  c->mov(ecx, c.lanes() - 1);
  c->L(next);
  const Xbyak::RegExp lane = rsp + rcx * bytes;
  const Xbyak::Address left = c.wide() ? qword[lane] : dword[lane];
  c->fld(c.wide() ? qword[lane + kArea] : dword[lane + kArea]);
  c->fld(left);
  c->L(more);
  c->fprem();
  c->fnstsw(ax);
  c->test(eax, kUnfinished);
  c->jnz(more);
  c->fstp(left);
  c->fstp(st0);
  c->dec(ecx);
  c->jns(next);
  c->vmovups(out, c->ptr[rsp]);
  c->add(rsp, 2 * kArea);
  c->pop(rcx);
}

// ---- Steps by the lane's type ----

ConstantOperand number(VectorCode& c, double value) {
  return c.wide() ? c.f64(value) : c.f32(static_cast<float>(value));
}
// out = x & the bits of a number; memory may hold the constant once for all lanes.
void keep_bits(VectorCode& c, const Vec& out, const Vec& x, const ConstantOperand& bits) {
  c.wide() ? c->vandpd(out, x, bits) : c->vandps(out, x, bits);
}
ConstantOperand sign_bit(VectorCode& c) { return number(c, -0.0); }
ConstantOperand all_but_sign(VectorCode& c) { return c.wide() ? c.u64(~uint64_t{0} >> 1) : c.u32(~uint32_t{0} >> 1); }
// Quotients from here on are integers.
double first_whole(const VectorCode& c) { return c.wide() ? 0x1p52 : 0x1p23; }

void add(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  c.wide() ? c->vaddpd(out, a, b) : c->vaddps(out, a, b);
}
void divide(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  c.wide() ? c->vdivpd(out, a, b) : c->vdivps(out, a, b);
}
// t = a - t b
void subtract_product(VectorCode& c, const Vec& t, const Vec& b, const Vec& a) {
  c.wide() ? c->vfnmadd213pd(t, b, a) : c->vfnmadd213ps(t, b, a);
}
// r = r + b where r is below 0, but not -0. Destroys `sum`.
void add_below_zero(VectorCode& c, const Vec& r, const Vec& b, const Vec& sum, const Mask& mask) {
  c->vxorpd(sum, sum, sum);
  c.compare(mask, Compare::less, r, sum);
  add(c, sum, r, b);
  c.select(r, mask, sum, r);
}

void jump_if_any(VectorCode& c, const Mask& mask, const Label& to) {
  if (c.avx512())
    c->kortestw(c.opmask(mask), c.opmask(mask));
  else
    c->vtestps(c.vector(mask), c.vector(mask));
  c->jnz(to, Xbyak::CodeGenerator::T_NEAR);
}

// r = the remainder, with the sign of the dividend; r is not an operand's register. Takes rax.
void remainder(VectorCode& c, const Vec& r, const Mask& mask) {
  const VectorCode::Scope scope(c);
  const Vec b = c.temp(), flips = c.temp(), q = c.temp(), t = c.temp();
  Label again, by_lanes, done;
  keep_bits(c, r, c.in(0), all_but_sign(c));
  keep_bits(c, b, c.in(1), all_but_sign(c));
  c->vxorpd(flips, flips, flips);
  divide(c, q, r, b);
  c.compare(mask, Compare::equal, q, number(c, std::numeric_limits<double>::infinity()));
  jump_if_any(c, mask, by_lanes);

  // r = |r - t b|, and records whether it was negative. Lanes below b stay, which is also right where b is infinite.
  c->L(again);
  c.round(t, q, Rounding::to_zero);
  subtract_product(c, t, b, r);
  c.compare(mask, Compare::less, r, b);
  c.select(t, mask, r, t);
  c->vxorpd(flips, flips, t);
  keep_bits(c, r, t, all_but_sign(c));
  c.compare(mask, Compare::greater_equal, q, number(c, first_whole(c)));
  divide(c, q, r, b);
  jump_if_any(c, mask, again);

  keep_bits(c, flips, flips, sign_bit(c));
  c->vorpd(r, r, flips);
  add_below_zero(c, r, b, q, mask);
  keep_bits(c, r, r, all_but_sign(c));
  keep_bits(c, t, c.in(0), sign_bit(c));
  c->vorpd(r, r, t);
  c->jmp(done, Xbyak::CodeGenerator::T_NEAR);
  c->L(by_lanes);
  remainder_by_lanes(c, r);
  c->L(done);
}

void float_remainder(VectorCode& c) {
  const Vec r = c.temp();
  remainder(c, r, c.mask_temp());
  c.move(c.out(), r);
}

// With the sign of the divisor: the divisor is added where the remainder has the other sign and is not 0. The test and
// the sum work on values multiplied by the divisor's sign.
void float_modulus(VectorCode& c) {
  const Vec r = c.temp();
  const Mask mask = c.mask_temp();
  remainder(c, r, mask);
  const Vec b = c.temp(), sign = c.temp(), sum = c.temp();
  keep_bits(c, b, c.in(1), all_but_sign(c));
  keep_bits(c, sign, c.in(1), sign_bit(c));
  c->vxorpd(r, r, sign);
  add_below_zero(c, r, b, sum, mask);
  c->vxorpd(c.out(), r, sign);
}

constexpr RowPair kFloatRemainderRows[] = {
    {"Fmod",
     kFloatLanes,
     {.vectors = 6, .cycles = 24},
     {.vectors = 5, .masks = 1, .cycles = 24},
     0,
     algorithm<float_remainder>},
    {"Mod",
     kFloatLanes,
     {.vectors = 6, .cycles = 28},
     {.vectors = 5, .masks = 1, .cycles = 28},
     0.5,
     algorithm<float_modulus>},
};

}  // namespace

Result<void> add_float_remainder_rows(JitterTable& table) { return add_pairs(table, kFloatRemainderRows); }

}  // namespace tenon::x86
