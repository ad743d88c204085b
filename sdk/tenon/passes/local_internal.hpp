// infer-types and fold-constants for a single operator, and questions about types, for use by other passes.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Runs the shape rule again and keeps new information.
Result<Change> infer_op(Op& op);
// Change::yes: constants replaced `op`, which was erased, as were constants that only it read.
Result<Change> fold_op(Op& op);

// Whether both are ranked tensors with the same extents, including extents known only at run time.
bool have_same_shape(const Type& a, const Type& b);

}  // namespace tenon
