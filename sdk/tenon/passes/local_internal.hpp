// What infer-types and fold-constants do at one operator, and what passes ask of types, for those that need it.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Asks the shape rule again and keeps what is new.
Result<Change> infer_op(Op& op);
// Change::yes: constants took the place of `op`, which is gone, as are constants that only it read.
Result<Change> fold_op(Op& op);

// Ranked tensors of the same extents, also of those that only a run will tell.
bool have_same_shape(const Type& a, const Type& b);

}  // namespace tenon
