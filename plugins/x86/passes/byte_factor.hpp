// Products of byte lanes by constants, because there is no byte multiplication.
#pragma once
#include <optional>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

// Appends to `made` sums, differences and shifts that multiply a vector of bytes `x` by `constant`, modulo 256, if that
// takes fewer instructions than a product. Returns the register of the result, or nothing. `label` as in Instruction.
std::optional<RegisterId> multiply_bytes(LinearKernel& kernel, RegisterId x, int32_t constant, int label,
                                         std::vector<Instruction>& made);

}  // namespace tenon::x86
