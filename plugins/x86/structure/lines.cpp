// Stores of whole cache lines along rows that begin anywhere (passes/lines.cpp). A line has 512 bits.
#include <array>
#include <bit>

#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Reg64;

Result<void> check_lanes(const X86Context& c, const Emission& e) {
  if (e.memory && e.touched == Lanes::full && c.avx512() && e.lanes * e.memory->element.bits() == 512) return {};
  return error(Code::internal, e.op, " of ", e.lanes, " lanes: whole vectors of 512 bits in memory alone are lines");
}

// rax = elements from the begin of the line to the address, plus any number of whole lines.
void elements_before(X86Context& c, const Emission& e) {
  c.gen().lea(c.scratch(), c.address(*e.memory));
  c.gen().shr(c.scratch(), std::countr_zero(static_cast<uint32_t>(e.memory->element.bits() / 8)));
}

// Lane i of a rotated vector comes from lane i - (elements before); the permutation takes indices modulo the lanes.
Result<void> emit_line_index(X86Context& c, const Emission& e) {
  TENON_OK(check_lanes(c, e));
  constexpr std::array<uint32_t, 16> k32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  constexpr std::array<uint32_t, 16> k64{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0};
  const Xbyak::Xmm out = c.vector(e.out[0], e.lanes);
  elements_before(c, e);
  c.gen().neg(c.scratch());
  if (e.memory->element.bits() == 64) {
    c.gen().vpbroadcastq(out, c.scratch());
    c.gen().vpaddq(out, out, c.table(k64));
  } else {
    c.gen().vpbroadcastd(out, c.scratch().cvt32());
    c.gen().vpaddd(out, out, c.table(k32));
  }
  return {};
}

// The lanes from the address to the end of the line.
Result<void> emit_line_mask(X86Context& c, const Emission& e) {
  TENON_OK(check_lanes(c, e));
  const Reg64 bits = c.general(e.generals[0]);
  elements_before(c, e);
  c.gen().and_(c.scratch().cvt32(), e.lanes - 1);
  c.gen().mov(bits, -1);
  c.gen().shlx(bits, bits, c.scratch());
  c.gen().kmovd(c.mask(e.out[0]), bits.cvt32());
  return {};
}

Result<void> emit_turn_lanes(X86Context& c, const Emission& e) {
  const Xbyak::Xmm out = c.vector(e.out[0], e.lanes), in = c.vector(e.in[0], e.lanes), by = c.vector(e.in[1], e.lanes);
  if (e.in[0].element.bits() == 64)
    c.gen().vpermpd(Xbyak::Zmm(out.getIdx()), Xbyak::Zmm(by.getIdx()), Xbyak::Zmm(in.getIdx()));
  else
    c.gen().vpermps(Xbyak::Zmm(out.getIdx()), Xbyak::Zmm(by.getIdx()), Xbyak::Zmm(in.getIdx()));
  return {};
}

// rax = begin of the line that contains the address.
void line_of(X86Context& c, const Emission& e) {
  c.gen().lea(c.scratch(), c.address(*e.memory));
  c.gen().and_(c.scratch(), -64);
}

// In the line of a row's first vector, the part before the address belongs to another row.
Result<void> emit_store_line(X86Context& c, const Emission& e) {
  TENON_OK(check_lanes(c, e));
  TENON_TRY(first, integer_attribute(e, "first"));
  const Xbyak::Zmm line = c.zmm(e.vectors[0]), turned = c.zmm(e.in[0].at.number), left = c.zmm(e.in[1].at.number);
  const Xbyak::Opmask mask = c.mask(e.in[2]);
  auto& g = c.gen();
  e.memory->element.bits() == 64 ? g.vblendmpd(line | mask, left, turned) : g.vblendmps(line | mask, left, turned);
  line_of(c, e);
  Xbyak::Label whole, done;
  if (first != 0) {
    const Reg64 counter = c.general(e.memory->index->number);
    g.test(counter, counter);
    g.jnz(whole);
    const Xbyak::Address part = g.ptr[c.scratch()] | mask;
    e.memory->element.bits() == 64 ? g.vmovupd(part, line) : g.vmovups(part, line);
    g.jmp(done);
    g.L(whole);
  }
  g.vmovntps(g.ptr[c.scratch()], line);
  g.L(done);
  return {};
}

// Stores the remaining lanes of the last vector, if there was one.
Result<void> emit_store_line_rest(X86Context& c, const Emission& e) {
  TENON_OK(check_lanes(c, e));
  const Reg64 counter = c.general(e.memory->index->number);
  const Xbyak::Opmask before = c.mask(e.masks[0]);
  const Xbyak::Zmm left = c.zmm(e.in[0].at.number);
  auto& g = c.gen();
  Xbyak::Label done;
  g.test(counter, counter);
  g.jz(done);
  line_of(c, e);
  g.knotd(before, c.mask(e.in[1]));
  const Xbyak::Address part = g.ptr[c.scratch()] | before;
  e.memory->element.bits() == 64 ? g.vmovupd(part, left) : g.vmovups(part, left);
  g.L(done);
  return {};
}

}  // namespace

std::vector<JitterRow> line_rows() {
  const auto row = [](const char* op, codegen::ScratchNeeds scratch, auto make) {
    return JitterRow{
        .op = op, .types = codegen::kNumberLanes, .feature = kAvx512Feature, .scratch = scratch, .make = make};
  };
  std::vector<JitterRow> rows;
  rows.push_back(row("LineIndex", {}, make_function<emit_line_index>));
  JitterRow mask = row("LineMask", {.generals = 1}, make_function<emit_line_mask>);
  mask.types = codegen::LaneTypes{kBool};
  rows.push_back(mask);
  rows.push_back(row("TurnLanes", {}, make_function<emit_turn_lanes>));
  rows.push_back(row("StoreLine", {.vectors = 1}, make_function<emit_store_line>));
  rows.push_back(row("StoreLineRest", {.masks = 1}, make_function<emit_store_line_rest>));
  return rows;
}

}  // namespace tenon::x86
