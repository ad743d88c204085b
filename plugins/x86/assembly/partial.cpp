#include "x86/assembly/partial.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Reg64;

// Writes the code of `then`, which runs when bit `bit` of `count` is set.
template <class Then>
void when_bit(X86Context& c, const Reg64& count, int bit, Then then) {
  Xbyak::Label skip;
  c.gen().test(count.cvt32(), bit);
  c.gen().jz(skip, Xbyak::CodeGenerator::T_NEAR);
  then();
  c.gen().L(skip);
}

// to = the `bytes` bytes at `pointer`, zero-extended.
void load_general(X86Context& c, const Reg64& to, const Reg64& pointer, int bytes) {
  auto& g = c.gen();
  switch (bytes) {
    case 1: return g.movzx(to.cvt32(), g.byte[pointer]);
    case 2: return g.movzx(to.cvt32(), g.word[pointer]);
    case 4: return g.mov(to.cvt32(), g.dword[pointer]);
    default: return g.mov(to, g.qword[pointer]);
  }
}

void store_general(X86Context& c, const Reg64& pointer, const Reg64& from, int bytes) {
  auto& g = c.gen();
  switch (bytes) {
    case 1: return g.mov(g.byte[pointer], from.cvt8());
    case 2: return g.mov(g.word[pointer], from.cvt16());
    case 4: return g.mov(g.dword[pointer], from.cvt32());
    default: return g.mov(g.qword[pointer], from);
  }
}

}  // namespace

// Proceeds from the last part to the first: what is already loaded is shifted up when a part below it is added.
void load_few(X86Context& c, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, const Reg64& count, int most,
              const PartialRegisters& scratch) {
  const int size = memory.element.bits() / 8;
  const auto& [pointer, other] = scratch;
  const Reg64 bits = c.scratch();
  auto& g = c.gen();
  g.lea(pointer, c.address(memory));
  g.lea(pointer, g.ptr[pointer + count * size]);
  g.xor_(bits.cvt32(), bits.cvt32());
  when_bit(c, count, 1, [&] {
    g.sub(pointer, size);
    load_general(c, bits, pointer, size);
  });
  when_bit(c, count, 2, [&] {
    g.sub(pointer, 2 * size);
    load_general(c, other, pointer, 2 * size);
    g.shl(bits, 16 * size);
    g.or_(bits, other);
  });
  if (size == 2) g.vmovq(out, bits);
  if (most > 4) {
    when_bit(c, count, 4, [&] {
      g.sub(pointer, 4 * size);
      load_general(c, other, pointer, 4 * size);
      if (size == 2) {
        g.vmovq(out, other);
        return g.vpinsrq(out, out, bits, 1);
      }
      g.shl(bits, 32);
      g.or_(bits, other);
    });
  }
  if (size == 1) g.vmovq(out, bits);
}

void load_bytes(X86Context& c, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, int bytes) {
  auto& g = c.gen();
  int place = bytes & 8 ? 8 : bytes & 4;
  switch (place) {
    case 8: g.vmovq(out, c.address(memory)); break;
    case 4: g.vmovd(out, c.address(memory)); break;
    default: g.vpxor(out, out, out);
  }
  for (int size = 4; size > 0; size /= 2) {
    if (((bytes - place) & size) == 0) continue;
    const Xbyak::Address from = c.address(memory, place);
    switch (size) {
      case 4: g.vpinsrd(out, out, from, static_cast<uint8_t>(place / 4)); break;
      case 2: g.vpinsrw(out, out, from, static_cast<uint8_t>(place / 2)); break;
      default: g.vpinsrb(out, out, from, static_cast<uint8_t>(place));
    }
    place += size;
  }
}

void store_few(X86Context& c, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, const Reg64& count, int most,
               const PartialRegisters& scratch) {
  const int size = memory.element.bits() / 8;
  const Reg64 pointer = scratch.pointer, bits = c.scratch();
  auto& g = c.gen();
  g.lea(pointer, c.address(memory));
  g.vmovq(bits, in);
  if (most > 4) {
    when_bit(c, count, 4, [&] {
      store_general(c, pointer, bits, 4 * size);
      g.add(pointer, 4 * size);
      if (size == 2) return g.vpextrq(bits, in, 1);
      g.shr(bits, 32);
    });
  }
  when_bit(c, count, 2, [&] {
    store_general(c, pointer, bits, 2 * size);
    g.add(pointer, 2 * size);
    g.shr(bits, 16 * size);
  });
  when_bit(c, count, 1, [&] { store_general(c, pointer, bits, size); });
}

void store_lanes(X86Context& c, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, const Reg64& count,
                 int rest) {
  const int size = memory.element.bits() / 8, most = in.getBit() / 8 / size;
  const Reg64 pointer = c.scratch();
  const Xbyak::Xmm part = c.xmm(rest);
  auto& g = c.gen();
  g.lea(pointer, c.address(memory));
  c.move(part, c.xmm(in.getIdx()));
  const auto step = [&](int elements, auto next) {
    if (elements >= most) return;
    when_bit(c, count, elements, [&] {
      const int bytes = elements * size;
      bytes == 16  ? g.vmovups(g.ptr[pointer], part)
      : bytes == 8 ? g.vmovq(g.ptr[pointer], part)
                   : g.vmovd(g.ptr[pointer], part);
      if (elements == 1) return;
      g.add(pointer, bytes);
      next();
    });
  };
  const auto upper_half = [&] { g.vextractf128(part, c.ymm(in.getIdx()), 1); };
  const auto second_element = [&] { g.vpsrldq(part, part, 8); };
  step(4, upper_half);
  size == 8 ? step(2, upper_half) : step(2, second_element);
  step(1, [] {});
}

void store_bytes(X86Context& c, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, int bytes, int rest) {
  auto& g = c.gen();
  Xbyak::Xmm part = c.xmm(in.getIdx());
  int done = 0;
  if (bytes >= 16) {
    g.vmovups(c.address(memory), part);
    done = 16;
    if (bytes > 16) g.vextractf128(part = c.xmm(rest), c.ymm(in.getIdx()), 1);
  }
  for (int size = 8, place = 0; size > 0; size /= 2) {
    if (((bytes - done) & size) == 0) continue;
    const Xbyak::Address to = c.address(memory, done + place);
    switch (size) {
      case 8: g.vmovq(to, part); break;
      case 4: place == 0 ? g.vmovd(to, part) : g.vpextrd(to, part, static_cast<uint8_t>(place / 4)); break;
      case 2: g.vpextrw(to, part, static_cast<uint8_t>(place / 2)); break;
      default: g.vpextrb(to, part, static_cast<uint8_t>(place));
    }
    place += size;
  }
}

}  // namespace tenon::x86
