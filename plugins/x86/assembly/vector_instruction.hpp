// Where vector instructions end: those of VEX or EVEX encoding, which all of AVX, FMA and AVX-512 have.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace tenon::x86 {

struct VectorInstruction {
  size_t bytes = 0;
  std::optional<size_t> distance_at;  // of an operand in memory that is told from the instruction's end: four bytes
};

// The one that `code` begins with. None: it begins with something else, or ends before the instruction does.
std::optional<VectorInstruction> first_vector_instruction(std::span<const uint8_t> code);

}  // namespace tenon::x86
