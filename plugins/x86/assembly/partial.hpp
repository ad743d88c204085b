// Loads and stores of a few elements without masks (avx2), by the bits of their count: 4 + 2 + 1. AVX2 has no masked
// moves of elements of 1 or 2 bytes, and a masked store takes 15 cycles on an EPYC (Zen 4) where two parts take 2.
#pragma once
#include "x86/assembly/context.hpp"

namespace tenon::x86 {

// A pointer, which is advanced, and a second register; both are undefined afterwards, as is rax.
struct PartialRegisters {
  Xbyak::Reg64 pointer, other;
};

// out (16 bytes) = the first `count` elements of `memory`, then zeros. 0 <= count < 8; `most` is an upper bound of it.
void load_few(X86Context& context, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, const Xbyak::Reg64& count,
              int most, const PartialRegisters& scratch);
// out (16 bytes) = the first `bytes` bytes of `memory`, 1 to 15, then zeros.
void load_bytes(X86Context& context, const Xbyak::Xmm& out, const codegen::EmitAddress& memory, int bytes);
// Stores the first `count` elements of 1 or 2 bytes of `in`, which is destroyed. `other` is not used.
void store_few(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, const Xbyak::Reg64& count,
               int most, const PartialRegisters& scratch);

// Stores the first `count` elements of 4 or 8 bytes of `in`; `rest` is a scratch vector.
void store_lanes(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in,
                 const Xbyak::Reg64& count, int rest);
// Stores the first `bytes` bytes of `in`, fewer than it has; `rest` is a scratch vector, used if it has more than 16.
void store_bytes(X86Context& context, const codegen::EmitAddress& memory, const Xbyak::Xmm& in, int bytes, int rest);

}  // namespace tenon::x86
