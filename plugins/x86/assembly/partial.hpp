// Loads and stores of a few elements without masks (avx2): by the bits of their count, 4 + 2 + 1. Of elements of 1 or 2
// bytes there are none by masks, and stores by masks take an EPYC (Zen 4) 15 cycles where two parts take 2.
#pragma once
#include "x86/assembly/context.hpp"

namespace tenon::x86 {

// A pointer, which is moved, and a second register; contents undefined afterwards, as those of rax.
struct PartialRegisters {
  Xbyak::Reg64 pointer, other;
};

// out (16 bytes) = the first `count` elements of `memory`, zero behind them. 0 <= count < 8; `most` is its bound.
void load_few(X86Context& context, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, const Xbyak::Reg64& count,
              int most, const PartialRegisters& scratch);
// out (16 bytes) = the first `bytes` bytes of `memory`, 1 to 15, zero behind them.
void load_bytes(X86Context& context, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, int bytes);
// The first `count` elements of 1 or 2 bytes of `in`, which is destroyed, to `memory`. `other` is not used.
void store_few(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, const Xbyak::Reg64& count,
               int most, const PartialRegisters& scratch);

// The first `count` elements of 4 or 8 bytes of `in` to `memory`; `rest` is a scratch vector.
void store_lanes(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in,
                 const Xbyak::Reg64& count, int rest);
// The first `bytes` bytes of `in`, less than it has; `rest` is a scratch vector where it has more than 16.
void store_bytes(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, int bytes, int rest);

}  // namespace tenon::x86
