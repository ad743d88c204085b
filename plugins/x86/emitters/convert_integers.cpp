// Integers and booleans to all lane types, and floats to floats, like convert() of tensor/numeric.hpp: integers to
// floats are rounded once, to nearest even.
#include "x86/emitters/convert.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {

using namespace codegen;

void take_low_halves(VectorCode& c, const Vec& out, const Vec& in) {
  if (c.avx512()) return c->vpmovqd(out, in);
  c->vpermilps(in, in, 0x08);  // moves lanes 0 and 2 to the front of each half
  c->vpermq(Xbyak::Ymm(in.getIdx()), Xbyak::Ymm(in.getIdx()), 0x08);
  c.move(out, VectorCode::at(in, 128));
}

namespace {

constexpr double kTwo84 = 0x1p84;
constexpr uint64_t kTwo84Bits = 0x4530000000000000;

// ---- Integers to floats ----

// passes/narrow.cpp marks unsigned numbers that are below 2^31.
bool may_exceed_i32(const VectorCode& c) {
  return from_unsigned(c) && c.emission().attributes.find("fits_i32") == nullptr;
}

// avx2: upper half * 2^16 + lower half, rounded once by the fused multiply-add.
void i32_to_f32(VectorCode& c) {
  const Vec x = c.in(0);
  if (!may_exceed_i32(c)) return c->vcvtdq2ps(c.out(), x);
  if (c.avx512()) return c->vcvtudq2ps(c.out(), x);
  const Vec high = c.temp(), low = c.temp();
  c->vpsrld(high, x, 16);
  c->vandps(low, x, c.u32(0xffff));
  c->vcvtdq2ps(high, high);
  c->vcvtdq2ps(low, low);
  c->vfmadd132ps(high, low, c.f32(0x1p16f));
  c.move(c.out(), high);
}

void i32_to_f64(VectorCode& c) {
  const Vec x = c.in(0), y = c.out();
  if (!may_exceed_i32(c)) return c->vcvtdq2pd(y, x);
  if (c.avx512()) return c->vcvtudq2pd(y, x);
  c->vpmovzxdq(y, x);
  c->vorpd(y, y, c.u64(kTwo52Bits));
  c->vsubpd(y, y, c.f64(kTwo52));
}

}  // namespace

// avx2: each half becomes the low bits of a float with a bias of 2^52 or 2^84; the sum of both is rounded once. A
// signed upper half has a further bias of 2^31.
void wide_int_to_f64(VectorCode& c, const Vec& out, const Vec& x, bool is_unsigned) {
  if (c.avx512()) return is_unsigned ? c->vcvtuqq2pd(out, x) : c->vcvtqq2pd(out, x);
  const VectorCode::Scope scope(c);
  const Vec high = c.temp(256), low = c.temp(256);
  c->vpsrlq(high, x, 32);
  c->vxorpd(high, high, c.u64(is_unsigned ? kTwo84Bits : kTwo84Bits | uint64_t{1} << 31));
  c->vsubpd(high, high, c.f64(is_unsigned ? kTwo84 + kTwo52 : kTwo84 + kTwo63 + kTwo52));
  c->vmovapd(low, c.u64(kTwo52Bits));
  c->vpblendd(low, low, x, 0x55);
  c->vaddpd(out, high, low);
}

namespace {

void i64_to_f64(VectorCode& c) { wide_int_to_f64(c, c.out(), c.in(0), from_unsigned(c)); }

// avx2, by way of f64. Where f64 would round, beyond 2^53, the low 12 bits are replaced by 0x800 if they are not 0. The
// number is then exact in f64 and stays on the same side of the midpoint of two floats (as in odd_double() of
// tensor/numeric.hpp).
void i64_to_f32(VectorCode& c) {
  const Vec x = c.in(0);
  if (c.avx512()) return from_unsigned(c) ? c->vcvtuqq2ps(c.out(), x) : c->vcvtqq2ps(c.out(), x);
  constexpr uint64_t kLow12 = 0xfff, kExact = uint64_t{1} << 40, kSign = uint64_t{1} << 63;
  const Vec y = c.temp(), big = c.temp();
  c->vandpd(y, x, c.u64(kLow12));
  c->vpaddq(y, y, c.u64(kLow12));
  c->vandpd(y, y, c.u64(kLow12 + 1));  // 0x1000 if they are not 0
  c->vpsrlq(y, y, 1);
  c->vandpd(big, x, c.u64(~kLow12));
  c->vorpd(y, y, big);
  // |x| > 2^40, that is, x + 2^40 > 2^41 as an unsigned number.
  c->vmovapd(big, c.u64(from_unsigned(c) ? 0 : kExact));
  c->vpaddq(big, big, x);
  c->vxorpd(big, big, c.u64(kSign));
  {
    const VectorCode::Scope scope(c);
    const Vec limit = c.temp();
    c->vmovapd(limit, c.u64((2 * kExact) ^ kSign));
    c->vpcmpgtq(big, big, limit);
  }
  c->vblendvpd(y, x, y, big);
  wide_int_to_f64(c, y, y, from_unsigned(c));
  c->vcvtpd2ps(c.out(), y);
}

// ---- Integers to integers, floats to floats, booleans to numbers ----

void same_bits(VectorCode& c) { c.move(c.out(), c.in(0)); }

void widen_integer(VectorCode& c) {
  from_unsigned(c) ? c->vpmovzxdq(c.out(), c.in(0)) : c->vpmovsxdq(c.out(), c.in(0));
}

void narrow_integer(VectorCode& c) {
  if (c.avx512()) return c->vpmovqd(c.out(), c.in(0));
  const Vec x = c.temp(256);
  c.move(x, c.in(0));
  take_low_halves(c, c.out(), x);
}

void change_float(VectorCode& c) {
  c.emission().out[0].element == kF64 ? c->vcvtps2pd(c.out(), c.in(0)) : c->vcvtpd2ps(c.out(), c.in(0));
}

void boolean_to_number(VectorCode& c) {
  const ElementType to = c.element();
  const Mask truth = c.mask_in(0);
  const Vec one = c.temp();
  const uint64_t f64_one = 0x3ff0000000000000, f32_one = 0x3f800000;
  if (c.wide())
    c.set_u64(one, to == kF64 ? f64_one : 1);
  else
    c.set_u32(one, static_cast<uint32_t>(to == kF32 ? f32_one : 1));
  c.keep(c.out(), truth, one);
}

// ---- Rows ----

constexpr RowPair kConvertIntegerRows[] = {
    {"Convert",
     kNumberLanes,
     {.vectors = 2, .cycles = 3},
     {},
     0.5,
     algorithm<i32_to_f32>,
     between<&kInt32, &kF32Lanes>},
    {"Convert", kNumberLanes, {.cycles = 2}, {.cycles = 2}, 0, algorithm<i32_to_f64>, between<&kInt32, &kF64Only>},
    {"Convert", kNumberLanes, {.vectors = 2, .cycles = 3}, {}, 0.5, algorithm<i64_to_f64>, between<&kInt64, &kF64Only>},
    {"Convert",
     kNumberLanes,
     {.vectors = 4, .cycles = 8},
     {.cycles = 2},
     0.5,
     algorithm<i64_to_f32>,
     between<&kInt64, &kF32Lanes>},
    {"Convert", kInt32, {}, {}, 0, algorithm<same_bits>, between<&kInt32, &kInt32>},
    {"Convert", kInt64, {}, {}, 0, algorithm<same_bits>, between<&kInt64, &kInt64>},
    {"Convert", kIntLanes, {}, {}, 0, algorithm<widen_integer>, between<&kInt32, &kInt64>},
    {"Convert", kIntLanes, {.vectors = 1, .cycles = 2}, {}, 0, algorithm<narrow_integer>, between<&kInt64, &kInt32>},
    {"Convert",
     kFloatLanes,
     {.cycles = 2},
     {.cycles = 2},
     0.5,
     algorithm<change_float>,
     between<&kFloatLanes, &kFloatLanes>},
    {"Convert",
     kNumberLanes,
     {.vectors = 2},
     {.vectors = 1},
     0,
     algorithm<boolean_to_number>,
     between<&kBoolLanes, &kNumberLanes>},
};

}  // namespace

Result<void> add_convert_integer_rows(JitterTable& table) { return add_pairs(table, kConvertIntegerRows); }

}  // namespace tenon::x86
