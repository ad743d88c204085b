// Products of lanes of bytes by constants, of which the machine has none.
#pragma once
#include <optional>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

// Adds to `made` what makes a vector of bytes `x` times `constant`, modulo 256, of sums, differences and shifts, where
// that takes fewer instructions than a product; its register, or nothing. `label` as of Instruction.
std::optional<RegisterId> multiply_bytes(LinearKernel& kernel, RegisterId x, int32_t constant, int label,
                                         std::vector<Instruction>& made);

}  // namespace tenon::x86
