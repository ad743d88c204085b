// Sine, cosine, tangent and their inverses. Polynomials: minimax, by Sollya's fpminimax. Arguments are reduced by three
// floats of pi / 2 up to kNear, beyond that exactly (Payne and Hanek).
#include <array>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using namespace Xbyak::util;

constexpr int kSlot = 64;  // bytes of a vector on the stack
constexpr float kHalfPi = 0x1.921fb6p0f;
// pi / 2 as a sum; all parts are positive, so that -0 is kept.
constexpr float kHalfPiParts[] = {0x1.921fb4p0f, 0x1.4442dp-24f, 0x1.846988p-48f};
// Up to here the product n pi / 2 as a sum of three floats is accurate enough.
constexpr float kNear = 100000;

// 2 / pi after 32 zero bits, upper bits first in memory.
constexpr uint32_t kTwoOverPi[] = {0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                   0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
constexpr auto kTwoOverPiBytes = [] {
  std::array<uint32_t, std::size(kTwoOverPi)> swapped{};
  for (size_t i = 0; i < swapped.size(); ++i) swapped[i] = __builtin_bswap32(kTwoOverPi[i]);
  return swapped;
}();

// Reduces one lane beyond kNear. rax: the bits of x, r8: the lane, rsi: the table; [rsp]: the quadrants, [rsp + kSlot]:
// the remainders. x = m 2^e with m of 24 bits. Only bits of 2 / pi whose product with x is worth less than 4 matter,
// 128 of them. The product has the quadrant in its upper 2 bits, followed by the remainder (Payne and Hanek, "Radian
// reduction for trigonometric functions", 1983).
void reduce_far_lane(VectorCode& c, const Vec& number) {
  constexpr int kSkipped = 127 + 23 + 2 - 32;  // bits before the window, minus the exponent field
  Xbyak::Label positive;
  c->mov(edx, eax);
  c->and_(edx, 0x7fffff);
  c->or_(edx, 0x800000);
  c->mov(ecx, eax);
  c->shr(ecx, 23);
  c->and_(ecx, 0xff);
  c->sub(ecx, kSkipped);
  c->mov(r9d, ecx);
  c->shr(r9d, 3);
  c->and_(ecx, 7);
  c->mov(r10, ptr[rsi + r9]);
  c->mov(r11, ptr[rsi + r9 + 8]);
  c->bswap(r10);
  c->bswap(r11);
  c->shld(r10, r11, cl);
  c->shl(r11, cl);
  c->imul(r10, rdx);
  c->mulx(r11, r9, r11);
  c->add(r10, r11);
  c->test(eax, eax);
  c->jns(positive);
  c->neg(r10);
  c->L(positive);
  c->lea(rax, ptr[r10 * 4]);
  c->vcvtsi2sd(number, number, rax);
  c->vmulsd(number, number, c.context().constant_address(kF64, std::bit_cast<uint64_t>(0x1.921fb54442d18p-64)));
  c->vcvtsd2ss(number, number, number);
  c->vmovss(dword[rsp + r8 * 4 + kSlot], number);
  c->mov(rax, uint64_t{1} << 61);
  c->add(r10, rax);
  c->shr(r10, 62);
  c->mov(dword[rsp + r8 * 4], r10d);
}

// Recomputes the lanes of x beyond kNear one by one.
void reduce_far_lanes(VectorCode& c, const Vec& quadrant, const Vec& rest, const Vec& x, const Vec& scratch) {
  const std::array saved{rcx, rdx, rsi, r8, r9, r10, r11};
  Xbyak::Label next, skip;
  for (const Xbyak::Reg64& general : saved) c->push(general);
  c->sub(rsp, 3 * kSlot);
  c->vmovups(ptr[rsp], quadrant);
  c->vmovups(ptr[rsp + kSlot], rest);
  c->vmovups(ptr[rsp + 2 * kSlot], x);
  c->lea(rsi, c.context().table(kTwoOverPiBytes));
  c->mov(r8d, c.lanes() - 1);
  c->L(next);
  c->mov(eax, dword[rsp + r8 * 4 + 2 * kSlot]);
  c->mov(edx, eax);
  c->and_(edx, ~kSign32);
  c->sub(edx, std::bit_cast<uint32_t>(kNear));
  c->cmp(edx, 0x7f800000 - std::bit_cast<uint32_t>(kNear));
  c->jae(skip);  // within kNear, or infinite
  reduce_far_lane(c, VectorCode::at(scratch, 128));
  c->L(skip);
  c->dec(r8d);
  c->jns(next);
  c->vmovups(quadrant, ptr[rsp]);
  c->vmovups(rest, ptr[rsp + kSlot]);
  c->add(rsp, 3 * kSlot);
  for (size_t i = saved.size(); i-- > 0;) c->pop(saved[i]);
}

// n = round(x 2 / pi): its low bits in `quadrant`; rest = x - n pi / 2. Destroys `scratch`.
void reduce_quarter_turns(VectorCode& c, const Vec& quadrant, const Vec& rest, const Vec& x, const Vec& scratch) {
  constexpr float kRound = 0x1.8p23f, kTwoOverPiFloat = 0x1.45f306p-1f;
  Xbyak::Label near;
  c.set(quadrant, kRound);
  c->vfmadd231ps(quadrant, x, c.f32(kTwoOverPiFloat));
  c->vsubps(scratch, quadrant, c.f32(kRound));
  c.move(rest, x);
  for (const float part : kHalfPiParts) c->vfnmadd231ps(rest, scratch, c.f32(part));
  c->vandps(scratch, x, c.u32(~kSign32));
  if (c.avx512()) {
    c->vcmpps(c->k0, scratch, c.f32(kNear), static_cast<uint8_t>(Compare::greater));
    c->kortestw(c->k0, c->k0);
  } else {
    c->vcmpps(scratch, scratch, c.f32(kNear), static_cast<uint8_t>(Compare::greater));
    c->vtestps(scratch, scratch);
  }
  c->jz(near);
  reduce_far_lanes(c, quadrant, rest, x, scratch);
  c->L(near);
}

struct SineCosine {
  Vec quadrant, sine, cosine;
};

// Of the remainder; six scratch vectors, three of which stay in use.
SineCosine sine_and_cosine(VectorCode& c, const Vec& x) {
  constexpr float kSine[] = {1, -0x1.555556p-3f, 0x1.111198p-7f, -0x1.a08312p-13f, 0x1.877536p-19f};
  constexpr float kCosine[] = {1, -0.5f, 0x1.555554p-5f, -0x1.6c129cp-10f, 0x1.9bc614p-16f};
  const SineCosine made{c.temp(), c.temp(), c.temp()};
  const VectorCode::Scope scope(c);
  const Vec rest = c.temp(), square = c.temp();
  reduce_quarter_turns(c, made.quadrant, rest, x, square);
  c->vmulps(square, rest, rest);
  c.polynomial(made.sine, square, kSine);
  c.polynomial(made.cosine, square, kCosine);
  c->vmulps(made.sine, made.sine, rest);  // keeps -0
  return made;
}

// Quadrants 1 and 3 use the other function, 2 and 3 the other sign. Cosine is sine one quadrant later.
template <bool kCosine>
void sine(VectorCode& c) {
  const SineCosine of = sine_and_cosine(c, c.in(0));
  if (kCosine) c->vpaddd(of.quadrant, of.quadrant, c.u32(1));
  const Vec odd = c.temp();
  c->vpslld(odd, of.quadrant, 31);
  c.select(of.sine, c.negative(c.avx512() ? c.mask_temp() : Mask{}, odd), of.cosine, of.sine);
  c->vpsrld(of.quadrant, of.quadrant, 1);
  c->vpslld(of.quadrant, of.quadrant, 31);
  c->vxorps(c.out(), of.sine, of.quadrant);
}

// Odd quadrants: -cos / sin.
void tangent(VectorCode& c) {
  const SineCosine of = sine_and_cosine(c, c.in(0));
  const Vec above = c.temp();
  c->vpslld(of.quadrant, of.quadrant, 31);
  const Mask odd = c.negative(c.avx512() ? c.mask_temp() : Mask{}, of.quadrant);
  c.select(above, odd, of.cosine, of.sine);
  c.select(of.cosine, odd, of.sine, of.cosine);
  c->vdivps(above, above, of.cosine);
  c->vxorps(c.out(), above, of.quadrant);
}

// ---- Inverses ----

// p = asin(s) for s = a up to 1/2, or s = sqrt((1 - a) / 2), where asin(a) = pi / 2 - 2 p; big: a > 1/2.
// asin(s) = s + s t P(t), t = s^2. a is destroyed.
void arc_sine_part(VectorCode& c, const Vec& p, const Mask& big, const Vec& a) {
  constexpr float kTerms[] = {0x1.555554p-3f, 0x1.3334cep-4f, 0x1.6d3e5ep-5f,
                              0x1.ffc14p-6f,  0x1.0fd41cp-6f, 0x1.1ad9a2p-5f};
  const VectorCode::Scope scope(c);
  const Vec t = c.temp(), square = c.temp();
  c.compare(big, Compare::greater, a, c.f32(0.5f));
  c->vmulps(square, a, a);
  c.set(t, 0.5f);
  c->vfnmadd231ps(t, a, c.f32(0.5f));
  c.select(t, big, t, square);
  c->vsqrtps(square, t);
  c.select(a, big, square, a);
  c.polynomial(p, t, kTerms);
  c->vmulps(p, p, t);
  c->vfmadd213ps(p, a, a);
}

void arc_sine(VectorCode& c) {
  const Vec x = c.in(0), a = c.temp(), p = c.temp();
  const Mask big = c.mask_temp();
  c->vandps(a, x, c.u32(~kSign32));
  arc_sine_part(c, p, big, a);
  c.set(a, kHalfPi);
  c->vfnmadd231ps(a, p, c.f32(2));
  c.select(p, big, a, p);
  c.join_sign(c.out(), p, x);
}

// pi / 2 - asin(x); where |x| is big: 2 p, or pi - 2 p for negative x.
void arc_cosine(VectorCode& c) {
  constexpr float kPi = 2 * kHalfPi;
  const Vec x = c.in(0), a = c.temp(), p = c.temp(), t = c.temp();
  const Mask mask = c.mask_temp();
  c->vandps(a, x, c.u32(~kSign32));
  arc_sine_part(c, p, mask, a);
  c->vandps(t, x, c.u32(kSign32));
  c->vxorps(p, p, t);  // with the sign of x
  c.set(a, kHalfPi);
  c->vsubps(t, a, p);
  c->vaddps(p, p, p);
  c.set(a, kPi);
  c->vaddps(a, a, p);
  {
    const VectorCode::Scope scope(c);
    const Mask negative = c.negative(c.avx512() ? c.mask_temp() : Mask{}, x);
    c.select(p, negative, a, p);
  }
  c.select(c.out(), mask, p, t);
}

// atan(a) = pi / 2 - atan(1 / a) above 1; t + t^3 P(t^2) up to 1.
void arc_tangent(VectorCode& c) {
  constexpr float kTerms[] = {-0x1.555554p-2f, 0x1.99984cp-3f,  -0x1.246f74p-3f, 0x1.c423eep-4f, -0x1.636df2p-4f,
                              0x1.01e514p-4f,  -0x1.2a759ap-5f, 0x1.c62ea6p-7f,  -0x1.449a16p-9f};
  const Vec x = c.in(0), a = c.temp(), t = c.temp(), p = c.temp();
  const Mask big = c.mask_temp();
  c->vandps(a, x, c.u32(~kSign32));
  c.set(t, 1);
  c.compare(big, Compare::greater, a, t);
  c.select(p, big, a, t);
  c.select(t, big, t, a);
  c->vdivps(t, t, p);
  c->vmulps(a, t, t);
  c.polynomial(p, a, kTerms);
  c->vmulps(p, p, a);
  c->vfmadd213ps(p, t, t);
  c.set(a, kHalfPi);
  c->vsubps(a, a, p);
  c.select(p, big, a, p);
  c.join_sign(c.out(), p, x);
}

constexpr RowPair kTrigonometricRows[] = {
    {"Sin",
     kF32Lanes,
     {.vectors = 5, .cycles = 11},
     {.vectors = 5, .masks = 1, .cycles = 14},
     2,
     algorithm<sine<false>>},
    {"Cos",
     kF32Lanes,
     {.vectors = 5, .cycles = 11},
     {.vectors = 5, .masks = 1, .cycles = 14},
     2,
     algorithm<sine<true>>},
    {"Tan", kF32Lanes, {.vectors = 5, .cycles = 12}, {.vectors = 5, .masks = 1, .cycles = 18}, 3.6, algorithm<tangent>},
    {"Asin",
     kF32Lanes,
     {.vectors = 5, .cycles = 10},
     {.vectors = 4, .masks = 1, .cycles = 13, .in_turn = 2},
     2.3,
     algorithm<arc_sine>},
    {"Acos",
     kF32Lanes,
     {.vectors = 6, .cycles = 13},
     {.vectors = 5, .masks = 2, .cycles = 15, .in_turn = 2},
     1.5,
     algorithm<arc_cosine>},
    {"Atan",
     kF32Lanes,
     {.vectors = 5, .cycles = 13, .in_turn = 2},
     {.vectors = 3, .masks = 1, .cycles = 16, .in_turn = 2},
     2,
     algorithm<arc_tangent>},
};

}  // namespace

Result<void> add_trigonometric_rows(JitterTable& table) { return add_pairs(table, kTrigonometricRows); }

}  // namespace tenon::x86
