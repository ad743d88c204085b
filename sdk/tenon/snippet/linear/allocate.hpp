// Registers for a linear kernel: linear scan over live intervals, with spilling and rematerialisation.
//
// An interval reaches from a register's first write to its last use, and over the whole of each loop that it lives
// across. When a file is full, the interval with the fewest uses for its length gives way, uses in inner loops counting
// more: what a Scalar, Zero, Parameter, BroadcastParameter or a BroadcastLoad of memory that nobody writes has made is
// made again before each use, everything else goes to a slot of the frame. So the number of tensors and values never
// limits a kernel, while a single instruction's operands, results and scratch registers fit.
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

// Calls insert_shifts, then fills `places`, `frame_slots` and the scratch registers of instructions; adds Spill and
// Reload. Lanes of booleans go to the file that the pool says. A file that cannot hold one instruction's registers is
// Code::resource_exhausted, naming it. `needs` is also asked for Spill and Reload. `most_instructions`: whoever would
// not take a kernel with more of them is told so, by the same code, before all registers have places.
TENON_API Result<void> allocate(LinearKernel& kernel, const codegen::RegisterPool& pool, const NeedsFn& needs,
                                size_t most_instructions = std::numeric_limits<size_t>::max());

}  // namespace tenon::snippet
