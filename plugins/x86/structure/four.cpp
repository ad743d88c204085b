// Four rows at once. FoldRows reduces each into a register of its own; FoldFour reduces them into the first four lanes
// of one register, whose other lanes are undefined. Also operators on such groups of four lanes.
#include <algorithm>
#include <array>

#include "x86/structure/fold.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Xmm;

// Repeats the four lanes up to the end of the register.
void repeat_four(X86Context& c, const Xmm& out, const Xmm& in, ElementType element) {
  auto& g = c.gen();
  const bool wide = element.bits() == 64;
  if (static_cast<int>(out.getBit()) == 4 * element.bits())
    c.move(out, in);
  else if (out.isZMM())
    g.vshuff64x2(c.zmm(out.getIdx()), c.zmm(in.getIdx()), in, wide ? 0x44 : 0x00);
  else if (c.avx512())
    g.vshuff64x2(c.ymm(out.getIdx()), c.ymm(in.getIdx()), in, 0);
  else
    g.vinsertf128(c.ymm(out.getIdx()), c.ymm(in.getIdx()), c.xmm(in.getIdx()), 1);
}

// Broadcasts lane `at` of each group of four lanes to the whole group.
void spread_four(X86Context& c, const Xmm& out, const Xmm& in, ElementType element, int at) {
  const auto shuffle = static_cast<uint8_t>(at * 0x55);
  if (element.bits() == 32)
    c.gen().vpermilps(out, in, shuffle);
  else if (out.isZMM())
    c.gen().vpermpd(c.zmm(out.getIdx()), in, shuffle);
  else
    c.gen().vpermpd(c.ymm(out.getIdx()), in, shuffle);
}

// Four vectors share each step: one takes half of a register, then a quarter. Each lane of the four is combined in the
// same order as in FoldLanes, so the bits are the same.

struct RowFolder {
  X86Context& c;
  const Emission& e;
  FoldBy by;
  Folder folder{c, e, by};
  ElementType element = e.out[0].element;
  // All four results are in one register.
  int bits = std::max(folded_bits(e, by), 4 * static_cast<int>(element.bits())), whole = e.lanes * element.bits();
  Xbyak::CodeGenerator& g = c.gen();

  Xmm temporary(size_t i) const { return c.vector(e.vectors[i], bits); }
  Xmm row(size_t i) const { return c.vector(e.in[i].at.number, bits); }

  // low = the lower halves of a and b, high = the upper ones.
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

  // The lower halves of the halves of a and b, and the upper ones: of rows 0 1 2 3, or of 0 2 1 3 where bits is 256.
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

  // Combines each 128 bits with its own lanes permuted by `shuffle`.
  void fold_inside(const Xmm& acc, const Xmm& other, int shuffle) const {
    g.vpshufd(other, acc, static_cast<uint8_t>(shuffle));
    folder.combine(acc, other);
  }

  // Broadcasts the first lane of a row: with +0 and -0, or two NaNs, the lanes may hold different ones.
  void spread(const Xmm& folded) const {
    if (bits < whole) return spread_packed(folded);
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

  // For registers that hold more lanes than were reduced.
  void spread_packed(const Xmm& folded) const {
    const Xmm four = c.vector(e.vectors[0], whole);
    pack(four, folded);
    repeat_four(c, four, four, element);
    for (size_t i = 0; i < 4; ++i) spread_four(c, c.vector(e.out[i], e.lanes), four, element, static_cast<int>(i));
  }

  // Packs the four rows into the first four lanes of `out`; clobbers temporary 1.
  void pack(const Xmm& out, const Xmm& folded) const {
    const Xmm numbers = temporary(1), low = c.xmm(folded.getIdx()), high = c.xmm(numbers.getIdx());
    constexpr std::array<uint32_t, 16> kFloats{0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12},
        kDoubles{0, 0, 2, 0, 4, 0, 6, 0, 0, 0, 2, 0, 4, 0, 6, 0};
    if (bits == 512) {
      const bool wide = element.bits() == 64;
      g.vmovups(numbers, c.table(wide ? kDoubles : kFloats));
      wide ? g.vpermpd(c.zmm(out.getIdx()), c.zmm(numbers.getIdx()), folded)
           : g.vpermps(c.zmm(out.getIdx()), c.zmm(numbers.getIdx()), folded);
    } else if (element.bits() == 64) {
      g.vpermpd(c.ymm(out.getIdx()), folded, 0xd8);
    } else if (bits == 256) {
      c.avx512() ? g.vextractf32x4(high, c.ymm(folded.getIdx()), 1) : g.vextractf128(high, c.ymm(folded.getIdx()), 1);
      g.vshufps(high, low, high, 0x88);
      g.vpermilps(c.xmm(out.getIdx()), high, 0xd8);
    } else {
      c.move(c.xmm(out.getIdx()), folded);
    }
  }

  // Returns the register with the four rows, each in its lanes. Folder::combine clobbers the temporaries 1 and 2.
  Xmm fold() const {
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
    return all;
  }
};

Result<void> emit_fold_rows(X86Context& c, const Emission& e) {
  TENON_TRY(by, fold_by(e));
  const RowFolder folder{c, e, by};
  folder.spread(folder.fold());
  return {};
}

Result<void> emit_fold_four(X86Context& c, const Emission& e) {
  TENON_TRY(by, fold_by(e));
  const RowFolder folder{c, e, by};
  folder.pack(c.vector(e.out[0], e.lanes), folder.fold());
  return {};
}

// The part of the register that has four lanes.
Xmm four_of(const X86Context& c, const EmitValue& value) { return c.vector(value, 4); }

Result<void> emit_divide_four(X86Context& c, const Emission& e) {
  const Xmm out = four_of(c, e.out[0]), a = four_of(c, e.in[0]), b = four_of(c, e.in[1]);
  e.out[0].element == kF64 ? c.gen().vdivpd(out, a, b) : c.gen().vdivps(out, a, b);
  return {};
}

Result<void> emit_root_four(X86Context& c, const Emission& e) {
  const Xmm out = four_of(c, e.out[0]), x = four_of(c, e.in[0]);
  e.out[0].element == kF64 ? c.gen().vsqrtpd(out, x) : c.gen().vsqrtps(out, x);
  return {};
}

Result<void> emit_repeat_four(X86Context& c, const Emission& e) {
  repeat_four(c, c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), e.out[0].element);
  return {};
}

Result<void> emit_spread_four(X86Context& c, const Emission& e) {
  TENON_TRY(at, integer_attribute(e, "at"));
  spread_four(c, c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), e.out[0].element, static_cast<int>(at));
  return {};
}

// Stores the first four lanes.
Result<void> emit_store_four(X86Context& c, const Emission& e) {
  const Xbyak::Address address = c.address(*e.memory);
  if (e.in[0].element.bits() == 64)
    c.gen().vmovups(address, c.ymm(e.in[0].at.number));
  else
    c.gen().vmovups(address, c.xmm(e.in[0].at.number));
  return {};
}

}  // namespace

std::vector<JitterRow> four_rows() {
  std::vector<JitterRow> rows;
  const auto add = [&](const char* op, double cycles, std::unique_ptr<codegen::Emitter> (*make)(const Attributes&)) {
    rows.push_back({.op = op, .types = codegen::kFloatLanes, .cycles = cycles, .make = make});
  };
  rows.push_back(fold_row("FoldRows", true, {.vectors = 6}, 24, make_function<emit_fold_rows>));
  rows.push_back(fold_row("FoldRows", false, {.vectors = 6}, 28, make_function<emit_fold_rows>));
  rows.push_back(fold_row("FoldFour", true, {.vectors = 6}, 22, make_function<emit_fold_four>));
  rows.push_back(fold_row("FoldFour", false, {.vectors = 6}, 26, make_function<emit_fold_four>));
  add("DivFour", 4, make_function<emit_divide_four>);
  add("SqrtFour", 4, make_function<emit_root_four>);
  add("RepeatFour", 1, make_function<emit_repeat_four>);
  add("StoreFour", 1, make_function<emit_store_four>);
  add("SpreadFour", 1, make_function<emit_spread_four>);
  return rows;
}

}  // namespace tenon::x86
