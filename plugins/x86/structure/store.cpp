// Store and StoreStreaming, with conversion from lanes.
#include <algorithm>
#include <array>

#include "x86/assembly/bfloat.hpp"
#include "x86/assembly/partial.hpp"
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Xmm;

// out's 32-bit lanes = in their low halves the nearest bf16 to those of `in`; out != in.
//   ((in + 0x7fff + bit 16 of in) >> 16), or in >> 16 | 0x40 for a NaN
void round_to_bf16(X86Context& c, const Xmm& out, const Xmm& in, const Emission& e) {
  auto& g = c.gen();
  if (c.avx512()) {
    round_upper_halves(g, out, in, c.mask(e.masks[0]), [&](uint32_t bits) { return c.constant(kI32, bits); });
    return g.vpsrld(out, out, 16);
  }
  g.vpsrld(out, in, 16);
  const Xmm quiet = c.vector(e.vectors[1], in.getBit()), nan = c.vector(e.vectors[2], in.getBit());
  g.vpand(out, out, c.constant(kI32, 1));
  g.vpaddd(out, out, in);
  g.vpaddd(out, out, c.constant(kI32, 0x7fff));
  // For a NaN, its upper half made quiet, without the rounding term. The same shift serves both cases.
  g.vpor(quiet, in, c.constant(kI32, 0x400000));
  g.vcmpunordps(nan, in, in);
  g.vblendvps(out, out, quiet, nan);
  g.vpsrld(out, out, 16);
}

// avx2: packs the low 1 or 2 bytes of in's 32-bit lanes from byte 0 of `out` on; out != in, `other` is scratch.
void pack(X86Context& c, const Xmm& out, const Xmm& in, int bytes, const Xmm& other) {
  auto& g = c.gen();
  constexpr uint32_t kNone = 0x80808080;
  constexpr std::array<uint32_t, 8> kBytes{0x0c080400, kNone, kNone, kNone, 0x0c080400, kNone, kNone, kNone};
  constexpr std::array<uint32_t, 8> kWords{0x05040100, 0x0d0c0908, kNone, kNone, 0x05040100, 0x0d0c0908, kNone, kNone};
  g.vpshufb(out, in, c.table(bytes == 1 ? kBytes : kWords));
  if (!in.isYMM()) return;
  const Xmm low = c.xmm(out.getIdx()), high = c.xmm(other.getIdx());
  g.vextracti128(high, c.ymm(out.getIdx()), 1);
  bytes == 1 ? g.vpunpckldq(low, low, high) : g.vpunpcklqdq(low, low, high);
}

// avx2: how many 32-bit lanes have to be packed for the number of elements stored: half of them, or all.
int lanes_to_pack(const Emission& e) {
  constexpr int kHalf = 4;
  const Attribute* const known = e.attributes.find("count");
  const int64_t wanted = e.touched == Lanes::one ? 1 : known ? *known->get_if<int64_t>() : e.lanes;
  return wanted <= kHalf && !e.in[0].element.is_bool() ? std::min(kHalf, e.lanes) : e.lanes;
}

// avx2: the elements as they are stored, in an Xmm: e.vectors[0].
Xmm packed(X86Context& c, const Emission& e, ElementType element) {
  const Xmm out = c.xmm(e.vectors[0]);
  Xmm in = c.vector(e.in[0], lanes_to_pack(e));
  if (element == kF16) return c.gen().vcvtps2ph(out, in, 0), out;
  if (element.is_bool()) {
    if (mask_bits(e.lanes) == 64) {
      in = c.xmm(e.vectors[1]);
      c.narrow_mask(in, c.ymm(e.in[0].at.number));
    }
    pack(c, c.vector(e.vectors[0], in.getBit()), in, 1, c.xmm(e.vectors[1]));
    c.gen().vpabsb(out, out);
    return out;
  }
  if (element == kBF16) {
    const Xmm rounded = c.vector(e.vectors[2], in.getBit());
    // The third register holds the mask of NaNs until it is no longer needed, so it cannot hold the result.
    round_to_bf16(c, c.vector(e.vectors[0], in.getBit()), in, e);
    c.move(rounded, c.vector(e.vectors[0], in.getBit()));
    in = rounded;
  }
  pack(c, c.vector(e.vectors[0], in.getBit()), in, element.bits() / 8, c.xmm(e.vectors[1]));
  return out;
}

// Stores lane 0, which is element 0 of `in` (an Xmm of elements as they are stored).
void store_first(X86Context& c, const EmitAddress& memory, const Xmm& in) {
  auto& g = c.gen();
  const Xbyak::Address to = c.address(memory);
  switch (memory.element.bits()) {
    case 64: return g.vmovq(to, in);
    case 32: return g.vmovd(to, in);
    case 16: return g.vpextrw(to, in, 0);
    default: return g.vpextrb(to, in, 0);
  }
}

// Stores as many bytes as `lanes` packed elements have: 4, 8 or 16.
void store_packed(X86Context& c, const EmitAddress& memory, const Xmm& in, int lanes) {
  const Xbyak::Address to = c.address(memory);
  switch (lanes * memory.element.bits() / 8) {
    case 4: return c.gen().vmovd(to, in);
    case 8: return c.gen().vmovq(to, in);
    default: return c.gen().vmovups(to, in);
  }
}

// In a tail: `in` holds the packed elements.
void store_part(X86Context& c, const Emission& e, const EmitAddress& memory, const Xmm& in) {
  const int size = memory.element.bits() / 8;
  const Attribute* known = e.attributes.find("count");
  if (known) return store_bytes(c, memory, in, static_cast<int>(*known->get_if<int64_t>()) * size, e.vectors.back());
  if (size >= 4) return store_lanes(c, memory, in, c.general(e.in[2]), e.vectors.back());
  store_few(c, memory, in, c.general(e.in[2]), e.lanes - 1, {c.general(e.generals[0]), c.general(e.generals[0])});
}

void store_avx2(X86Context& c, const Emission& e, const EmitAddress& memory) {
  // The low bytes of lane 0 are in place without packing.
  const bool as_is = memory.element.bits() >= 32 || (e.touched == Lanes::one && memory.element.is_int());
  const Xmm in = as_is ? c.vector(e.in[0], e.lanes) : packed(c, e, memory.element);
  if (e.touched == Lanes::one) return store_first(c, memory, c.xmm(in.getIdx()));
  if (e.touched == Lanes::partial) return store_part(c, e, memory, in);
  as_is ? c.gen().vmovups(c.address(memory), in) : store_packed(c, memory, in, e.lanes);
}

// avx512: stores the lanes of `in`, narrowed; `to` may be masked.
void narrow_store(X86Context& c, const Xbyak::Address& to, const Xmm& in, ElementType element) {
  auto& g = c.gen();
  switch (element.bits()) {
    case 64: return g.vmovupd(to, in);
    case 32: return g.vmovups(to, in);
    case 16: return element == kF16 ? g.vcvtps2ph(to, in, 0) : g.vpmovdw(to, in);
    default: return g.vpmovdb(to, in);
  }
}

// avx512: the lanes of a mask as bytes 0 and 1.
Xmm bytes_of_mask(X86Context& c, const Emission& e) {
  const Xmm out = c.xmm(e.vectors[0]);
  c.gen().vpmovm2b(out, c.mask(e.in[0]));
  c.gen().vpabsb(out, out);
  return out;
}

void store_one_avx512(X86Context& c, const Emission& e, const EmitAddress& memory) {
  if (memory.element.is_bool()) return store_first(c, memory, bytes_of_mask(c, e));
  const Xmm in = c.xmm(e.in[0].at.number);
  if (memory.element != kF16 && memory.element != kBF16) return store_first(c, memory, in);
  const Xmm out = c.xmm(e.vectors[0]);
  memory.element == kF16 ? c.gen().vcvtps2ph(out, in, 0) : round_to_bf16(c, out, in, e);
  store_first(c, memory, out);
}

void store_avx512(X86Context& c, const Emission& e, const EmitAddress& memory) {
  if (e.touched == Lanes::one) return store_one_avx512(c, e, memory);
  const bool partial = e.touched == Lanes::partial;
  const auto masked = [&] { return partial ? c.address(memory) | c.mask(e.in[1]) : c.address(memory); };
  if (memory.element.is_bool()) {
    const Xmm bytes = bytes_of_mask(c, e);
    return partial ? c.gen().vmovdqu8(masked(), bytes) : store_packed(c, memory, bytes, e.lanes);
  }
  Xmm in = c.vector(e.in[0], e.lanes);
  if (memory.element == kBF16) {
    const Xmm out = c.vector(e.vectors[0], in.getBit());
    round_to_bf16(c, out, in, e);
    in = out;
  }
  narrow_store(c, masked(), in, memory.element);
}

Result<void> emit_store(X86Context& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.in[0].element));
  c.avx512() ? store_avx512(c, e, *memory) : store_avx2(c, e, *memory);
  return {};
}

// avx512: the elements as they are stored, in a register of their size: `in`, or e.vectors[0].
Xmm narrowed(X86Context& c, const Emission& e, ElementType element) {
  if (element.is_bool()) return bytes_of_mask(c, e);
  Xmm in = c.vector(e.in[0], e.lanes);
  if (element.bits() >= 32) return in;
  const Xmm out = c.vector(e.vectors[0], e.lanes * element.bits());
  if (element == kF16) return c.gen().vcvtps2ph(out, in, 0), out;
  if (element == kBF16) {
    const Xmm rounded = c.vector(e.vectors[0], in.getBit());
    round_to_bf16(c, rounded, in, e);
    in = rounded;
  }
  element.bits() == 16 ? c.gen().vpmovdw(out, in) : c.gen().vpmovdb(out, in);
  return out;
}

Result<void> emit_streaming(X86Context& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.in[0].element));
  const ElementType element = memory->element;
  if (e.touched != Lanes::full || e.lanes * element.bits() < 128)
    return error(Code::internal, e.op, " of ", e.lanes, " lanes of ", element,
                 ": whole vectors alone are stored non-temporally");
  const bool as_is = !element.is_bool() && element.bits() >= 32;
  const Xmm out = as_is ? c.vector(e.in[0], e.lanes) : c.avx512() ? narrowed(c, e, element) : packed(c, e, element);
  c.gen().vmovntps(c.address(*memory), out);
  return {};
}

// Stores as many bytes as the vector holds (emitters/bytes.cpp).
template <bool kStreaming>
Result<void> emit_store_bytes(X86Context& c, const Emission& e) {
  if (!e.memory) return error(Code::internal, e.op, " without memory");
  const Xmm bytes = c.vector(e.in[0], e.lanes);
  kStreaming ? c.gen().vmovntps(c.address(*e.memory), bytes) : c.gen().vmovups(c.address(*e.memory), bytes);
  return {};
}

struct StoreOp {
  const char* name;
  std::unique_ptr<codegen::Emitter> (*make)(const Attributes&);
};

JitterRow store_row(const StoreOp& op, bool avx512, codegen::ScratchNeeds scratch,
                    bool (*accepts)(const codegen::Signature&)) {
  JitterRow row{.op = op.name, .types = codegen::kAnyLanes, .scratch = scratch, .make = op.make, .accepts = accepts};
  (avx512 ? row.feature : row.without) = kAvx512Feature;
  return row;
}

}  // namespace

std::vector<JitterRow> store_rows() {
  const StoreOp store{"Store", make_function<emit_store>}, streaming{"StoreStreaming", make_function<emit_streaming>};
  std::vector<JitterRow> rows;
  rows.push_back(store_row(streaming, true, {.vectors = 1}, lanes_are<kI32, kU32>));
  for (const StoreOp& op : {store, streaming}) {
    rows.push_back(store_row(op, true, {.vectors = 1, .masks = 1}, lanes_are<kF32>));
    rows.push_back(store_row(op, true, {.vectors = 1}, lanes_are<kBool>));
    rows.push_back(store_row(op, true, {}, nullptr));
    rows.push_back(store_row(op, false, {.vectors = 3, .generals = 1}, lanes_are<kF32>));
    rows.push_back(store_row(op, false, {.vectors = 2, .generals = 1}, lanes_are<kI32, kU32, kBool>));
    rows.push_back(store_row(op, false, {.vectors = 1}, nullptr));
  }
  rows.push_back(
      {.op = "StoreBytes", .types = codegen::LaneTypes{kI32, kU32}, .make = make_function<emit_store_bytes<false>>});
  rows.push_back({.op = "StoreBytesStreaming",
                  .types = codegen::LaneTypes{kI32, kU32},
                  .make = make_function<emit_store_bytes<true>>});
  return rows;
}

}  // namespace tenon::x86
