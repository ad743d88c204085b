// Loads and stores of a few elements of 1 or 2 bytes without masks (avx2): by the bits of their count, 4 + 2 + 1.
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
// The first `count` elements of `in`, which is destroyed, to `memory`. `other` is not used.
void store_few(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, const Xbyak::Reg64& count,
               int most, const PartialRegisters& scratch);

}  // namespace tenon::x86
