// From a linear kernel with places to code: the walk over the jitter table.
#pragma once
#include <string>

#include <tenon/codegen/emitter.hpp>
#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/allocate.hpp>
#include <tenon/snippet/body.hpp>
#include <tenon/snippet/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::snippet {

// The row for an instruction by its operator and the lane types of its registers (general ones: i64; bool: bool).
// Without one: Code::unsupported, naming operator, types and table.
TENON_API Result<const codegen::JitterRow*> find_row(const LinearKernel& kernel, const Instruction& instruction,
                                                     const codegen::JitterTable& table,
                                                     const TargetDescription& target);

// The row that decides whether a node of a body can be emitted: its own, or for a reduction that of the operator that
// its fold is made of. Null when there is none. Scalar and ReducedCount are instructions of every kernel and need none.
TENON_API const codegen::JitterRow* find_node_row(const codegen::Signature& node, const codegen::JitterTable& table,
                                                  const TargetDescription& target);
TENON_API bool can_emit_node(const codegen::Signature& node, const codegen::JitterTable& table,
                             const TargetDescription& target);

// The same for a node of `body`.
TENON_API const codegen::JitterRow* row_of_node(const Body& body, const BodyNode& node,
                                                const codegen::JitterTable& table, const TargetDescription& target);
// Why code for this body cannot be made: the first operator without an emitter. "" when it can.
TENON_API std::string why_not_emit(const Body& body, const codegen::JitterTable& table,
                                   const TargetDescription& target);
// Cycles of one vector of `node`, by its row: what LowerOptions::cycles asks for.
TENON_API double cycles_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                                const TargetDescription& target);
// Cycles of one element of the body's space: operators by their rows, loads and stores as one each.
TENON_API double cycles_per_element(const Body& body, int lanes, const codegen::JitterTable& table,
                                    const TargetDescription& target);
// The kernel's text without names of graph and operators: kernels that compute the same have the same.
TENON_API std::string text_without_names(const LinearKernel& kernel);

// What allocate() asks, answered by the table. Borrows both for as long as the function lives.
TENON_API NeedsFn needs_of(const codegen::JitterTable& table, const TargetDescription& target);

// emit_data of each instruction, in order, then emit_code of each, after context.mark(). The table's rows must be for
// contexts of this kind. Emissions hold what the instruction holds; those about loops have, besides `number`, which is
// the loop,
//   LoopBegin, LoopEnd   attributes `limit` (number of the param), `increment`
//   TailBegin            attribute `limit`
TENON_API Result<void> emit(const LinearKernel& kernel, const codegen::JitterTable& table,
                            const TargetDescription& target, codegen::EmitContext& context);

}  // namespace tenon::snippet
