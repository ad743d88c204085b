// Floats to integers: truncated and saturated, NaN gives 0, like convert() of tensor/numeric.hpp. Exact.
#include <bit>
#include <utility>
#include <vector>

#include "x86/emitters/convert.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

constexpr double kTwo31 = 0x1p31, kTwo32 = 0x1p32, kTwo64 = 0x1p64;
constexpr auto kGreaterEqual = static_cast<uint8_t>(Compare::greater_equal), kOrdered = uint8_t{7},
               kNotGreaterEqual = uint8_t{0x19};  // quiet, true for NaN
constexpr uint8_t kComplement = 0x55;             // vpternlog: ~ of the destination
constexpr uint32_t kZeroForNaNs = 0x88;           // vfixupimmps

// ---- Floats to 32-bit integers ----

// out = y, the conversion of x, corrected where x does not fit. The instruction gives 0x80000000 there. That is right
// below the range; above it the complement is right, and for NaN 0. avx512: out is y.
void make_fit(X86Context& c, const Vec& out, const Vec& y, const Vec& x, const Mask& mask) {
  const auto constant = [&](uint32_t bits) { return c.kept_constant(kF32, bits, x.getBit()); };
  const ConstantOperand above = constant(std::bit_cast<uint32_t>(static_cast<float>(kTwo31)));
  auto& g = c.gen();
  if (c.avx512()) {
    const Xbyak::Opmask too_large(mask.number);
    g.vcmpps(too_large, x, above, kGreaterEqual);
    g.vpternlogd(y | too_large, y, y, kComplement);
    g.vfixupimmps(y, x, constant(kZeroForNaNs), 0);
    return;
  }
  const Vec lanes = X86Context::vector(mask.number, x.getBit());
  g.vcmpps(lanes, x, above, kGreaterEqual);
  g.vxorps(y, y, lanes);
  g.vcmpps(lanes, x, x, kOrdered);
  g.vandps(out, y, lanes);
}

// avx512: the greatest integer is kept where x is above the range.
void f32_to_i32(VectorCode& c) {
  const Vec x = c.in(0);
  if (c.avx512()) {
    const Vec y = c.out().getIdx() == x.getIdx() ? c.temp() : c.out();
    const Mask fits = c.mask_temp();
    constexpr uint32_t kGreatest = 0x7fffffff;
    c->vcmpps(c.opmask(fits), x, c.f32(kTwo31), kNotGreaterEqual);
    c.set_u32(y, kGreatest);
    c->vcvttps2dq(y | c.opmask(fits), x);
    c->vfixupimmps(y, x, c.u32(kZeroForNaNs), 0);
    if (y.getIdx() != c.out().getIdx()) c.move(c.out(), y);
    return;
  }
  const Vec y = c.temp();
  c->vcvttps2dq(y, x);
  make_fit(c.context(), c.out(), y, x, c.mask_temp());
}

bool are_f32_to_i32(const Signature& s) { return s.in[0] == kF32 && s.out[0] == kI32; }

// For two or four vectors with one check: 0x80000000 is the least integer, so if no lane has it, all lanes fit.
class SeveralToI32 final : public Emitter {
 public:
  Result<void> emit_code(EmitContext& context, const Emission& e) const override {
    constexpr uint32_t kLeast = 0x80000000;
    VectorCode c(x86_context(context), e);
    const Vec least = c.temp();
    const auto out = [&](size_t i) { return c.context().vector(e.out[i], e.lanes); };
    for (size_t i = 0; i < e.out.size(); ++i) c->vcvttps2dq(out(i), c.in(i));
    c->vpminsd(least, out(0), out(1));
    if (e.out.size() == 4) {
      const VectorCode::Scope scope(c);
      const Vec other = c.temp();
      c->vpminsd(other, out(2), out(3));
      c->vpminsd(least, least, other);
    }
    Xbyak::Label fit, other;
    if (c.avx512()) {
      c->vpcmpeqd(c->k0, least, c.u32(kLeast));
      c->kortestw(c->k0, c->k0);
    } else {
      c->vpcmpeqd(least, least, c.u32(kLeast));
      // One operation, and one fused with the jump; vtestps would be two.
      c->vmovmskps(c->eax, least);
      c->test(c->eax, c->eax);
    }
    c->jnz(other, Xbyak::CodeGenerator::T_NEAR);
    c->L(fit);
    std::vector<std::pair<Vec, Vec>> converted;
    for (size_t i = 0; i < e.out.size(); ++i) converted.emplace_back(out(i), c.in(i));
    c.context().write_behind([converted, fit, other, mask = c.mask_temp()](X86Context& behind) mutable {
      behind.gen().L(other);
      for (const auto& [y, x] : converted) make_fit(behind, y, y, x, mask);
      behind.gen().jmp(fit, Xbyak::CodeGenerator::T_NEAR);
    });
    return c.finish();
  }
};

void f32_in_range(VectorCode& c) { c->vcvttps2dq(c.out(), c.in(0)); }
void f32_to_nearest(VectorCode& c) { c->vcvtps2dq(c.out(), c.in(0)); }

// max(x, 0) is 0 for NaN. avx2 converts x and x - 2^31 and joins the results.
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

// out = x clamped to [low, high], 0 where it is NaN; f64.
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

// avx2: after adding 2^52, the low bits of the sum are the integer.
void f64_to_u32(VectorCode& c) {
  const Vec x = c.temp();
  clamp_number(c, x, c.in(0), 0, kTwo32 - 1);
  if (c.avx512()) return c->vcvttpd2udq(c.out(), x);
  c.round(x, x, Rounding::to_zero);
  c->vaddpd(x, x, c.f64(kTwo52));
  take_low_halves(c, c.out(), x);
}

// ---- Floats to 64-bit integers ----

}  // namespace

// Adds 2^52 to the upper and lower halves separately.
void whole_to_64(VectorCode& c, const Vec& out, const Vec& x) {
  const VectorCode::Scope scope(c);
  const Vec high = c.temp(256);
  c->vmulpd(high, x, c.f64(1 / kTwo32));
  c->vroundpd(high, high, static_cast<uint8_t>(Rounding::down));
  c->vfnmadd231pd(x, high, c.f64(kTwo32));
  c->vaddpd(x, x, c.f64(kTwo52));
  c->vaddpd(high, high, c.f64(kTwo52 * 1.5));  // two's complement in the low bits, for upper halves of either sign
  c->vpsllq(high, high, 32);
  c->vpblendd(out, high, x, 0x55);
}

namespace {

// Converts x in f64, which is destroyed.
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
  c->vpternlogq(y | c.opmask(mask), y, y, kComplement);
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

// ---- Rows ----

constexpr RowPair kConvertFloatRows[] = {
    {"Convert",
     kNumberLanes,
     {.vectors = 2, .cycles = 3},
     {.vectors = 1, .masks = 1, .cycles = 3},
     0,
     algorithm<f32_to_i32>,
     between<&kF32Lanes, &kI32Only>},
    {"ConvertInTurn2",
     kNumberLanes,
     {.vectors = 2, .cycles = 4},
     {.vectors = 1, .masks = 1, .cycles = 5},
     0,
     make_emitter<SeveralToI32>,
     are_f32_to_i32,
     true},
    {"ConvertInTurn4",
     kNumberLanes,
     {.vectors = 2, .cycles = 7},
     {.vectors = 2, .masks = 1, .cycles = 8},
     0,
     make_emitter<SeveralToI32>,
     are_f32_to_i32,
     true},
    {"ConvertInRange", kNumberLanes, {}, {}, 0, algorithm<f32_in_range>, between<&kF32Lanes, &kInt32>},
    {"RoundInRange", kNumberLanes, {}, {}, 0, algorithm<f32_to_nearest>, between<&kF32Lanes, &kInt32>},
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
};

}  // namespace

Result<void> add_convert_float_rows(JitterTable& table) { return add_pairs(table, kConvertFloatRows); }

}  // namespace tenon::x86
