// Rounding to bf16 on AVX-512, for the emitters of Round and of stores.
#pragma once
#include <cstdint>

#include "x86/xbyak.hpp"

namespace tenon::x86 {

// The upper halves of out's 32-bit lanes = the nearest bf16 to in's lanes, ties to even, NaN quiet; the lower halves
// are undefined. out != in. `constant(bits)`: an operand with the bits in all lanes. vcvtneps2bf16 would flush
// denormals to 0.
//   in + 0x7fff, or in + 0x8000 where bit 16 of in is set
template <class Constant>
void round_upper_halves(Xbyak::CodeGenerator& g, const Xbyak::Xmm& out, const Xbyak::Xmm& in, const Xbyak::Opmask& odd,
                        Constant constant) {
  constexpr uint32_t kQuietNaNs = 0x22;  // of vfixupimmps: both classes of NaN become quiet, other values stay
  g.vptestmd(odd, in, constant(uint32_t{0x10000}));
  g.vpaddd(out, in, constant(uint32_t{0x7fff}));
  g.vpaddd(out | odd, in, constant(uint32_t{0x8000}));
  g.vfixupimmps(out, in, constant(kQuietNaNs), 0);
}

}  // namespace tenon::x86
