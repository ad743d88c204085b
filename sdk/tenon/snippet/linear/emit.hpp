// From an allocated linear kernel to code, through the jitter table.
#pragma once
#include <string>

#include <tenon/codegen/emitter.hpp>
#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::snippet {

// The row for an instruction by its operator and the lane types of its registers (general ones: i64; bool: bool).
// Without one: Code::unsupported, naming operator, types and table.
TENON_API Result<const codegen::JitterRow*> find_row(const LinearKernel& kernel, const Instruction& instruction,
                                                     const codegen::JitterTable& table,
                                                     const TargetDescription& target);

// The `needs` of allocate(), answered by the table. Borrows both arguments as long as the function lives; one thread.
TENON_API NeedsFn needs_of(const codegen::JitterTable& table, const TargetDescription& target);

// Calls emit_data of each instruction in order, then, after context.mark(), emit_code of each. The table's rows must be
// for contexts of this kind. An Emission holds what the instruction holds. Emissions for loops have, besides `number`,
// which is the loop,
//   LoopBegin, LoopEnd   attributes `limit` (number of the param), `increment`
//   TailBegin            attribute `limit`
TENON_API Result<void> emit(const LinearKernel& kernel, const codegen::JitterTable& table,
                            const TargetDescription& target, codegen::EmitContext& context);

}  // namespace tenon::snippet
