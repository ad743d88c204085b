// FillTail, FoldLanes and FoldRows.
#include <array>

#include "x86/structure_internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Xmm;

enum class FoldBy : uint8_t { add, mul, max, min };

Result<FoldBy> fold_by(const Emission& e) {
  constexpr std::array<std::string_view, 4> kNames{"Add", "Mul", "Max", "Min"};
  const Attribute* by = e.attributes.find("by");
  const std::string* name = by ? by->get_if<std::string>() : nullptr;
  for (size_t i = 0; name && i < kNames.size(); ++i)
    if (*name == kNames[i]) return static_cast<FoldBy>(i);
  return error(Code::internal, e.op, " by '", name ? *name : std::string(), "': Add, Mul, Max or Min is possible");
}

// ---- FillTail ----

void fill_avx512(X86Context& c, const Emission& e, uint64_t bits) {
  auto& g = c.gen();
  const ElementType element = e.out[0].element;
  const Xmm out = c.vector(e.out[0], e.lanes);
  c.move(out, c.vector(e.in[0], e.lanes));
  g.knotw(c.mask(e.masks[0]), c.mask(e.in[1]));
  const Xmm outside = out | c.mask(e.masks[0]);
  if (element.bits() == 64)
    g.vpbroadcastq(outside, c.constant_address(element, bits));
  else
    g.vpbroadcastd(outside, c.constant_address(element, bits));
}

void fill_avx2(X86Context& c, const Emission& e, uint64_t bits) {
  const Xmm out = c.vector(e.out[0], e.lanes), in = c.vector(e.in[0], e.lanes);
  const Xmm filler = c.vector(e.vectors[0], in.getBit());
  c.broadcast(filler, e.out[0].element, bits);
  Xmm mask = c.ymm(e.in[1].at.number);
  if (in.isXMM()) {
    mask = c.xmm(e.vectors[1]);
    c.narrow_mask(mask, c.ymm(e.in[1].at.number));
  }
  e.out[0].element.bits() == 64 ? c.gen().vblendvpd(out, filler, in, mask) : c.gen().vblendvps(out, filler, in, mask);
}

Result<void> emit_fill_tail(X86Context& c, const Emission& e) {
  TENON_TRY(bits, integer_attribute(e, "bits"));
  c.avx512() ? fill_avx512(c, e, static_cast<uint64_t>(bits)) : fill_avx2(c, e, static_cast<uint64_t>(bits));
  return {};
}

// ---- FoldLanes: halves upon halves, so that at the end each lane holds the fold of all ----

struct Folder {
  X86Context& c;
  const Emission& e;
  FoldBy by;
  ElementType element = e.out[0].element;
  Xbyak::CodeGenerator& g = c.gen();

  Xmm temporary(size_t i, const Xmm& like) const { return c.vector(e.vectors[i], like.getBit()); }

  // acc = the larger or smaller; NaN if either is.
  void extreme_float(const Xmm& acc, const Xmm& other) const {
    const bool wide = element.bits() == 64, max = by == FoldBy::max;
    const Xmm result = temporary(1, acc);
    // The instruction answers its second operand when one is NaN, so acc's NaN is put back.
    if (max)
      wide ? g.vmaxpd(result, acc, other) : g.vmaxps(result, acc, other);
    else
      wide ? g.vminpd(result, acc, other) : g.vminps(result, acc, other);
    if (c.avx512()) {
      const Xbyak::Opmask number = c.mask(e.masks[0]);
      wide ? g.vcmpordpd(number, acc, acc) : g.vcmpordps(number, acc, acc);
      return wide ? g.vmovapd(acc | number, result) : g.vmovaps(acc | number, result);
    }
    const Xmm nan = temporary(2, acc);
    wide ? g.vcmpunordpd(nan, acc, acc) : g.vcmpunordps(nan, acc, acc);
    wide ? g.vblendvpd(acc, result, acc, nan) : g.vblendvps(acc, result, acc, nan);
  }

  void extreme_int32(const Xmm& acc, const Xmm& other) const {
    if (by == FoldBy::max) return element == kI32 ? g.vpmaxsd(acc, acc, other) : g.vpmaxud(acc, acc, other);
    element == kI32 ? g.vpminsd(acc, acc, other) : g.vpminud(acc, acc, other);
  }

  // avx2 compares signed numbers only: the sign bits of unsigned ones are turned.
  void extreme_int64_avx2(const Xmm& acc, const Xmm& other) const {
    const Xmm greater = temporary(1, acc), right = temporary(2, acc);
    if (element == kU64) {
      g.vpxor(greater, acc, c.constant(kI64, uint64_t{1} << 63));
      g.vpxor(right, other, c.constant(kI64, uint64_t{1} << 63));
      g.vpcmpgtq(greater, greater, right);
    } else {
      g.vpcmpgtq(greater, acc, other);
    }
    by == FoldBy::max ? g.vblendvpd(acc, other, acc, greater) : g.vblendvpd(acc, acc, other, greater);
  }

  void extreme_int64(const Xmm& acc, const Xmm& other) const {
    if (!c.avx512()) return extreme_int64_avx2(acc, other);
    if (by == FoldBy::max) return element == kI64 ? g.vpmaxsq(acc, acc, other) : g.vpmaxuq(acc, acc, other);
    element == kI64 ? g.vpminsq(acc, acc, other) : g.vpminuq(acc, acc, other);
  }

  // The low 64 bits: low * low + (high * low + low * high) * 2^32.
  void multiply_int64(const Xmm& acc, const Xmm& other) const {
    if (c.avx512()) return g.vpmullq(acc, acc, other);
    const Xmm cross = temporary(1, acc), second = temporary(2, acc);
    g.vpsrlq(cross, acc, 32);
    g.vpmuludq(cross, cross, other);
    g.vpsrlq(second, other, 32);
    g.vpmuludq(second, second, acc);
    g.vpaddq(cross, cross, second);
    g.vpsllq(cross, cross, 32);
    g.vpmuludq(acc, acc, other);
    g.vpaddq(acc, acc, cross);
  }

  void combine_float(const Xmm& acc, const Xmm& other) const {
    const bool wide = element.bits() == 64;
    switch (by) {
      case FoldBy::add: return wide ? g.vaddpd(acc, acc, other) : g.vaddps(acc, acc, other);
      case FoldBy::mul: return wide ? g.vmulpd(acc, acc, other) : g.vmulps(acc, acc, other);
      default: return extreme_float(acc, other);
    }
  }

  void combine(const Xmm& acc, const Xmm& other) const {
    const bool wide = element.bits() == 64;
    if (element.is_float()) return combine_float(acc, other);
    switch (by) {
      case FoldBy::add: return wide ? g.vpaddq(acc, acc, other) : g.vpaddd(acc, acc, other);
      case FoldBy::mul: return wide ? multiply_int64(acc, other) : g.vpmulld(acc, acc, other);
      default: return wide ? extreme_int64(acc, other) : extreme_int32(acc, other);
    }
  }

  void run() const {
    const Xmm acc = c.vector(e.out[0], e.lanes), other = temporary(0, acc);
    const int bits = e.lanes * element.bits();
    c.move(acc, c.vector(e.in[0], e.lanes));
    if (bits >= 512) {
      g.vshuff64x2(c.zmm(other.getIdx()), c.zmm(acc.getIdx()), c.zmm(acc.getIdx()), 0x4e);
      combine(acc, other);
    }
    if (bits >= 256) {
      if (acc.isZMM())
        g.vpermq(c.zmm(other.getIdx()), acc, 0x4e);
      else
        g.vpermq(c.ymm(other.getIdx()), acc, 0x4e);
      combine(acc, other);
    }
    if (bits >= 128) {
      g.vpshufd(other, acc, 0x4e);
      combine(acc, other);
    }
    if (element.bits() == 32 && bits >= 64) {
      g.vpshufd(other, acc, 0xb1);
      combine(acc, other);
    }
    // Of +0 and -0, or two NaNs, each half took its own.
    if (!element.is_float() || by == FoldBy::add || by == FoldBy::mul) return;
    const Xmm low = c.xmm(acc.getIdx());
    element.bits() == 64 ? g.vpbroadcastq(acc, low) : g.vpbroadcastd(acc, low);
  }
};

// ---- FoldRows: four vectors share each step, one half of a register for each, then a quarter; every lane of the four
// goes the way that it goes in FoldLanes ----

struct RowFolder {
  X86Context& c;
  const Emission& e;
  FoldBy by;
  Folder folder{c, e, by};
  ElementType element = e.out[0].element;
  int bits = e.lanes * element.bits();
  Xbyak::CodeGenerator& g = c.gen();

  Xmm temporary(size_t i) const { return c.vector(e.vectors[i], bits); }
  Xmm row(size_t i) const { return c.vector(e.in[i], e.lanes); }

  // The lower halves of a and b side by side, and the upper ones.
  void halves(const Xmm& low, const Xmm& high, const Xmm& a, const Xmm& b) const {
    if (bits == 128) {
      g.vunpcklpd(low, a, b);
      g.vunpckhpd(high, a, b);
    } else if (bits == 256 && !c.avx512()) {
      g.vperm2f128(c.ymm(low.getIdx()), c.ymm(a.getIdx()), b, 0x20);
      g.vperm2f128(c.ymm(high.getIdx()), c.ymm(a.getIdx()), b, 0x31);
    } else if (bits == 256) {
      g.vshuff64x2(c.ymm(low.getIdx()), c.ymm(a.getIdx()), b, 0);
      g.vshuff64x2(c.ymm(high.getIdx()), c.ymm(a.getIdx()), b, 3);
    } else {
      g.vshuff64x2(c.zmm(low.getIdx()), c.zmm(a.getIdx()), b, 0x44);
      g.vshuff64x2(c.zmm(high.getIdx()), c.zmm(a.getIdx()), b, 0xee);
    }
  }

  // The lower halves of the halves of a and b, and the upper ones: of rows 0 1 2 3, or 0 2 1 3 where bits are 256.
  void quarters(const Xmm& low, const Xmm& high, const Xmm& a, const Xmm& b) const {
    if (bits == 128) {
      g.vshufps(low, a, b, 0x88);
      g.vshufps(high, a, b, 0xdd);
    } else if (bits == 256) {
      g.vunpcklpd(low, a, b);
      g.vunpckhpd(high, a, b);
    } else {
      g.vshuff64x2(c.zmm(low.getIdx()), c.zmm(a.getIdx()), b, 0x88);
      g.vshuff64x2(c.zmm(high.getIdx()), c.zmm(a.getIdx()), b, 0xdd);
    }
  }

  // Lanes of `shuffle` of each 128 bits, onto the others.
  void fold_inside(const Xmm& acc, const Xmm& other, int shuffle) const {
    g.vpshufd(other, acc, static_cast<uint8_t>(shuffle));
    folder.combine(acc, other);
  }

  // All lanes of a row are its first: of +0 and -0, or two NaNs, each lane took its own.
  void spread(const Xmm& folded) const {
    constexpr std::array<int, 4> kOrdered{0x00, 0x55, 0xaa, 0xff}, kCrossed{0x00, 0xaa, 0x55, 0xff};
    if (element.bits() == 32 && bits > 128) g.vpshufd(folded, folded, bits == 256 ? 0xa0 : 0x00);
    if (element.bits() == 64 && bits == 512) g.vpshufd(folded, folded, 0x44);
    for (size_t i = 0; i < 4; ++i) {
      const auto ordered = static_cast<uint8_t>(kOrdered[i]);
      const int out = e.out[i].at.number;
      if (bits == 128)
        g.vpshufd(c.xmm(out), folded, ordered);
      else if (bits == 256)
        g.vpermpd(c.ymm(out), folded, static_cast<uint8_t>(kCrossed[i]));
      else
        g.vshuff64x2(c.zmm(out), c.zmm(folded.getIdx()), folded, ordered);
    }
  }

  // Folder::combine takes the temporaries 1 and 2.
  void run() const {
    const Xmm low = temporary(0), high = temporary(3), second = temporary(4);
    halves(low, high, row(0), row(1));
    folder.combine(low, high);
    halves(second, high, row(2), row(3));
    folder.combine(second, high);
    const Xmm all = temporary(5);
    quarters(all, high, low, second);
    folder.combine(all, high);
    if (bits == 512) fold_inside(all, high, 0x4e);
    if (element.bits() == 32 && bits > 128) fold_inside(all, high, 0xb1);
    spread(all);
  }
};

Result<void> emit_fold_rows(X86Context& c, const Emission& e) {
  TENON_TRY(by, fold_by(e));
  RowFolder{c, e, by}.run();
  return {};
}

Result<void> emit_fold_lanes(X86Context& c, const Emission& e) {
  TENON_TRY(by, fold_by(e));
  Folder{c, e, by}.run();
  return {};
}

JitterRow row(const char* op, bool avx512, codegen::ScratchNeeds scratch, double cycles,
              std::unique_ptr<codegen::Emitter> (*make)(const Attributes&)) {
  JitterRow made{.op = op, .types = codegen::kNumberLanes, .scratch = scratch, .cycles = cycles, .make = make};
  (avx512 ? made.feature : made.without) = kAvx512Feature;
  return made;
}

}  // namespace

std::vector<JitterRow> fold_rows() {
  std::vector<JitterRow> rows;
  rows.push_back(row("FillTail", true, {.masks = 1}, 2, make_function<emit_fill_tail>));
  rows.push_back(row("FillTail", false, {.vectors = 2}, 3, make_function<emit_fill_tail>));
  rows.push_back(row("FoldLanes", true, {.vectors = 2, .masks = 1}, 16, make_function<emit_fold_lanes>));
  rows.push_back(row("FoldLanes", false, {.vectors = 3}, 18, make_function<emit_fold_lanes>));
  rows.push_back(row("FoldRows", true, {.vectors = 6, .masks = 1}, 24, make_function<emit_fold_rows>));
  rows.push_back(row("FoldRows", false, {.vectors = 6}, 28, make_function<emit_fold_rows>));
  return rows;
}

}  // namespace tenon::x86
