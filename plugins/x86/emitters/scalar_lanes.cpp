// What vector units do not divide: quotients, remainders and powers of integers, and remainders of floats. Lane by lane
// in general registers and the x87 unit, exact.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using Xbyak::Label;
using Xbyak::Reg;
using namespace Xbyak::util;

constexpr int kArea = 64;  // bytes of a vector on the stack

// The registers of one lane's code, and where its operands are. The result goes to `left`.
struct Lane {
  Reg a, b, d;                // rax, rsi, rdx at the width of the lane; free
  Xbyak::RegExp left, right;  // of the operands
};

// Spills both operands, runs `body` for each lane (last first), and loads the result. General registers are restored.
template <class Body>
void for_each_lane(VectorCode& c, Body body) {
  const int bytes = c.element().bits() / 8;
  for (const Xbyak::Reg64& saved : {rcx, rdx, rsi}) c->push(saved);
  c->sub(rsp, 2 * kArea);
  c->vmovups(c->ptr[rsp], c.in(0));
  c->vmovups(c->ptr[rsp + kArea], c.in(1));
  c->mov(ecx, c.lanes() - 1);
  Label next;
  c->L(next);
  const Lane lane{c.wide() ? Reg(rax) : Reg(eax), c.wide() ? Reg(rsi) : Reg(esi), c.wide() ? Reg(rdx) : Reg(edx),
                  rsp + rcx * bytes, rsp + rcx * bytes + kArea};
  body(lane);
  c->dec(ecx);
  c->jns(next);
  c->vmovups(c.out(), c->ptr[rsp]);
  c->add(rsp, 2 * kArea);
  for (const Xbyak::Reg64& saved : {rsi, rdx, rcx}) c->pop(saved);
}

// ---- Integers ----

enum class Part : uint8_t { quotient, remainder, modulus };  // modulus: with the sign of the divisor

// 0 where b is 0. Division by -1 would trap at the least number: -a, 0.
template <Part kPart>
void divide_lane(VectorCode& c, const Lane& lane) {
  const bool is_signed = c.element().is_signed_int();
  Label by_zero, by_minus_one, done;
  c->mov(lane.a, c->ptr[lane.left]);
  c->mov(lane.b, c->ptr[lane.right]);
  c->xor_(edx, edx);
  c->test(lane.b, lane.b);
  c->jz(by_zero);
  if (is_signed) {
    c->cmp(lane.b, -1);
    c->je(by_minus_one);
    c.wide() ? c->cqo() : c->cdq();
    c->idiv(lane.b);
  } else {
    c->div(lane.b);
  }
  if (kPart == Part::modulus && is_signed) {
    c->test(lane.d, lane.d);
    c->jz(done);
    c->mov(lane.a, lane.d);
    c->xor_(lane.a, lane.b);
    c->jns(done);
    c->add(lane.d, lane.b);
  }
  c->jmp(done);
  c->L(by_minus_one);
  if (is_signed) c->neg(lane.a);
  c->jmp(done);
  c->L(by_zero);
  c->xor_(eax, eax);
  c->L(done);
  c->mov(c->ptr[lane.left], kPart == Part::quotient ? lane.a : lane.d);
}

template <Part kPart>
void divide(VectorCode& c) {
  for_each_lane(c, [&](const Lane& lane) { divide_lane<kPart>(c, lane); });
}

// By squaring. A negative exponent: 1 for 1, 1 or -1 for -1, else 0.
void power_lane(VectorCode& c, const Lane& lane) {
  Label loop, even, done, negative, units;
  c->mov(lane.a, c->ptr[lane.left]);
  c->mov(lane.b, c->ptr[lane.right]);
  c->mov(edx, 1);
  c->test(lane.b, lane.b);
  c->jz(done);
  if (c.element().is_signed_int()) c->js(negative);
  c->L(loop);
  c->test(lane.b, 1);
  c->jz(even);
  c->imul(lane.d, lane.a);
  c->L(even);
  c->imul(lane.a, lane.a);
  c->shr(lane.b, 1);
  c->jnz(loop);
  c->jmp(done);
  c->L(negative);
  c->cmp(lane.a, 1);
  c->je(done);
  c->cmp(lane.a, -1);
  c->je(units);
  c->xor_(edx, edx);
  c->jmp(done);
  c->L(units);
  c->test(lane.b, 1);
  c->jz(done);
  c->neg(lane.d);
  c->L(done);
  c->mov(c->ptr[lane.left], lane.d);
}

void power(VectorCode& c) {
  for_each_lane(c, [&](const Lane& lane) { power_lane(c, lane); });
}

// ---- Floats ----

// fprem takes up to 63 bits from the quotient at a time; C2, bit 10 of the status, says that there are more. All of it
// is exact.
void remainder_lane(VectorCode& c, const Lane& lane) {
  constexpr int kUnfinished = 1 << 10;
  Label more;
  const Xbyak::Address left = c.wide() ? qword[lane.left] : dword[lane.left];
  c->fld(c.wide() ? qword[lane.right] : dword[lane.right]);
  c->fld(left);
  c->L(more);
  c->fprem();
  c->fnstsw(ax);
  c->test(eax, kUnfinished);
  c->jnz(more);
  c->fstp(left);
  c->fstp(st0);
}

void float_remainder(VectorCode& c) {
  for_each_lane(c, [&](const Lane& lane) { remainder_lane(c, lane); });
}

// b is added where the remainder is not 0 and has the other sign.
void float_modulus(VectorCode& c) {
  const Vec sum = VectorCode::at(c.temp(), 128);
  for_each_lane(c, [&](const Lane& lane) {
    Label done;
    remainder_lane(c, lane);
    c->mov(lane.a, c->ptr[lane.left]);
    c->mov(lane.d, lane.a);
    c->xor_(lane.d, c->ptr[lane.right]);
    c->jns(done);
    c->add(lane.a, lane.a);  // without the sign
    c->jz(done);
    c.wide() ? c->vmovsd(sum, qword[lane.left]) : c->vmovss(sum, dword[lane.left]);
    c.wide() ? c->vaddsd(sum, sum, qword[lane.right]) : c->vaddss(sum, sum, dword[lane.right]);
    c.wide() ? c->vmovsd(qword[lane.left], sum) : c->vmovss(dword[lane.left], sum);
    c->L(done);
  });
}

constexpr LaneTypes kInt32{kI32, kU32}, kInt64{kI64, kU64};

constexpr RowPair kRows[] = {
    {"Div", kInt32, {.cycles = 80}, {.cycles = 160}, 0, algorithm<divide<Part::quotient>>},
    {"Div", kInt64, {.cycles = 50}, {.cycles = 100}, 0, algorithm<divide<Part::quotient>>},
    {"Fmod", kInt32, {.cycles = 80}, {.cycles = 160}, 0, algorithm<divide<Part::remainder>>},
    {"Fmod", kInt64, {.cycles = 50}, {.cycles = 100}, 0, algorithm<divide<Part::remainder>>},
    {"Mod", kInt32, {.cycles = 90}, {.cycles = 180}, 0, algorithm<divide<Part::modulus>>},
    {"Mod", kInt64, {.cycles = 60}, {.cycles = 120}, 0, algorithm<divide<Part::modulus>>},
    {"Pow", kInt32, {.cycles = 120}, {.cycles = 240}, 0, algorithm<power>},
    {"Pow", kInt64, {.cycles = 60}, {.cycles = 120}, 0, algorithm<power>},
    {"Fmod", kFloatLanes, {.cycles = 200}, {.cycles = 400}, 0, algorithm<float_remainder>},
    {"Mod", kFloatLanes, {.vectors = 1, .cycles = 220}, {.vectors = 1, .cycles = 440}, 0, algorithm<float_modulus>},
};

}  // namespace

Result<void> add_scalar_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
