// Between lane types, and to the values of narrower types that memory has. As convert() of tensor/numeric.hpp: floats
// to integers truncate and saturate, NaN becomes 0; integers to floats round once, to nearest even.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

constexpr double kTwo31 = 0x1p31, kTwo32 = 0x1p32, kTwo52 = 0x1p52, kTwo63 = 0x1p63, kTwo64 = 0x1p64, kTwo84 = 0x1p84;
constexpr uint64_t kTwo52Bits = 0x4330000000000000, kTwo84Bits = 0x4530000000000000;
constexpr auto kGreaterEqual = static_cast<uint8_t>(Compare::greater_equal), kOrdered = uint8_t{7};

bool to_unsigned(const VectorCode& c) { return c.emission().out[0].element.is_unsigned_int(); }
bool from_unsigned(const VectorCode& c) { return c.emission().in[0].element.is_unsigned_int(); }

// ---- Floats to 32-bit integers ----

// The machine gives 0x80000000 for what does not fit: its complement is right above, 0 for NaN.
void f32_to_i32(VectorCode& c) {
  const Vec x = c.in(0), y = c.temp();
  const Mask mask = c.mask_temp();
  c->vcvttps2dq(y, x);
  if (c.avx512()) {
    c->vcmpps(c.opmask(mask), x, c.f32(kTwo31), kGreaterEqual);
    c->vpternlogd(y | c.opmask(mask), y, y, 0x55);  // ~y
    c->vcmpps(c.opmask(mask), x, x, kOrdered);
    return c.keep(c.out(), mask, y);
  }
  c->vcmpps(c.vector(mask), x, c.f32(kTwo31), kGreaterEqual);
  c->vxorps(y, y, c.vector(mask));
  c->vcmpps(c.vector(mask), x, x, kOrdered);
  c.keep(c.out(), mask, y);
}

// max(x, 0) is 0 for NaN. avx2 converts x and x - 2^31, and joins them.
void f32_to_u32(VectorCode& c) {
  const Vec x = c.temp();
  c.set(x, 0);
  c->vmaxps(x, c.in(0), x);
  if (c.avx512()) return c->vcvttps2udq(c.out(), x);
  const Vec low = c.temp(), high = c.temp();
  c->vsubps(high, x, c.f32(kTwo31));
  c->vcvttps2dq(high, high);
  c->vcvttps2dq(low, x);
  c->vcmpps(x, x, c.f32(kTwo32), kGreaterEqual);
  c->vorps(x, x, low);
  c->vpsrad(low, low, 31);
  c->vandps(high, high, low);
  c->vorps(c.out(), x, high);
}

// out = x, 0 where it is NaN, between low and high; f64.
void clamp_number(VectorCode& c, const Vec& out, const Vec& x, double low, double high) {
  if (c.avx512()) {
    c->vcmppd(c->k0, x, x, kOrdered);
    c->vpmovm2q(out, c->k0);
  } else {
    c->vcmppd(out, x, x, kOrdered);
  }
  c->vandpd(out, out, x);
  c->vmaxpd(out, out, c.f64(low));
  c->vminpd(out, out, c.f64(high));
}

void f64_to_i32(VectorCode& c) {
  const Vec x = c.temp();
  clamp_number(c, x, c.in(0), -kTwo31, kTwo31 - 1);
  c->vcvttpd2dq(c.out(), x);
}

// out = the lower halves of the 64-bit lanes of `in`, which is destroyed; avx2 takes no other register.
void take_low_halves(VectorCode& c, const Vec& out, const Vec& in) {
  if (c.avx512()) return c->vpmovqd(out, in);
  c->vpermilps(in, in, 0x08);  // lanes 0 and 2 first, in each half
  c->vpermq(Xbyak::Ymm(in.getIdx()), Xbyak::Ymm(in.getIdx()), 0x08);
  c.move(out, VectorCode::at(in, 128));
}

// avx2: added to 2^52, an integer is the low bits of the sum.
void f64_to_u32(VectorCode& c) {
  const Vec x = c.temp();
  clamp_number(c, x, c.in(0), 0, kTwo32 - 1);
  if (c.avx512()) return c->vcvttpd2udq(c.out(), x);
  c.round(x, x, Rounding::to_zero);
  c->vaddpd(x, x, c.f64(kTwo52));
  take_low_halves(c, c.out(), x);
}

// ---- Floats to 64-bit integers ----

// x, a whole number in f64, to 64 bits: upper and lower halves by way of 2^52. Destroys x, which must not be `out`.
void whole_to_64(VectorCode& c, const Vec& out, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec high = c.temp(256);
  c->vmulpd(high, x, c.f64(1 / kTwo32));
  c->vroundpd(high, high, static_cast<uint8_t>(Rounding::down));
  c->vfnmadd231pd(x, high, c.f64(kTwo32));
  c->vaddpd(x, x, c.f64(kTwo52));
  c->vaddpd(high, high, c.f64(kTwo52 * 1.5));  // low bits of a two's complement for upper halves of either sign
  c->vpsllq(high, high, 32);
  c->vpblendd(out, high, x, 0x55);
}

// From x in f64, which is destroyed.
void wide_to_i64(VectorCode& c, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec y = c.temp(c.lanes() * 64), mask = c.temp(c.lanes() * 64);
  c->vcmppd(mask, x, x, kOrdered);
  c->vandpd(x, x, mask);
  c->vcmppd(mask, x, c.f64(kTwo63), kGreaterEqual);
  c->vmaxpd(x, x, c.f64(-kTwo63));
  c->vroundpd(x, x, static_cast<uint8_t>(Rounding::to_zero));
  whole_to_64(c, y, x);
  c->vmovapd(x, c.u64(~uint64_t{0} >> 1));
  c->vblendvpd(c.out(), y, x, mask);
}

void wide_to_u64(VectorCode& c, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec y = c.temp(c.lanes() * 64), mask = c.temp(c.lanes() * 64);
  c->vxorpd(mask, mask, mask);
  c->vmaxpd(x, x, mask);  // 0 for NaN
  c->vcmppd(mask, x, c.f64(kTwo64), kGreaterEqual);
  c->vroundpd(x, x, static_cast<uint8_t>(Rounding::to_zero));
  whole_to_64(c, y, x);
  c->vorpd(c.out(), y, mask);
}

template <bool kFromF32>
void float_to_64_avx512(VectorCode& c) {
  const Vec x = c.in(0), y = VectorCode::at(c.temp(), c.lanes() * 64);
  if (to_unsigned(c)) {
    const Vec bounded = VectorCode::at(y, c.lanes() * (kFromF32 ? 32 : 64));
    c.set(y, 0);
    if constexpr (kFromF32) {
      c->vmaxps(bounded, x, bounded);  // 0 for NaN
      return c->vcvttps2uqq(c.out(), bounded);
    }
    c->vmaxpd(bounded, x, bounded);
    return c->vcvttpd2uqq(c.out(), bounded);
  }
  const Mask mask = c.mask_temp();
  kFromF32 ? c->vcvttps2qq(y, x) : c->vcvttpd2qq(y, x);
  kFromF32 ? c->vcmpps(c.opmask(mask), x, c.f32(kTwo63), kGreaterEqual)
           : c->vcmppd(c.opmask(mask), x, c.f64(kTwo63), kGreaterEqual);
  c->vpternlogq(y | c.opmask(mask), y, y, 0x55);  // ~y
  kFromF32 ? c->vcmpps(c.opmask(mask), x, x, kOrdered) : c->vcmppd(c.opmask(mask), x, x, kOrdered);
  c->vmovdqa64(c.out() | c.opmask(mask) | Xbyak::util::T_z, y);
}

template <bool kFromF32>
void float_to_64(VectorCode& c) {
  if (c.avx512()) return float_to_64_avx512<kFromF32>(c);
  const Vec x = c.temp(c.lanes() * 64);
  kFromF32 ? c->vcvtps2pd(x, c.in(0)) : c->vmovapd(x, c.in(0));
  to_unsigned(c) ? wide_to_u64(c, x) : wide_to_i64(c, x);
}

// ---- Integers to floats ----

// avx2: upper half * 2^16 + lower half, rounded once by the multiply-add.
void i32_to_f32(VectorCode& c) {
  const Vec x = c.in(0);
  if (!from_unsigned(c)) return c->vcvtdq2ps(c.out(), x);
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
  if (!from_unsigned(c)) return c->vcvtdq2pd(y, x);
  if (c.avx512()) return c->vcvtudq2pd(y, x);
  c->vpmovzxdq(y, x);
  c->vorpd(y, y, c.u64(kTwo52Bits));
  c->vsubpd(y, y, c.f64(kTwo52));
}

// avx2: out = x in f64. Each half is the low bits of a float, biased by 2^52 and 2^84; their sum is rounded once. A
// signed upper half has another bias of 2^31.
void wide_int_to_f64(VectorCode& c, const Vec& out, const Vec& x) {
  const VectorCode::Scope scope(c);
  const bool is_unsigned = from_unsigned(c);
  const Vec high = c.temp(256), low = c.temp(256);
  c->vpsrlq(high, x, 32);
  c->vxorpd(high, high, c.u64(is_unsigned ? kTwo84Bits : kTwo84Bits | uint64_t{1} << 31));
  c->vsubpd(high, high, c.f64(is_unsigned ? kTwo84 + kTwo52 : kTwo84 + kTwo63 + kTwo52));
  c->vmovapd(low, c.u64(kTwo52Bits));
  c->vpblendd(low, low, x, 0x55);
  c->vaddpd(out, high, low);
}

void i64_to_f64(VectorCode& c) {
  const Vec x = c.in(0);
  if (!c.avx512()) return wide_int_to_f64(c, c.out(), x);
  from_unsigned(c) ? c->vcvtuqq2pd(c.out(), x) : c->vcvtqq2pd(c.out(), x);
}

// avx2, by f64: where that rounds, beyond 2^53, the low 12 bits become 0x800 if they are not 0, so that it is exact and
// keeps on which side of the middle of two floats the number is (as odd_double() of tensor/numeric.hpp).
void i64_to_f32(VectorCode& c) {
  const Vec x = c.in(0);
  if (c.avx512()) return from_unsigned(c) ? c->vcvtuqq2ps(c.out(), x) : c->vcvtqq2ps(c.out(), x);
  constexpr uint64_t kLow12 = 0xfff, kExact = uint64_t{1} << 40, kSign = uint64_t{1} << 63;
  const Vec y = c.temp(), big = c.temp();
  c->vandpd(y, x, c.u64(kLow12));
  c->vpaddq(y, y, c.u64(kLow12));
  c->vandpd(y, y, c.u64(kLow12 + 1));  // not 0: 0x1000
  c->vpsrlq(y, y, 1);
  c->vandpd(big, x, c.u64(~kLow12));
  c->vorpd(y, y, big);
  // |x| > 2^40: x + 2^40 > 2^41 as an unsigned number.
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
  wide_int_to_f64(c, y, y);
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

// ---- Values of narrower types ----

ElementType wanted(const Attributes& attributes) {
  const Attribute* const to = attributes.find("to");
  if (!to) return {};
  if (const Type* const type = to->get_if<Type>()) return type->element();
  const std::string* const text = to->get_if<std::string>();
  return text ? ElementType::parse(*text).value_or(ElementType{}) : ElementType{};
}

void round_f32_to_f16(VectorCode& c) {
  const Vec half = VectorCode::at(c.temp(), c.lanes() * 16);
  c->vcvtps2ph(half, c.in(0), 0);
  c->vcvtph2ps(c.out(), half);
}

// Half of the last place is added, less one bit where the last place is even; NaN becomes a quiet one.
void round_f32_to_bf16(VectorCode& c) {
  constexpr uint32_t kUpper = 0xffff0000;
  const Vec x = c.in(0), y = c.temp();
  const Mask nan = c.mask_temp();
  c.compare(nan, Compare::unordered, x, x);
  c->vpsrld(y, x, 16);
  c->vandps(y, y, c.u32(1));
  c->vpaddd(y, y, x);
  c->vpaddd(y, y, c.u32(0x7fff));
  const Vec quiet = c.temp();
  c->vorps(quiet, x, c.u32(0x400000));
  c.select(y, nan, quiet, y);
  c->vandps(c.out(), y, c.u32(kUpper));
}

// |x| + s - s with s = 2^(e + 52 - fraction bits), e the exponent of x, but not below that of the format's least normal
// number: the sum rounds at the last place of the format. From `overflow` on infinite.
void round_f64(VectorCode& c, double least_normal, double shift, double overflow) {
  constexpr uint64_t kExponentMask = 0x7ff0000000000000, kSign = uint64_t{1} << 63;
  const Vec x = c.in(0), magnitude = c.temp(), y = c.temp(), sum = c.temp();
  c->vandpd(magnitude, x, c.u64(~kSign));
  c->vandpd(y, x, c.u64(kExponentMask));
  c->vmaxpd(y, y, c.f64(least_normal));
  c->vmulpd(y, y, c.f64(shift));
  c->vaddpd(sum, magnitude, y);
  c->vsubpd(y, sum, y);
  const Mask beyond = c.mask_temp();
  const auto not_less = uint8_t{5};  // true for NaN
  if (c.avx512())
    c->vcmppd(c.opmask(beyond), magnitude, c.f64(overflow), not_less);
  else
    c->vcmppd(c.vector(beyond), magnitude, c.f64(overflow), not_less);
  c->vaddpd(sum, magnitude, c.u64(kExponentMask));  // infinity, or NaN
  c.select(y, beyond, sum, y);
  c->vandpd(magnitude, x, c.u64(kSign));
  c->vorpd(c.out(), y, magnitude);
}

void round_f64_to_f16(VectorCode& c) { round_f64(c, 0x1p-14, 0x1p42, 65520); }
void round_f64_to_bf16(VectorCode& c) { round_f64(c, 0x1p-126, 0x1p45, 0x1.ffp127); }

void wrap(VectorCode& c) {
  const ElementType to = wanted(c.emission().attributes);
  const int cut = 32 - to.bits();
  if (to.is_unsigned_int()) return c->vandps(c.out(), c.in(0), c.u32(0xffffffffu >> cut));
  c->vpslld(c.out(), c.in(0), static_cast<uint8_t>(cut));
  c->vpsrad(c.out(), c.out(), static_cast<uint8_t>(cut));
}

// ---- Rows ----

constexpr LaneTypes kInt32{kI32, kU32}, kInt64{kI64, kU64}, kF64Only{kF64};

template <const LaneTypes* kFrom, const LaneTypes* kTo>
bool between(const Signature& s) {
  return s.in.size() == 1 && s.out.size() == 1 && kFrom->contains(s.in[0]) && kTo->contains(s.out[0]);
}
constexpr LaneTypes kI32Only{kI32}, kU32Only{kU32};

template <const ElementType* kTo>
bool to(const Signature& s) {
  return wanted(s.attributes) == *kTo;
}
bool to_narrow_integer(const Signature& s) {
  const ElementType to = wanted(s.attributes);
  return to.is_int() && (to.bits() == 8 || to.bits() == 16);
}

constexpr RowPair kRows[] = {
    {"Convert",
     kNumberLanes,
     {.vectors = 2, .cycles = 3},
     {.vectors = 1, .masks = 1, .cycles = 3},
     0,
     algorithm<f32_to_i32>,
     between<&kF32Lanes, &kI32Only>},
    {"Convert",
     kNumberLanes,
     {.vectors = 3, .cycles = 5},
     {.vectors = 1, .cycles = 1.5},
     0,
     algorithm<f32_to_u32>,
     between<&kF32Lanes, &kU32Only>},
    {"Convert",
     kNumberLanes,
     {.vectors = 1, .cycles = 4},
     {.vectors = 1, .cycles = 4},
     0,
     algorithm<f64_to_i32>,
     between<&kF64Only, &kI32Only>},
    {"Convert",
     kNumberLanes,
     {.vectors = 1, .cycles = 7},
     {.vectors = 1, .cycles = 4},
     0,
     algorithm<f64_to_u32>,
     between<&kF64Only, &kU32Only>},
    {"Convert",
     kNumberLanes,
     {.vectors = 4, .cycles = 9},
     {.vectors = 1, .masks = 1, .cycles = 4},
     0,
     algorithm<float_to_64<true>>,
     between<&kF32Lanes, &kInt64>},
    {"Convert",
     kNumberLanes,
     {.vectors = 4, .cycles = 8},
     {.vectors = 1, .masks = 1, .cycles = 3},
     0,
     algorithm<float_to_64<false>>,
     between<&kF64Only, &kInt64>},
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
    {"Round",
     kF32Lanes,
     {.vectors = 1, .cycles = 2},
     {.vectors = 1, .cycles = 2},
     0.5,
     algorithm<round_f32_to_f16>,
     to<&kF16>},
    {"Round",
     kF32Lanes,
     {.vectors = 3, .cycles = 4},
     {.vectors = 2, .masks = 1, .cycles = 4},
     0.5,
     algorithm<round_f32_to_bf16>,
     to<&kBF16>},
    {"Round",
     kF64Only,
     {.vectors = 4, .cycles = 5},
     {.vectors = 3, .masks = 1, .cycles = 5},
     0.5,
     algorithm<round_f64_to_f16>,
     to<&kF16>},
    {"Round",
     kF64Only,
     {.vectors = 4, .cycles = 5},
     {.vectors = 3, .masks = 1, .cycles = 5},
     0.5,
     algorithm<round_f64_to_bf16>,
     to<&kBF16>},
    {"Wrap", kInt32, {.cycles = 2}, {.cycles = 2}, 0, algorithm<wrap>, to_narrow_integer},
};

}  // namespace

Result<void> add_convert_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
