// Arithmetic for which the instruction sets have one instruction, or almost.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {

// avx2: a b = low(a) low(b) + 2^32 (low(a) high(b) + high(a) low(b)) modulo 2^64.
void multiply_64(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  if (c.avx512()) return c->vpmullq(out, a, b);
  const VectorCode::Scope scope(c);
  const Vec cross = c.temp(), other = c.temp();
  c->vpshufd(cross, b, 0xb1);
  c->vpmulld(cross, cross, a);
  c->vpsrlq(other, cross, 32);
  c->vpaddd(cross, cross, other);
  c->vpsllq(cross, cross, 32);
  c->vpmuludq(other, a, b);
  c->vpaddq(out, cross, other);
}

namespace {

using namespace codegen;

void add(VectorCode& c) {
  const Vec y = c.out(), a = c.in(0), b = c.in(1);
  if (c.is(kF32)) return c->vaddps(y, a, b);
  if (c.is(kF64)) return c->vaddpd(y, a, b);
  c.wide() ? c->vpaddq(y, a, b) : c->vpaddd(y, a, b);
}

void subtract(VectorCode& c) {
  const Vec y = c.out(), a = c.in(0), b = c.in(1);
  if (c.is(kF32)) return c->vsubps(y, a, b);
  if (c.is(kF64)) return c->vsubpd(y, a, b);
  c.wide() ? c->vpsubq(y, a, b) : c->vpsubd(y, a, b);
}

void multiply_integers_64(VectorCode& c) { multiply_64(c, c.out(), c.in(0), c.in(1)); }

void multiply(VectorCode& c) {
  if (c.is(kF32)) return c->vmulps(c.out(), c.in(0), c.in(1));
  if (c.is(kF64)) return c->vmulpd(c.out(), c.in(0), c.in(1));
  c->vpmulld(c.out(), c.in(0), c.in(1));
}

void divide(VectorCode& c) { c.wide() ? c->vdivpd(c.out(), c.in(0), c.in(1)) : c->vdivps(c.out(), c.in(0), c.in(1)); }

// a b + c, rounded once. The instructions overwrite the addend or a factor, so the form depends on the result register.
void multiply_add(VectorCode& c) {
  const Vec y = c.out(), a = c.in(0), b = c.in(1), addend = c.in(2);
  if (y.getIdx() == addend.getIdx()) return c.wide() ? c->vfmadd231pd(y, a, b) : c->vfmadd231ps(y, a, b);
  const bool second = y.getIdx() == b.getIdx();
  const Vec& factor = second ? a : b;
  if (!second) c.move(y, a);
  c.wide() ? c->vfmadd213pd(y, factor, addend) : c->vfmadd213ps(y, factor, addend);
}

void negate(VectorCode& c) {
  if (c.is(kF32)) return c->vxorps(c.out(), c.in(0), c.u32(kSign32));
  if (c.is(kF64)) return c->vxorpd(c.out(), c.in(0), c.u64(kSign64));
  const Vec zero = c.temp();
  c.set(zero, 0);
  c.wide() ? c->vpsubq(c.out(), zero, c.in(0)) : c->vpsubd(c.out(), zero, c.in(0));
}

// avx2 has no 64-bit instruction: (x ^ s) - s with s = x < 0 ? -1 : 0.
void absolute_64(VectorCode& c) {
  if (c.avx512()) return c->vpabsq(c.out(), c.in(0));
  const Vec sign = c.temp(), flipped = c.temp();
  c.set(sign, 0);
  c->vpcmpgtq(sign, sign, c.in(0));
  c->vpxor(flipped, sign, c.in(0));
  c->vpsubq(c.out(), flipped, sign);
}

void absolute(VectorCode& c) {
  if (c.is(kF32)) return c->vandps(c.out(), c.in(0), c.u32(~kSign32));
  if (c.is(kF64)) return c->vandpd(c.out(), c.in(0), c.u64(~kSign64));
  c->vpabsd(c.out(), c.in(0));
}

void negate_magnitude(VectorCode& c) { c->vorps(c.out(), c.in(0), c.u32(kSign32)); }

void square_root(VectorCode& c) { c.wide() ? c->vsqrtpd(c.out(), c.in(0)) : c->vsqrtps(c.out(), c.in(0)); }

template <Rounding kMode>
void round_to_integer(VectorCode& c) {
  c.round(c.out(), c.in(0), kMode);
}

constexpr LaneTypes kSigned32{kI32}, kF32Only = kF32Lanes;

constexpr RowPair kArithmeticRows[] = {
    {"Add", kNumberLanes, {}, {}, 0.5, algorithm<add>},
    {"Sub", kNumberLanes, {}, {}, 0.5, algorithm<subtract>},
    {"Mul", kFloatLanes | kInt32, {}, {}, 0.5, algorithm<multiply>},
    {"Mul", kInt64, {.vectors = 2, .cycles = 5}, {.cycles = 3}, 0, algorithm<multiply_integers_64>},
    {"Div", kF32Only, {.cycles = 5}, {.cycles = 8}, 0.5, algorithm<divide>},
    {"Div", kF64Only, {.cycles = 8}, {.cycles = 16}, 0.5, algorithm<divide>},
    {"Fma", kFloatLanes, {}, {}, 0.5, algorithm<multiply_add>},
    {"Neg", kFloatLanes, {}, {}, 0, algorithm<negate>},
    {"Neg", {kI32, kI64}, {.vectors = 1}, {.vectors = 1}, 0, algorithm<negate>},
    {"Abs", kFloatLanes | kSigned32, {}, {}, 0, algorithm<absolute>},
    {"Abs", {kI64}, {.vectors = 2, .cycles = 2}, {}, 0, algorithm<absolute_64>},
    {"NegAbs", kF32Only, {}, {}, 0, algorithm<negate_magnitude>},
    {"Sqrt", kF32Only, {.cycles = 6}, {.cycles = 10}, 0.5, algorithm<square_root>},
    {"Sqrt", kF64Only, {.cycles = 9}, {.cycles = 18}, 0.5, algorithm<square_root>},
    {"Floor", kFloatLanes, {}, {}, 0, algorithm<round_to_integer<Rounding::down>>},
    {"Ceil", kFloatLanes, {}, {}, 0, algorithm<round_to_integer<Rounding::up>>},
    {"Trunc", kFloatLanes, {}, {}, 0, algorithm<round_to_integer<Rounding::to_zero>>},
    {"RoundEven", kFloatLanes, {}, {}, 0, algorithm<round_to_integer<Rounding::nearest_even>>},
};

}  // namespace

Result<void> add_arithmetic_rows(JitterTable& table) { return add_pairs(table, kArithmeticRows); }

}  // namespace tenon::x86
