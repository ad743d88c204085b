// The jitter table of the plugin: the operators of a tiled kernel that have instructions, and the emitters that encode
// them.
//
//   dma.load    transfers into INP, WGT, ACC and UOP         vta.Alu    a step for each element
//   dma.store   transfers from OUT                           vta.Max    a step for each tap and element
//   vta.Narrow  shift and limits, of each element
//   vta.Zero    a reset of the matrix unit                   vta.Finish FINISH, and the tokens of the stream
//   vta.Gemm    products, with their micro-ops               dma.alloc  nothing
//
// A value of an emission is a register of the command writer (file vector: a tile on the chip) or a tensor in DRAM
// (file general: operand i of the kernel, or after these its output).
#pragma once
#include <functional>

#include <tenon/codegen/jitter_table.hpp>

#include "vta/command_writer.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {

const codegen::JitterTable& jitter_table();

// Emits the body of a tiled kernel, operator by operator; `done`, if not empty, is called after each.
using OpDone = std::function<Result<void>(Op&)>;
Result<void> emit_body(const Kernel& kernel, const TargetDescription& target, CommandWriter& writer,
                       const OpDone& done = {});

}  // namespace tenon::vta
