// Finds the ends of vector instructions in VEX or EVEX encoding, that is, of all AVX, FMA and AVX-512 instructions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace tenon::x86 {

struct VectorInstruction {
  size_t bytes = 0;
  std::optional<size_t> distance_at;  // of a RIP-relative operand: the four bytes of its displacement
};

// The instruction at the begin of `code`. None: there is no vector instruction, or `code` ends before it does.
std::optional<VectorInstruction> first_vector_instruction(std::span<const uint8_t> code);

}  // namespace tenon::x86
