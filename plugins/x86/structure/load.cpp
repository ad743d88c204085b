// Load and BroadcastLoad, with conversion to lanes.
#include "x86/assembly/partial.hpp"
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Operand;
using Xbyak::Xmm;

// out's lanes = the elements in `from` (memory, or a register that holds them contiguously). `out` may be masked.
void convert(X86Context& c, const Xmm& out, ElementType element, const Operand& from) {
  auto& g = c.gen();
  if (element == kF16) return g.vcvtph2ps(out, from);
  if (element == kI8) return g.vpmovsxbd(out, from);
  if (element == kU8) return g.vpmovzxbd(out, from);
  if (element == kI16) return g.vpmovsxwd(out, from);
  if (element == kU16) return g.vpmovzxwd(out, from);
  if (element == kBF16) {
    g.vpmovzxwd(out, from);
    const Xmm all = c.vector(out.getIdx(), out.getBit());
    return g.vpslld(all, all, 16);
  }
  element.bits() == 64 ? g.vmovupd(out, from) : g.vmovups(out, from);
}

// out's lanes = a mask of the bytes in `from` that are 1 (avx2).
void bytes_to_lane_mask(X86Context& c, const Xmm& out, int lanes, const Operand& from) {
  auto& g = c.gen();
  if (mask_bits(lanes) == 64) {
    g.vpmovzxbq(out, from);
    return g.vpcmpgtq(out, out, c.constant(kI64, 0));
  }
  g.vpmovzxbd(out, from);
  g.vpcmpgtd(out, out, c.constant(kI32, 0));
}

// One element to lane 0; the other lanes are zero.
void load_one(X86Context& c, const EmitValue& value, int lanes, const EmitAddress& memory) {
  auto& g = c.gen();
  const Xbyak::Reg32 bits = c.scratch().cvt32();
  const Xbyak::Address from = c.address(memory);
  const Xmm out = c.xmm(value.at.number);
  const auto number = [&](int size, bool is_signed) {
    const Xbyak::Address narrow = size == 8 ? g.byte[from.getRegExp()] : g.word[from.getRegExp()];
    is_signed ? g.movsx(bits, narrow) : g.movzx(bits, narrow);
  };
  const ElementType element = memory.element;
  if (element.is_bool()) {
    number(8, false);
    if (c.avx512()) return g.kmovd(c.mask(value), bits);
    g.neg(c.scratch());
    return mask_bits(lanes) == 64 ? g.vmovq(out, c.scratch()) : g.vmovd(out, bits);
  }
  if (element.bits() == 64) return g.vmovq(out, from);
  if (element.bits() == 32) return g.vmovd(out, from);
  number(element.bits(), element.is_signed_int());
  if (element == kBF16) g.shl(bits, 16);
  g.vmovd(out, bits);
  if (element == kF16) g.vcvtph2ps(out, out);
}

// in: the operands of the tail. avx512: mask; avx2: mask and count.
void load_avx512(X86Context& c, const Emission& e, const EmitAddress& memory) {
  auto& g = c.gen();
  const bool partial = e.touched == Lanes::partial;
  const auto masked = [&](const Xmm& out) { return partial ? out | c.mask(e.in[0]) | Xbyak::util::T_z : out; };
  if (!memory.element.is_bool())
    return convert(c, masked(c.vector(e.out[0], e.lanes)), memory.element, c.address(memory));
  const Xmm bytes = c.xmm(e.vectors[0]);
  if (partial || e.lanes == 16)
    g.vmovdqu8(masked(bytes), c.address(memory));
  else
    g.vmovq(bytes, c.address(memory));
  g.vptestmb(c.mask(e.out[0]), bytes, bytes);
}

void load_few_lanes(X86Context& c, const Emission& e, const EmitAddress& memory) {
  const Xmm out = c.vector(e.out[0], e.lanes), packed = c.xmm(out.getIdx());
  if (const Attribute* known = e.attributes.find("count"))
    load_bytes(c, packed, memory, static_cast<int>(*known->get_if<int64_t>()) * memory.element.bits() / 8);
  else
    load_few(c, packed, memory, c.general(e.in[1]), e.lanes - 1, {c.general(e.generals[0]), c.general(e.generals[1])});
  if (memory.element.is_bool()) return bytes_to_lane_mask(c, out, e.lanes, packed);
  convert(c, out, memory.element, packed);
}

void load_masked(X86Context& c, const Emission& e, const EmitAddress& memory) {
  const Xmm out = c.vector(e.out[0], e.lanes);
  const int mask = e.in[0].at.number;
  if (memory.element.bits() == 64) return c.gen().vmaskmovpd(out, c.ymm(mask), c.address(memory));
  if (mask_bits(e.lanes) == 32) return c.gen().vmaskmovps(out, c.ymm(mask), c.address(memory));
  c.narrow_mask(out, c.ymm(mask));  // the row has early_result, so out is not the mask
  c.gen().vmaskmovps(out, out, c.address(memory));
}

void load_avx2(X86Context& c, const Emission& e, const EmitAddress& memory) {
  const Xmm out = c.vector(e.out[0], e.lanes);
  if (e.touched == Lanes::partial)
    return memory.element.bits() < 32 ? load_few_lanes(c, e, memory) : load_masked(c, e, memory);
  if (memory.element.is_bool()) return bytes_to_lane_mask(c, out, e.lanes, c.address(memory));
  convert(c, out, memory.element, c.address(memory));
}

Result<void> emit_load(X86Context& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.out[0].element));
  if (e.touched == Lanes::one)
    load_one(c, e.out[0], e.lanes, *memory);
  else
    c.avx512() ? load_avx512(c, e, *memory) : load_avx2(c, e, *memory);
  return {};
}

// Two loads, each within a line: a single load across two lines waits for both.
Result<void> emit_load_halves(X86Context& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.out[0].element));
  const Xmm out = c.vector(e.out[0], e.lanes);
  if (!out.isZMM() || e.touched != Lanes::full)
    return error(Code::internal, e.op, " of ", out.getBit(), " bits: whole vectors of 512 alone have halves");
  const Xbyak::Zmm all(out.getIdx());
  c.gen().vmovups(c.ymm(out.getIdx()), c.address(*memory));
  c.gen().vinsertf64x4(all, all, c.address(*memory, 32), 1);
  return {};
}

// Loads as many bytes as the vector holds (emitters/bytes.cpp).
Result<void> emit_load_bytes(X86Context& c, const Emission& e) {
  if (!e.memory) return error(Code::internal, e.op, " without memory");
  c.gen().vmovups(c.vector(e.out[0], e.lanes), c.address(*e.memory));
  return {};
}

void broadcast_bool(X86Context& c, const Emission& e, const EmitAddress& memory) {
  auto& g = c.gen();
  const Xmm out = c.vector(e.out[0], e.lanes);
  if (!c.avx512()) {
    g.vpbroadcastb(c.xmm(out.getIdx()), c.address(memory));
    return bytes_to_lane_mask(c, out, e.lanes, c.xmm(out.getIdx()));
  }
  const Xbyak::Reg32 bits = c.scratch().cvt32();
  g.movzx(bits, g.byte[c.address(memory).getRegExp()]);
  g.neg(bits);
  g.kmovd(c.mask(e.out[0]), bits);
}

Result<void> emit_broadcast_load(X86Context& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.out[0].element));
  if (memory->element.is_bool()) return broadcast_bool(c, e, *memory), Result<void>();
  const Xmm out = c.vector(e.out[0], e.lanes), low = c.xmm(out.getIdx());
  const Xbyak::Address from = c.address(*memory);
  switch (memory->element.bits()) {
    case 64: c.gen().vpbroadcastq(out, from); return {};
    case 32: c.gen().vpbroadcastd(out, from); return {};
    case 16: c.gen().vpbroadcastw(out.getBit() > 256 ? c.ymm(out.getIdx()) : low, from); break;
    default: c.gen().vpbroadcastb(low, from); break;
  }
  // Loads as many packed elements as there are lanes, then widens them like loaded ones.
  convert(c, out, memory->element, out.getBit() > 256 && memory->element.bits() == 16 ? c.ymm(out.getIdx()) : low);
  return {};
}

}  // namespace

std::vector<JitterRow> load_rows() {
  const JitterRow load{.op = "Load", .types = codegen::kAnyLanes, .make = make_function<emit_load>};
  std::vector<JitterRow> rows;
  JitterRow row = load;
  row.feature = kAvx512Feature;
  row.scratch = {.vectors = 1};
  row.cycles = 2;
  row.accepts = lanes_are<kBool>;
  rows.push_back(row);
  row.scratch = {};
  row.cycles = 1;
  row.accepts = nullptr;
  rows.push_back(row);
  row = load;
  row.without = kAvx512Feature;
  row.accepts = lanes_are<kF64, kI64, kU64>;
  rows.push_back(row);
  row.scratch = {.generals = 2};
  row.early_result = true;
  row.accepts = nullptr;
  rows.push_back(row);
  rows.push_back({.op = "LoadHalves",
                  .types = codegen::kNumberLanes,
                  .feature = kAvx512Feature,
                  .cycles = 2,
                  .make = make_function<emit_load_halves>});
  rows.push_back({.op = "LoadBytes", .types = codegen::LaneTypes{kI32, kU32}, .make = make_function<emit_load_bytes>});
  rows.push_back({.op = "BroadcastLoad", .types = codegen::kAnyLanes, .make = make_function<emit_broadcast_load>});
  return rows;
}

}  // namespace tenon::x86
