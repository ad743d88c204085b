// What infer-types and fold-constants do at one operator, for passes that need it on their way.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Asks the shape rule again and keeps what is new.
Result<Change> infer_op(Op& op);
// Change::yes: constants took the place of `op`, which is gone, as are constants that only it read.
Result<Change> fold_op(Op& op);

}  // namespace tenon
