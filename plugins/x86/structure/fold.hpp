// Reductions over lanes by halving, shared by FoldLanes and the reductions of several rows.
#pragma once
#include "x86/structure/internal.hpp"

namespace tenon::x86 {

enum class FoldBy : uint8_t { add, mul, max, min };

// Attribute `by`; an error for any value but the four.
Result<FoldBy> fold_by(const Emission& e);

// How many bits of a register hold lanes to be reduced: all, or 128 or 256 when the lanes after those hold the neutral
// element (attribute `first`). For a sum of floats one of the latter is included, so that the sum of rows of -0 is 0.
int folded_bits(const Emission& e, FoldBy by);

// FoldLanes: halves are combined repeatedly, so that at the end each lane holds the reduction of all lanes, or with
// attribute `first_lane` only lane 0. `e` has scratch vectors.
struct Folder {
  using Xmm = Xbyak::Xmm;
  X86Context& c;
  const Emission& e;
  FoldBy by;
  ElementType element = e.out[0].element;
  Xbyak::CodeGenerator& g = c.gen();

  Xmm temporary(size_t i, const Xmm& like) const { return c.vector(e.vectors[i], like.getBit()); }

  // acc = the larger or smaller; NaN if either is, where that is requested (body/spared.hpp).
  void extreme_float(const Xmm& acc, const Xmm& other) const {
    const bool wide = element.bits() == 64, max = by == FoldBy::max;
    if (e.attributes.has("numbers")) return max ? g.vmaxps(acc, acc, other) : g.vminps(acc, acc, other);
    if (e.attributes.has("magnitudes")) return g.vpmaxsd(acc, acc, other);
    const Xmm result = temporary(1, acc);
    // The instruction returns its second operand when one is NaN, so acc's NaN is restored, or a NaN of all ones.
    if (max)
      wide ? g.vmaxpd(result, acc, other) : g.vmaxps(result, acc, other);
    else
      wide ? g.vminpd(result, acc, other) : g.vminps(result, acc, other);
    if (c.avx512()) {
      constexpr uint64_t kNaNs = 0x22;  // quiet and signalling NaN of acc: the NaN, quiet; otherwise unchanged
      wide ? g.vfixupimmpd(result, acc, c.constant(element, kNaNs), 0)
           : g.vfixupimmps(result, acc, c.constant(element, kNaNs), 0);
      return c.move(acc, result);
    }
    const Xmm nan = temporary(2, acc);
    wide ? g.vcmpunordpd(nan, acc, acc) : g.vcmpunordps(nan, acc, acc);
    wide ? g.vorpd(acc, result, nan) : g.vorps(acc, result, nan);
  }

  void extreme_int32(const Xmm& acc, const Xmm& other) const {
    if (by == FoldBy::max) return element == kI32 ? g.vpmaxsd(acc, acc, other) : g.vpmaxud(acc, acc, other);
    element == kI32 ? g.vpminsd(acc, acc, other) : g.vpminud(acc, acc, other);
  }

  // avx2 compares signed numbers only: the sign bits of unsigned ones are flipped.
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

  // Combines the upper half with the lower one: the rest of a reduction of 512 bits then takes half the time.
  void halve(int bits) const {
    const int to = e.out[0].at.number, from = e.vectors[0];
    const Xmm acc = c.vector(e.out[0].at.number, bits / 2), other = temporary(0, acc);
    if (bits == 512)
      g.vextractf64x4(c.ymm(from), c.zmm(to), 1);
    else
      g.vextractf64x2(c.xmm(from), c.ymm(to), 1);
    combine(acc, other);
  }

  void run() const {
    const int bits = folded_bits(e, by);
    Xmm acc = c.vector(e.out[0].at.number, bits);
    c.move(acc, c.vector(e.in[0].at.number, bits));
    if (bits == 512) {
      halve(512), halve(256);
      acc = c.xmm(acc.getIdx());
    } else if (bits == 256) {
      g.vpermq(c.ymm(e.vectors[0]), acc, 0x4e);
      combine(acc, temporary(0, acc));
    }
    const Xmm other = temporary(0, acc);
    if (bits >= 128) {
      g.vpshufd(other, acc, 0x4e);
      combine(acc, other);
    }
    if (element.bits() == 32 && bits >= 64) {
      g.vpshufd(other, acc, 0xb1);
      combine(acc, other);
    }
    if (e.attributes.has("first_lane")) return;
    // With +0 and -0, or two NaNs, the halves may hold different ones.
    const bool alike = !element.is_float() || by == FoldBy::add || by == FoldBy::mul;
    if (alike && static_cast<int>(acc.getBit()) == e.lanes * element.bits()) return;
    const Xmm low = c.xmm(acc.getIdx()), all = c.vector(e.out[0], e.lanes);
    element.bits() == 64 ? g.vpbroadcastq(all, low) : g.vpbroadcastd(all, low);
  }
};

// A row for numbers, for one of the two instruction sets.
inline JitterRow fold_row(const char* op, bool avx512, codegen::ScratchNeeds scratch, double cycles,
                          std::unique_ptr<codegen::Emitter> (*make)(const Attributes&)) {
  JitterRow made{.op = op, .types = codegen::kNumberLanes, .scratch = scratch, .cycles = cycles, .make = make};
  (avx512 ? made.feature : made.without) = kAvx512Feature;
  return made;
}

}  // namespace tenon::x86
