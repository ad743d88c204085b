// FillTail, FoldLanes, and the propagation of NaN to the result from the vectors of a reduction (passes/nan.cpp).
#include "x86/structure/fold.hpp"

#include <array>

namespace tenon::x86 {

Result<FoldBy> fold_by(const Emission& e) {
  constexpr std::array<std::string_view, 4> kNames{"Add", "Mul", "Max", "Min"};
  const Attribute* by = e.attributes.find("by");
  const std::string* name = by ? by->get_if<std::string>() : nullptr;
  for (size_t i = 0; name && i < kNames.size(); ++i)
    if (*name == kNames[i]) return static_cast<FoldBy>(i);
  return error(Code::internal, e.op, " by '", name ? *name : std::string(), "': Add, Mul, Max or Min is possible");
}

int folded_bits(const Emission& e, FoldBy by) {
  const ElementType element = e.out[0].element;
  const int whole = e.lanes * element.bits();
  const Attribute* first = e.attributes.find("first");
  if (!first) return whole;
  const bool needs_another = element.is_float() && by == FoldBy::add;
  const int64_t needed = (*first->get_if<int64_t>() + (needs_another ? 1 : 0)) * element.bits();
  for (const int bits : {128, 256})
    if (needed <= bits && bits < whole) return bits;
  return whole;
}

namespace {

using Xbyak::Xmm;

// ---- FillTail ----

void fill_avx512(X86Context& c, const Emission& e, uint64_t bits) {
  auto& g = c.gen();
  const ElementType element = e.out[0].element;
  const Xmm out = c.vector(e.out[0], e.lanes);
  if (bits == 0) {
    const Xmm inside = out | c.mask(e.in[1]) | Xbyak::util::T_z, in = c.vector(e.in[0], e.lanes);
    return element.bits() == 64 ? g.vmovapd(inside, in) : g.vmovaps(inside, in);
  }
  if (e.out[0].at.number != e.in[0].at.number) {
    const Xmm inside = out | c.mask(e.in[1]), in = c.vector(e.in[0], e.lanes);
    c.broadcast_kept(out, element, bits);
    return element.bits() == 64 ? g.vmovapd(inside, in) : g.vmovaps(inside, in);
  }
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

Result<void> emit_fold_lanes(X86Context& c, const Emission& e) {
  TENON_TRY(by, fold_by(e));
  Folder{c, e, by}.run();
  return {};
}

Result<void> emit_mark_nan(X86Context& c, const Emission& e) {
  const bool wide = e.out[0].element == kF64;
  const Xmm marks = c.vector(e.out[0], e.lanes), a = c.vector(e.in[1], e.lanes), b = c.vector(e.in[2], e.lanes);
  if (c.avx512()) {
    constexpr uint8_t kUnordered = 3, kOnes = 0xff;
    const Xbyak::Opmask nan = c.mask(e.masks[0]);
    c.move(marks, c.vector(e.in[0], e.lanes));
    wide ? c.gen().vcmppd(nan, a, b, kUnordered) : c.gen().vcmpps(nan, a, b, kUnordered);
    wide ? c.gen().vpternlogq(marks | nan, marks, marks, kOnes) : c.gen().vpternlogd(marks | nan, marks, marks, kOnes);
    return {};
  }
  const Xmm nan = c.vector(e.vectors[0], marks.getBit());
  wide ? c.gen().vcmpunordpd(nan, a, b) : c.gen().vcmpunordps(nan, a, b);
  c.gen().vorps(marks, c.vector(e.in[0], e.lanes), nan);
  return {};
}
Result<void> emit_put_nan(X86Context& c, const Emission& e) {
  c.gen().vorps(c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), c.vector(e.in[1], e.lanes));
  return {};
}

}  // namespace

std::vector<JitterRow> fold_rows() {
  std::vector<JitterRow> rows;
  for (JitterRow row : {fold_row("MarkNaN", true, {.masks = 1}, 1.5, make_function<emit_mark_nan>),
                        fold_row("MarkNaN", false, {.vectors = 1}, 1, make_function<emit_mark_nan>),
                        fold_row("PutNaN", true, {}, 1, make_function<emit_put_nan>),
                        fold_row("PutNaN", false, {}, 1, make_function<emit_put_nan>)}) {
    row.types = codegen::kFloatLanes;
    rows.push_back(std::move(row));
  }
  rows.push_back(fold_row("FillTail", true, {.masks = 1}, 2, make_function<emit_fill_tail>));
  rows.push_back(fold_row("FillTail", false, {.vectors = 2}, 3, make_function<emit_fill_tail>));
  rows.push_back(fold_row("FoldLanes", true, {.vectors = 2}, 16, make_function<emit_fold_lanes>));
  rows.push_back(fold_row("FoldLanes", false, {.vectors = 3}, 18, make_function<emit_fold_lanes>));
  return rows;
}

}  // namespace tenon::x86
