// Register allocation for a linear kernel: linear scan over live intervals, with spilling and rematerialisation.
//
// The live interval of a register reaches from its first write to its last use, and covers every loop that it is live
// across. When a register file is full, the interval with the fewest uses for its length is evicted; uses in inner
// loops count more. The results of Scalar, Zero, Parameter, BroadcastParameter, and of a BroadcastLoad of memory that
// is never written, are rematerialised before each use; everything else is spilled to a slot of the frame. The number
// of tensors and values therefore never limits a kernel, as long as the operands, results and scratch registers of each
// single instruction fit.
#pragma once
#include <functional>
#include <limits>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/codegen/register.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// What the emitter of an instruction asks for (needs_of() in emit.hpp takes it from a jitter table).
struct InstructionNeeds {
  codegen::ScratchNeeds scratch;
  bool early_result = false;
};
using NeedsFn = std::function<Result<InstructionNeeds>(const LinearKernel& kernel, const Instruction& instruction)>;

// Calls insert_shifts, then fills `places`, `frame_slots` and the scratch registers of instructions, and adds Spill and
// Reload. Lanes of booleans go to the file that the pool names. A file that cannot hold the registers of one
// instruction is Code::resource_exhausted, naming it. `needs` is also called for Spill and Reload. A kernel that would
// get more than `most_instructions` instructions is the same error, returned before all registers have places: for
// callers that would not use such a kernel.
TENON_API Result<void> allocate(LinearKernel& kernel, const codegen::RegisterPool& pool, const NeedsFn& needs,
                                size_t most_instructions = std::numeric_limits<size_t>::max());

}  // namespace tenon::snippet
