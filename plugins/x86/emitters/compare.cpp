// Comparisons, maximum and minimum, logic on booleans and bits, and selection. All results are exact.
#include "x86/emitters/compare.hpp"

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {

using namespace codegen;

namespace {

// avx2: out = a > b of integers. The upper bit of unsigned ones is flipped, unless it is known to be clear.
void greater_avx2(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  if (c.element().is_signed_int() || c.emission().attributes.has("fits_i32"))
    return c.wide() ? c->vpcmpgtq(out, a, b) : c->vpcmpgtd(out, a, b);
  const VectorCode::Scope scope(c);
  const Vec left = c.temp(), right = c.temp();
  const ConstantOperand sign = c.wide() ? c.u64(kSign64) : c.u32(kSign32);
  c->vxorps(left, a, sign);
  c->vxorps(right, b, sign);
  c.wide() ? c->vpcmpgtq(out, left, right) : c->vpcmpgtd(out, left, right);
}

void compare_avx2(VectorCode& c, const Vec& out, Compare how, const Vec& a, const Vec& b) {
  const bool equal = how == Compare::equal || how == Compare::not_equal;
  const bool negated = how == Compare::not_equal || how == Compare::less_equal || how == Compare::greater_equal;
  if (equal)
    c.wide() ? c->vpcmpeqq(out, a, b) : c->vpcmpeqd(out, a, b);
  else if (how == Compare::greater || how == Compare::less_equal)
    greater_avx2(c, out, a, b);
  else
    greater_avx2(c, out, b, a);
  if (negated) c->vxorps(out, out, c.u64(~uint64_t{0}));
}

void compare_avx512(VectorCode& c, const Xbyak::Opmask& out, uint8_t predicate, const Vec& a, const Vec& b) {
  if (c.element().is_signed_int()) return c.wide() ? c->vpcmpq(out, a, b, predicate) : c->vpcmpd(out, a, b, predicate);
  c.wide() ? c->vpcmpuq(out, a, b, predicate) : c->vpcmpud(out, a, b, predicate);
}

}  // namespace

ComparedLanes where_compared(const VectorCode& c) {
  constexpr uint8_t kOpposite = 4;
  const auto& in = c.emission().in;
  const Attribute* const negated = c.emission().attributes.find("negated");
  Xbyak::Opmask out(c.emission().out[0].at.number);
  if (in.size() == 3) out = out | X86Context::mask(in[2]);
  return {out, negated && *negated->get_if<int64_t>() != 0 ? kOpposite : uint8_t{0}};
}

void compare_numbers(VectorCode& c, const Mask& out, Compare how, const Vec& a, const Vec& b) {
  if (c.element().is_float()) return c.compare(out, how, a, b);
  if (c.avx512()) return compare_avx512(c, c.opmask(out), integer_predicate(how), a, b);
  compare_avx2(c, c.vector(out), how, a, b);
}

namespace {

template <Compare kHow>
void compared(VectorCode& c) {
  if (c.avx512()) {
    const auto [out, flip] = where_compared(c);
    const Vec a = c.in(0), b = c.in(1);
    if (!c.element().is_float()) return compare_avx512(c, out, flip ^ integer_predicate(kHow), a, b);
    const auto predicate = static_cast<uint8_t>(flip ^ static_cast<uint8_t>(kHow));
    return c.wide() ? c->vcmppd(out, a, b, predicate) : c->vcmpps(out, a, b, predicate);
  }
  const Mask out = c.mask_out();
  compare_numbers(c, out, kHow, c.in(0), c.in(1));
  c.deliver(out);
}

// ---- Logic ----

template <class OnMasks, class OnVectors>
void combine(VectorCode& c, OnMasks on_masks, OnVectors on_vectors) {
  const EmitValue &a = c.emission().in[0], &b = c.emission().in[1], &y = c.emission().out[0];
  if (c.avx512() && y.element.is_bool()) return on_masks(X86Context::mask(y), X86Context::mask(a), X86Context::mask(b));
  on_vectors(c.out(), c.in(0), c.in(1));
}

void both(VectorCode& c) {
  combine(
      c, [&](auto y, auto a, auto b) { c->kandq(y, a, b); }, [&](Vec y, Vec a, Vec b) { c->vandps(y, a, b); });
}
void either(VectorCode& c) {
  combine(
      c, [&](auto y, auto a, auto b) { c->korq(y, a, b); }, [&](Vec y, Vec a, Vec b) { c->vorps(y, a, b); });
}
void one_of(VectorCode& c) {
  combine(
      c, [&](auto y, auto a, auto b) { c->kxorq(y, a, b); }, [&](Vec y, Vec a, Vec b) { c->vxorps(y, a, b); });
}

void invert(VectorCode& c) {
  if (c.avx512() && c.is(kBool))
    return c->knotq(X86Context::mask(c.emission().out[0]), X86Context::mask(c.emission().in[0]));
  c->vxorps(c.out(), c.in(0), c.u32(~uint32_t{0}));
}

void shift_left(VectorCode& c) {
  c.wide() ? c->vpsllvq(c.out(), c.in(0), c.in(1)) : c->vpsllvd(c.out(), c.in(0), c.in(1));
}
void shift_right(VectorCode& c) {
  c.wide() ? c->vpsrlvq(c.out(), c.in(0), c.in(1)) : c->vpsrlvd(c.out(), c.in(0), c.in(1));
}

void multiply_by_power(VectorCode& c) {
  static const Name kPower("power");
  const auto power = static_cast<uint8_t>(*c.emission().attributes.find(kPower)->get_if<int64_t>());
  c.wide() ? c->vpsllq(c.out(), c.in(0), power) : c->vpslld(c.out(), c.in(0), power);
}

// ---- Selection ----

void choose(VectorCode& c) {
  const Mask condition = c.mask_in(0);
  c.select(c.out(), condition, c.in(1), c.in(2));
}

// A choice with 0 as one alternative: x where the condition holds, or where it does not.
void keep_where(VectorCode& c) { c.keep(c.out(), c.mask_in(0), c.in(1)); }
void drop_where(VectorCode& c) { c.drop(c.out(), c.mask_in(0), c.in(1)); }
void drop_booleans_where(VectorCode& c) {
  combine(
      c, [&](auto y, auto a, auto b) { c->kandnq(y, a, b); }, [&](Vec y, Vec a, Vec b) { c->vandnps(y, a, b); });
}

// For booleans: (condition & x) | (~condition & y).
void choose_boolean(VectorCode& c) {
  const auto& in = c.emission().in;
  if (!c.avx512()) return c->vblendvps(c.out(), c.in(2), c.in(1), c.in(0));
  c->kandnq(c->k0, X86Context::mask(in[0]), X86Context::mask(in[2]));
  const Xbyak::Opmask y = X86Context::mask(c.emission().out[0]);
  c->kandq(y, X86Context::mask(in[0]), X86Context::mask(in[1]));
  c->korq(y, y, c->k0);
}

// The maximum or minimum by one instruction, which returns b where either is NaN or both are zeros.
template <bool kGreater>
void machine_extreme(VectorCode& c, const Vec& y, const Vec& a, const Vec& b) {
  const ElementType element = c.element();
  if (element == kF32) return kGreater ? c->vmaxps(y, a, b) : c->vminps(y, a, b);
  if (element == kF64) return kGreater ? c->vmaxpd(y, a, b) : c->vminpd(y, a, b);
  if (element == kI32) return kGreater ? c->vpmaxsd(y, a, b) : c->vpminsd(y, a, b);
  if (element == kU32) return kGreater ? c->vpmaxud(y, a, b) : c->vpminud(y, a, b);
  if (element == kI64) return kGreater ? c->vpmaxsq(y, a, b) : c->vpminsq(y, a, b);
  kGreater ? c->vpmaxuq(y, a, b) : c->vpminuq(y, a, b);
}

// avx2 has no maximum of 64-bit integers.
template <bool kGreater>
void extreme_64(VectorCode& c) {
  const Vec a = c.in(0), b = c.in(1);
  if (c.avx512()) return machine_extreme<kGreater>(c, c.out(), a, b);
  const Mask greater = c.mask_temp();
  compare_numbers(c, greater, Compare::greater, a, b);
  kGreater ? c.select(c.out(), greater, a, b) : c.select(c.out(), greater, b, a);
}

template <bool kGreater>
void extreme(VectorCode& c) {
  machine_extreme<kGreater>(c, c.out(), c.in(0), c.in(1));
}

// Max: a > b or a is NaN ? a : b. The instruction propagates a NaN of b. For a NaN of a, avx512 puts it into the
// result, and avx2 sets all bits, which is a NaN, too.
template <bool kGreater>
void extreme_float(VectorCode& c) {
  const Vec a = c.in(0);
  if (c.avx512()) {
    const Vec y = c.out().getIdx() == a.getIdx() ? c.temp() : c.out();
    machine_extreme<kGreater>(c, y, a, c.in(1));
    constexpr uint64_t kNaNs = 0x22;  // quiet and signalling NaN of a: that NaN, quiet; otherwise unchanged
    c.wide() ? c->vfixupimmpd(y, a, c.u64(kNaNs), 0) : c->vfixupimmps(y, a, c.u32(kNaNs), 0);
    if (y.getIdx() != c.out().getIdx()) c.move(c.out(), y);
    return;
  }
  const Vec y = c.temp();
  machine_extreme<kGreater>(c, y, a, c.in(1));
  const Mask nan = c.mask_temp();
  c.compare(nan, Compare::unordered, a, a);
  c->vorps(c.out(), y, c.vector(nan));
}

// x < low ? low : x, x > high ? high : x; keeps NaN and -0 of x.
template <bool kLow>
void clamp(VectorCode& c) {
  machine_extreme<kLow>(c, c.out(), c.in(1), c.in(0));
}

// The instruction returns its second operand where either is NaN.
void clamp_with_low_of_nan(VectorCode& c) { c->vmaxps(c.out(), c.in(0), c.in(1)); }

// Rows for which NaN does not matter (body/spared.hpp).
bool of_numbers(const Signature& signature) { return signature.attributes.has(kNumbers); }
// Floats with a clear sign bit have the order of their bits, with NaN above all numbers.
bool of_magnitudes(const Signature& signature) { return signature.attributes.has(kMagnitudes); }
void greatest_bits(VectorCode& c) { c->vpmaxsd(c.out(), c.in(0), c.in(1)); }

constexpr LaneTypes kSigned = kFloatLanes | LaneTypes{kI32, kI64};
constexpr LaneTypes kUnsigned{kU32, kU64};
constexpr Cost kTwo{.vectors = 2, .cycles = 2};

constexpr RowPair kCompareRows[] = {
    {"Equal", kNumberLanes, {}, {}, 0, algorithm<compared<Compare::equal>>},
    {"NotEqual", kNumberLanes, {.cycles = 2}, {}, 0, algorithm<compared<Compare::not_equal>>},
    {"Less", kSigned, {}, {}, 0, algorithm<compared<Compare::less>>},
    {"LessOrEqual", kSigned, {.cycles = 2}, {}, 0, algorithm<compared<Compare::less_equal>>},
    {"Greater", kSigned, {}, {}, 0, algorithm<compared<Compare::greater>>},
    {"GreaterOrEqual", kSigned, {.cycles = 2}, {}, 0, algorithm<compared<Compare::greater_equal>>},
    {"Less", kUnsigned, kTwo, {}, 0, algorithm<compared<Compare::less>>},
    {"LessOrEqual", kUnsigned, kTwo, {}, 0, algorithm<compared<Compare::less_equal>>},
    {"Greater", kUnsigned, kTwo, {}, 0, algorithm<compared<Compare::greater>>},
    {"GreaterOrEqual", kUnsigned, kTwo, {}, 0, algorithm<compared<Compare::greater_equal>>},
    {"And", kBoolLanes, {}, {}, 0, algorithm<both>},
    {"Or", kBoolLanes, {}, {}, 0, algorithm<either>},
    {"Xor", kBoolLanes, {}, {}, 0, algorithm<one_of>},
    {"Not", kBoolLanes, {}, {}, 0, algorithm<invert>},
    {"BitwiseAnd", kIntLanes, {}, {}, 0, algorithm<both>},
    {"BitwiseOr", kIntLanes, {}, {}, 0, algorithm<either>},
    {"BitwiseXor", kIntLanes, {}, {}, 0, algorithm<one_of>},
    {"BitwiseNot", kIntLanes, {}, {}, 0, algorithm<invert>},
    {"ShiftLeft", kUnsigned, {}, {}, 0, algorithm<shift_left>},
    {"ShiftRight", kUnsigned, {}, {}, 0, algorithm<shift_right>},
    {"MulByPower", kIntLanes, {}, {}, 0, algorithm<multiply_by_power>},
    {"Where", kNumberLanes, {.vectors = 1}, {}, 0, algorithm<choose>},
    {"Where", kBoolLanes, {}, {.cycles = 3}, 0, algorithm<choose_boolean>},
    {"Keep", kNumberLanes, {.vectors = 1}, {}, 0, algorithm<keep_where>},
    {"Drop", kNumberLanes, {.vectors = 1}, {.cycles = 2}, 0, algorithm<drop_where>},
    {"Drop", kBoolLanes, {}, {}, 0, algorithm<drop_booleans_where>},
    {"Max", kF32Lanes, {}, {}, 0, algorithm<extreme<true>>, of_numbers},
    {"Min", kF32Lanes, {}, {}, 0, algorithm<extreme<false>>, of_numbers},
    {"Max", kF32Lanes, {}, {}, 0, algorithm<greatest_bits>, of_magnitudes},
    {"Max", kFloatLanes, {.vectors = 2, .cycles = 2}, {.vectors = 1}, 0, algorithm<extreme_float<true>>},
    {"Min", kFloatLanes, {.vectors = 2, .cycles = 2}, {.vectors = 1}, 0, algorithm<extreme_float<false>>},
    {"Max", kInt32, {}, {}, 0, algorithm<extreme<true>>},
    {"Min", kInt32, {}, {}, 0, algorithm<extreme<false>>},
    {"Max", {kI64}, {.vectors = 1, .cycles = 3}, {}, 0, algorithm<extreme_64<true>>},
    {"Min", {kI64}, {.vectors = 1, .cycles = 3}, {}, 0, algorithm<extreme_64<false>>},
    {"Max", {kU64}, {.vectors = 3, .cycles = 4}, {}, 0, algorithm<extreme_64<true>>},
    {"Min", {kU64}, {.vectors = 3, .cycles = 4}, {}, 0, algorithm<extreme_64<false>>},
    {"ClampLowOfNaN", kF32Lanes, {}, {}, 0, algorithm<clamp_with_low_of_nan>},
    {"ClampLow", kFloatLanes | kInt32, {}, {}, 0, algorithm<clamp<true>>},
    {"ClampHigh", kFloatLanes | kInt32, {}, {}, 0, algorithm<clamp<false>>},
    {"ClampLow", {kI64}, {.vectors = 1, .cycles = 3}, {}, 0, algorithm<extreme_64<true>>},
    {"ClampHigh", {kI64}, {.vectors = 1, .cycles = 3}, {}, 0, algorithm<extreme_64<false>>},
    {"ClampLow", {kU64}, {.vectors = 3, .cycles = 4}, {}, 0, algorithm<extreme_64<true>>},
    {"ClampHigh", {kU64}, {.vectors = 3, .cycles = 4}, {}, 0, algorithm<extreme_64<false>>},
};

}  // namespace

Result<void> add_compare_rows(JitterTable& table) { return add_pairs(table, kCompareRows); }

}  // namespace tenon::x86
