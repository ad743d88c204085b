// Rounding and wrapping to narrower types that memory has, in lanes of wider types. Exact; ties to even.
#include "x86/assembly/bfloat.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

ElementType wanted(const Attributes& attributes) {
  static const Name kTo("to");
  const Attribute* const to = attributes.find(kTo);
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

// Adds half of the last place, minus one bit where the last place is even; NaN becomes quiet.
void round_f32_to_bf16(VectorCode& c) {
  constexpr uint32_t kUpper = 0xffff0000;
  const Vec x = c.in(0), y = c.temp();
  const Mask mask = c.mask_temp();
  if (c.avx512()) {
    round_upper_halves(c.context().gen(), y, x, c.opmask(mask), [&](uint32_t bits) { return c.u32(bits); });
    return c->vandps(c.out(), y, c.u32(kUpper));
  }
  c.compare(mask, Compare::unordered, x, x);
  c->vpsrld(y, x, 16);
  c->vandps(y, y, c.u32(1));
  c->vpaddd(y, y, x);
  c->vpaddd(y, y, c.u32(0x7fff));
  const Vec quiet = c.temp();
  c->vorps(quiet, x, c.u32(0x400000));
  c.select(y, mask, quiet, y);
  c->vandps(c.out(), y, c.u32(kUpper));
}

// |x| + s - s with s = 2^(e + 52 - fraction bits), where e is the exponent of x, at least that of the format's least
// normal number: the sum is rounded at the last place of the format. Infinite from `overflow` on.
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
  const auto not_less = uint8_t{5};  // also true for NaN
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

template <const ElementType* kTo>
bool to(const Signature& s) {
  return wanted(s.attributes) == *kTo;
}
bool to_narrow_integer(const Signature& s) {
  const ElementType to = wanted(s.attributes);
  return to.is_int() && (to.bits() == 8 || to.bits() == 16);
}

constexpr RowPair kNarrowRows[] = {
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
     {.vectors = 1, .masks = 1, .cycles = 2.5},
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

Result<void> add_narrow_rows(JitterTable& table) { return add_pairs(table, kNarrowRows); }

}  // namespace tenon::x86
