// Byte lanes: four vectors of 32-bit lanes, of which only the low bytes matter, packed into one (passes/bytes.cpp).
// Registers have the width of a vector of 32-bit lanes. Attribute `signed` says whether bytes are signed, where that
// matters. Results are exact.
#include <array>

#include "x86/emitters/compare.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

void add_bytes(VectorCode& c) { c->vpaddb(c.out(), c.in(0), c.in(1)); }
void subtract_bytes(VectorCode& c) { c->vpsubb(c.out(), c.in(0), c.in(1)); }

bool is_set(const VectorCode& c, std::string_view attribute) {
  const Attribute* const one = c.emission().attributes.find(attribute);
  return one && one->get_if<int64_t>() && *one->get_if<int64_t>() != 0;
}
bool has_sign(const VectorCode& c) { return is_set(c, "signed"); }

// By products of 16 bits. Even bytes are multiplied in place, and the upper halves of the products are dropped. For odd
// bytes one factor is shifted down, unless all bytes of y are equal (attribute `alike`); the other one is masked.
void product_of_bytes(VectorCode& c) {
  constexpr uint32_t kLower = 0x00ff00ff, kUpper = 0xff00ff00;
  constexpr uint8_t kLowerOfFirst = 0xec;  // (first & third) | second
  const Vec x = c.in(0), y = c.in(1), low = c.temp(), high = c.temp();
  c->vpmullw(low, x, y);
  if (is_set(c, "alike")) {
    c->vandps(high, x, c.u32(kUpper));
    c->vpmullw(high, high, y);
  } else {
    const Vec upper = c.temp();
    c->vpsrlw(high, x, 8);
    c->vandps(upper, y, c.u32(kUpper));
    c->vpmullw(high, high, upper);
  }
  if (c.avx512()) {
    c->vpternlogd(low, high, c.u32(kLower), kLowerOfFirst);
    return c.move(c.out(), low);
  }
  c->vandps(low, low, c.u32(kLower));
  c->vorps(c.out(), low, high);
}

// Shifts words by attribute `bits` and masks the bits that cross from one byte into the other.
void shift_bytes(VectorCode& c) {
  const auto bits = static_cast<uint8_t>(*c.emission().attributes.find("bits")->get_if<int64_t>());
  const uint32_t kept = 0xffu >> bits << bits;
  c->vpsllw(c.out(), c.in(0), bits);
  c->vandps(c.out(), c.out(), c.u32(kept * 0x01010101));
}

void negate_bytes(VectorCode& c) {
  const Vec zero = c.temp();
  c.set(zero, 0);
  c->vpsubb(c.out(), zero, c.in(0));
}

void magnitude_of_bytes(VectorCode& c) { c->vpabsb(c.out(), c.in(0)); }

void greater_bytes(VectorCode& c, const Vec& out) {
  has_sign(c) ? c->vpmaxsb(out, c.in(0), c.in(1)) : c->vpmaxub(out, c.in(0), c.in(1));
}
void less_bytes(VectorCode& c, const Vec& out) {
  has_sign(c) ? c->vpminsb(out, c.in(0), c.in(1)) : c->vpminub(out, c.in(0), c.in(1));
}
void maximum_of_bytes(VectorCode& c) { greater_bytes(c, c.out()); }
void minimum_of_bytes(VectorCode& c) { less_bytes(c, c.out()); }

// avx2 compares bytes for equality; an order is found by comparing with the minimum.
template <Compare kHow>
void compare_bytes(VectorCode& c) {
  const Vec a = c.in(0), b = c.in(1);
  if (c.avx512()) {
    const auto [out, flip] = where_compared(c);
    const auto predicate = static_cast<uint8_t>(flip ^ integer_predicate(kHow));
    return has_sign(c) ? c->vpcmpb(out, a, b, predicate) : c->vpcmpub(out, a, b, predicate);
  }
  const Vec out = VectorCode::at(c.out(), c.lanes() * 32), least = c.temp();
  if (has_sign(c) && kHow == Compare::greater) return c->vpcmpgtb(out, a, b);
  if (has_sign(c) && kHow == Compare::less) return c->vpcmpgtb(out, b, a);
  constexpr bool kEquality = kHow == Compare::equal || kHow == Compare::not_equal;
  if (!kEquality) less_bytes(c, least);
  // a < b unless b is the minimum
  c->vpcmpeqb(out, kEquality ? a : least, kHow == Compare::less_equal || kHow == Compare::greater ? a : b);
  if (kHow == Compare::not_equal || kHow == Compare::less || kHow == Compare::greater)
    c->vxorps(out, out, c.u32(~uint32_t{0}));
}

void choose_bytes(VectorCode& c) {
  const int mask = c.emission().in[0].at.number;
  const Vec yes = c.in(1), no = c.in(2);
  if (c.avx512()) return c->vpblendmb(c.out() | Xbyak::Opmask(mask), no, yes);
  c->vpblendvb(c.out(), no, yes, X86Context::vector(mask, yes.getBit()));
}

// Broadcasts a uniform byte to all byte lanes.
void spread_byte(VectorCode& c) { c->vpbroadcastb(c.out(), VectorCode::at(c.in(0), 128)); }

// Expands a uniform boolean to byte lanes. avx2: all bits are equal anyway.
void spread_mask(VectorCode& c) {
  const int out = c.emission().out[0].at.number, in = c.emission().in[0].at.number;
  if (!c.avx512()) return c.move(c.out(), c.in(0));
  c->kunpckwd(Xbyak::Opmask(out), Xbyak::Opmask(in), Xbyak::Opmask(in));
  c->kunpckdq(Xbyak::Opmask(out), Xbyak::Opmask(out), Xbyak::Opmask(out));
}

// Pack instructions work within 128 bits: puts the 32-bit words in order.
void order_packed(VectorCode& c, const Vec& packed, const Vec& scratch) {
  constexpr std::array<uint32_t, 16> kWords{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  constexpr std::array<uint32_t, 8> kHalf{0, 4, 1, 5, 2, 6, 3, 7};
  c->vmovups(scratch, c.avx512() ? c.context().table(kWords) : c.context().table(kHalf));
  const int out = c.emission().out[0].at.number;
  if (c.avx512()) return c->vpermd(Xbyak::Zmm(out), Xbyak::Zmm(scratch.getIdx()), packed);
  c->vpermd(Xbyak::Ymm(out), Xbyak::Ymm(scratch.getIdx()), packed);
}

// Packs the low bytes of four vectors, in order. The pack instructions saturate, so lanes are masked to their low bytes
// first, unless they are known to be values of one type (attribute `u8` or `i8`) or 0x80000000. The latter becomes 0
// for u8; for i8 its word is masked to the low byte, 0. For u8, any negative number becomes 0; for i8 with attribute
// `number`, any number below -128 becomes -128.
void pack_bytes(VectorCode& c) {
  const Vec low = c.temp(), high = c.temp(), other = c.temp();
  const bool saturates = is_set(c, "i8") && is_set(c, "number");
  const auto pair = [&](const Vec& out, size_t i) {
    if (is_set(c, "u8")) return c->vpackusdw(out, c.in(i), c.in(i + 1));
    if (is_set(c, "i8")) {
      c->vpackssdw(out, c.in(i), c.in(i + 1));
      if (!saturates) c->vandps(out, out, c.u32(0x00ff00ff));
      return;
    }
    c->vandps(out, c.in(i), c.u32(0xff));
    c->vandps(other, c.in(i + 1), c.u32(0xff));
    c->vpackusdw(out, out, other);
  };
  pair(low, 0);
  pair(high, 2);
  saturates ? c->vpacksswb(low, low, high) : c->vpackuswb(low, low, high);
  order_packed(c, low, other);
}

// Packs the booleans of four vectors, in order.
void pack_mask(VectorCode& c) {
  const auto number = [&](size_t i) { return c.emission().in[i].at.number; };
  if (c.avx512()) {
    const Xbyak::Opmask low = VectorCode::opmask(c.mask_temp()), high = VectorCode::opmask(c.mask_temp());
    c->kunpckwd(low, Xbyak::Opmask(number(1)), Xbyak::Opmask(number(0)));
    c->kunpckwd(high, Xbyak::Opmask(number(3)), Xbyak::Opmask(number(2)));
    return c->kunpckdq(Xbyak::Opmask(c.emission().out[0].at.number), high, low);
  }
  constexpr int kBits = 256;
  const Vec low = c.temp(kBits), high = c.temp(kBits);
  const auto mask = [&](size_t i) { return X86Context::vector(number(i), kBits); };
  c->vpackssdw(low, mask(0), mask(1));
  c->vpackssdw(high, mask(2), mask(3));
  c->vpacksswb(low, low, high);
  order_packed(c, low, high);
}

// Extends part `kPart` of the four to 32-bit lanes.
template <int kPart>
void unpack_bytes(VectorCode& c) {
  Vec from = VectorCode::at(c.in(0), 128);
  const Vec part = c.temp(128);
  const auto move = [&](const auto& f) { f(part, from), from = part; };
  if (c.avx512()) {
    if (kPart > 0) move([&](const Vec& to, const Vec&) { c->vextracti32x4(to, Xbyak::Zmm(c.in(0).getIdx()), kPart); });
  } else {
    if (kPart >= 2) move([&](const Vec& to, const Vec&) { c->vextracti128(to, Xbyak::Ymm(c.in(0).getIdx()), 1); });
    if (kPart % 2 == 1) move([&](const Vec& to, const Vec& what) { c->vpsrldq(to, what, 8); });
  }
  has_sign(c) ? c->vpmovsxbd(c.out(), from) : c->vpmovzxbd(c.out(), from);
}

// ---- Rows ----

constexpr RowPair kBytesRows[] = {
    {"AddBytes", kInt32, {}, {}, 0, algorithm<add_bytes>},
    {"SubBytes", kInt32, {}, {}, 0, algorithm<subtract_bytes>},
    {"MulBytes", kInt32, {.vectors = 3, .cycles = 3}, {.vectors = 3, .cycles = 3}, 0, algorithm<product_of_bytes>},
    {"ShiftBytes", kInt32, {.cycles = 2}, {.cycles = 2}, 0, algorithm<shift_bytes>},
    {"NegBytes", kInt32, {.vectors = 1}, {.vectors = 1}, 0, algorithm<negate_bytes>},
    {"AbsBytes", kInt32, {}, {}, 0, algorithm<magnitude_of_bytes>},
    {"MaxBytes", kInt32, {}, {}, 0, algorithm<maximum_of_bytes>},
    {"MinBytes", kInt32, {}, {}, 0, algorithm<minimum_of_bytes>},
    {"EqualBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::equal>>},
    {"NotEqualBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::not_equal>>},
    {"LessBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::less>>},
    {"LessOrEqualBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::less_equal>>},
    {"GreaterBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::greater>>},
    {"GreaterOrEqualBytes", kInt32, {.vectors = 1}, {}, 0, algorithm<compare_bytes<Compare::greater_equal>>},
    {"WhereBytes", kInt32, {}, {}, 0, algorithm<choose_bytes>},
    {"SpreadByte", kInt32, {}, {}, 0, algorithm<spread_byte>},
    {"SpreadMask", kBoolLanes, {}, {.cycles = 2}, 0, algorithm<spread_mask>},
    {"PackBytes", kInt32, {.vectors = 3, .cycles = 4}, {.vectors = 3, .cycles = 4}, 0, algorithm<pack_bytes>},
    {"PackMask", kBoolLanes, {.vectors = 2, .cycles = 4}, {.masks = 2, .cycles = 3}, 0, algorithm<pack_mask>},
    {"UnpackBytes0", kInt32, {.vectors = 1}, {.vectors = 1}, 0, algorithm<unpack_bytes<0>>},
    {"UnpackBytes1", kInt32, {.vectors = 1}, {.vectors = 1}, 0, algorithm<unpack_bytes<1>>},
    {"UnpackBytes2", kInt32, {.vectors = 1}, {.vectors = 1}, 0, algorithm<unpack_bytes<2>>},
    {"UnpackBytes3", kInt32, {.vectors = 1}, {.vectors = 1}, 0, algorithm<unpack_bytes<3>>},
};

}  // namespace

Result<void> add_bytes_rows(JitterTable& table) { return add_pairs(table, kBytesRows); }

}  // namespace tenon::x86
