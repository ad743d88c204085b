// Which nodes of a body can be emitted, and at what cost, by the rows of a jitter table: asked before lowering.
#pragma once
#include <string>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::snippet {

// The row that decides whether a node of a body can be emitted: its own, or for a reduction that of the operator that
// accumulates. Null when there is none. Scalar and ReducedCount are instructions of every kernel and need no row.
TENON_API const codegen::JitterRow* find_node_row(const codegen::Signature& node, const codegen::JitterTable& table,
                                                  const TargetDescription& target);
TENON_API bool can_emit_node(const codegen::Signature& node, const codegen::JitterTable& table,
                             const TargetDescription& target);

// The same for a node of `body`.
TENON_API const codegen::JitterRow* row_of_node(const Body& body, const BodyNode& node,
                                                const codegen::JitterTable& table, const TargetDescription& target);
// Why no code can be made for this body: the first operator without an emitter. "" when it can.
TENON_API std::string why_not_emit(const Body& body, const codegen::JitterTable& table,
                                   const TargetDescription& target);
// Cycles of one vector of `node`, by its row; for LowerOptions::cycles.
TENON_API double cycles_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                                const TargetDescription& target);
// Cycles of one element of the body's space: operators by their rows, loads and stores at one cycle each.
TENON_API double cycles_per_element(const Body& body, int lanes, const codegen::JitterTable& table,
                                    const TargetDescription& target);

}  // namespace tenon::snippet
