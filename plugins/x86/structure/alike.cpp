// Quotients and roots of uniform values. The divider processes a vector in groups of lanes, so 128 bits and a broadcast
// take a third of the time of a whole vector. With attribute `first_lane` only lane 0 is needed.
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Xmm;

void spread_first_lane(X86Context& c, const Emission& e) {
  if (e.attributes.find("first_lane")) return;
  const Xmm out = c.vector(e.out[0], e.lanes), low = c.xmm(out.getIdx());
  e.out[0].element.bits() == 64 ? c.gen().vpbroadcastq(out, low) : c.gen().vpbroadcastd(out, low);
}

Result<void> emit_divide_alike(X86Context& c, const Emission& e) {
  const Xmm low = c.xmm(e.out[0].at.number), a = c.xmm(e.in[0].at.number), b = c.xmm(e.in[1].at.number);
  e.out[0].element == kF64 ? c.gen().vdivpd(low, a, b) : c.gen().vdivps(low, a, b);
  spread_first_lane(c, e);
  return {};
}

Result<void> emit_root_alike(X86Context& c, const Emission& e) {
  const Xmm low = c.xmm(e.out[0].at.number), x = c.xmm(e.in[0].at.number);
  e.out[0].element == kF64 ? c.gen().vsqrtpd(low, x) : c.gen().vsqrtps(low, x);
  spread_first_lane(c, e);
  return {};
}

}  // namespace

std::vector<JitterRow> alike_rows() {
  std::vector<JitterRow> rows;
  rows.push_back(
      {.op = "DivAlike", .types = codegen::kFloatLanes, .cycles = 4, .make = make_function<emit_divide_alike>});
  rows.push_back(
      {.op = "SqrtAlike", .types = codegen::kFloatLanes, .cycles = 4, .make = make_function<emit_root_alike>});
  return rows;
}

}  // namespace tenon::x86
