// Loads 64-bit integers into 32-bit lanes (body/narrow_ports.hpp): to f32 like Convert, to i32 saturated, to u32 their
// low bits.
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;

struct NarrowLoad {
  X86Context& c;
  const Emission& e;
  const EmitAddress& memory;
  ElementType lane = e.out[0].element;
  Xbyak::CodeGenerator& g = c.gen();

  // ---- avx512 ----

  // out = the elements of x, narrowed to half the bits.
  void halve(const Xmm& out, const Xmm& x) const {
    lane == kF32 ? g.vcvtqq2ps(out, x) : lane == kI32 ? g.vpmovsqd(out, x) : g.vpmovqd(out, x);
  }

  void load_avx512() const {
    constexpr int kEach = 8;  // elements of 512 bits
    const int out = e.out[0].at.number, bits = e.lanes * lane.bits();
    const bool partial = e.touched == Lanes::partial;
    const auto half = [&](int to, const Xbyak::Opmask& inside, int first) {
      const Xmm all = partial ? c.zmm(to) | inside | Xbyak::util::T_z : Xmm(c.zmm(to));
      g.vmovdqu64(all, c.address(memory, first * 8));
      halve(c.ymm(to), c.zmm(to));
    };
    const Xbyak::Opmask inside = partial ? c.mask(e.in[0]) : c.mask(0);
    half(out, inside, 0);
    if (bits <= 256) return;
    if (partial) g.kshiftrw(c.mask(e.masks[0]), inside, kEach);
    half(e.vectors[0], c.mask(e.masks[0]), kEach);
    g.vinserti64x4(c.zmm(out), c.zmm(out), c.ymm(e.vectors[0]), 1);
  }

  // ---- avx2 ----

  Ymm a() const { return c.ymm(e.out[0].at.number); }
  Ymm b() const { return c.ymm(e.vectors[0]); }
  Ymm low() const { return c.ymm(e.vectors[1]); }
  Ymm high() const { return c.ymm(e.vectors[2]); }

  void load_avx2() const {
    if (e.touched != Lanes::partial) {
      g.vmovdqu(a(), c.address(memory));
      g.vmovdqu(b(), c.address(memory, 32));
      return join();
    }
    const Ymm inside = c.ymm(e.in[0].at.number);
    const Xmm half = c.xmm(high().getIdx());
    g.vpmovsxdq(low(), c.xmm(inside.getIdx()));
    g.vpmaskmovq(a(), low(), c.address(memory));
    g.vextracti128(half, inside, 1);
    g.vpmovsxdq(high(), half);
    g.vpmaskmovq(b(), high(), c.address(memory, 32));
    join();
  }

  // a = its four elements and those of b. The fast path is for values that fit 32 bits, such as masks and tokens.
  void join() const {
    Xbyak::Label fits, done;
    g.vshufps(low(), a(), b(), 0x88);
    if (lane != kU32) {
      g.vshufps(high(), a(), b(), 0xdd);
      g.vpsrad(a(), low(), 31);
      g.vpxor(a(), a(), high());
      g.vptest(a(), a());
      g.jz(fits, Xbyak::CodeGenerator::T_NEAR);
      lane == kF32 ? floats() : nearest();
      g.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    }
    g.L(fits);
    if (lane == kF32) g.vcvtdq2ps(low(), low());
    in_order();
    g.L(done);
  }

  // vshufps has left elements 0 1 4 5 and 2 3 6 7 adjacent.
  void in_order() const { g.vpermq(a(), low(), 0xd8); }

  void nearest() const {
    g.vpsrad(a(), low(), 31);
    g.vpcmpeqd(a(), a(), high());
    g.vpsrad(high(), high(), 31);
    g.vpxor(high(), high(), c.constant(kI32, 0x7fffffff));
    g.vblendvps(low(), high(), low(), a());
    in_order();
  }

  // Converts one element at a time.
  void floats() const {
    g.vpunpckldq(a(), low(), high());
    g.vpunpckhdq(b(), low(), high());
    const Xmm first = c.xmm(low().getIdx()), second = c.xmm(high().getIdx());
    const Xbyak::Reg64 bits = c.scratch();
    for (const Ymm& four : {a(), b()}) {
      const Xmm two = c.xmm(four.getIdx());
      const auto convert_two = [&](const Xmm& out, const Xmm& other) {
        g.vmovq(bits, two);
        g.vcvtsi2ss(out, out, bits);
        g.vpextrq(bits, two, 1);
        g.vcvtsi2ss(other, other, bits);
        g.vunpcklps(out, out, other);
      };
      convert_two(first, second);
      g.vextracti128(two, four, 1);
      convert_two(second, two);
      g.vmovlhps(two, first, second);
    }
    g.vinserti128(a(), a(), c.xmm(b().getIdx()), 1);
  }

  // ---- Single elements ----

  // To lane 0; the other lanes are zero.
  void load_one() const {
    const Xmm out = c.xmm(e.out[0].at.number);
    g.vmovq(out, c.address(memory));
    if (c.avx512()) return halve(out, out);
    g.vpxor(b(), b(), b());
    join();
  }
};

bool is_narrow(const codegen::Signature& signature) {
  static const Name kNarrow("narrow");
  return signature.attributes.has(kNarrow);
}

template <bool kBroadcast>
Result<void> emit_narrow_load(X86Context& c, const Emission& e) {
  if (!e.memory || e.memory->element != kI64 || e.out[0].element.bits() != 32)
    return error(Code::internal, e.op, " is of 64-bit integers in memory and 32-bit lanes");
  const NarrowLoad load{c, e, *e.memory};
  if (kBroadcast || e.touched == Lanes::one)
    load.load_one();
  else
    c.avx512() ? load.load_avx512() : load.load_avx2();
  const Xmm out = c.vector(e.out[0], e.lanes);
  if (kBroadcast) c.gen().vpbroadcastd(out, c.xmm(out.getIdx()));
  return {};
}

}  // namespace

std::vector<JitterRow> narrow_load_rows() {
  std::vector<JitterRow> rows;
  for (const bool broadcast : {false, true}) {
    JitterRow row{.op = broadcast ? "BroadcastLoad" : "Load",
                  .types = codegen::kAnyLanes,
                  .feature = kAvx512Feature,
                  .early_result = true,
                  .make = broadcast ? make_function<emit_narrow_load<true>> : make_function<emit_narrow_load<false>>};
    row.scratch = {.vectors = broadcast ? 0 : 1, .masks = broadcast ? 0 : 1};
    row.cycles = 5;
    row.accepts = is_narrow;
    rows.push_back(row);
    row.feature = {}, row.without = kAvx512Feature;
    row.scratch = {.vectors = 3};
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tenon::x86
