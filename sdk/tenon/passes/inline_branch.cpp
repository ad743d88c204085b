#include <tenon/ir/builder.hpp>
#include <tenon/ops/control.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon {
namespace {

// The branch that every run takes; null if it depends on the run.
Region* taken_branch(Op& op) {
  if (!isa<If>(op)) return nullptr;
  const Tensor* condition = constant_of(cast<If>(op).cond());
  if (!condition || condition->size() != 1) return nullptr;
  return &op.region(condition->int_at(0) != 0 ? 0 : 1);
}

// Replaces `op` by the branch's operators. Returns the first operator that is now in its place.
Result<Op*> inline_branch(Op& op, Region& branch) {
  Op* before = op.previous();
  Region& around = *op.parent();
  for (Op* inner : branch.ops()) inner->move_before(op);
  for (size_t i = 0; i < op.result_count(); ++i) {
    TENON_OK(replace_value(*op.result(i), *branch.output(i)), "output ", i, " of the branch of ", op.describe());
  }
  op.erase();
  return before ? before->next() : around.first();
}

// After the first inlined branch, more may be known about what follows: types are inferred and constants folded along
// the way, so that a chain of Ifs, each depending on the shape of the previous result, takes one traversal.
Result<void> inline_in(Region& region, bool& inlined) {
  for (Op* op = region.first(); op && !region.is_return(*op);) {
    if (Region* branch = taken_branch(*op)) {
      TENON_TRY(next, inline_branch(*op, *branch));
      op = next;
      inlined = true;
      continue;
    }
    for (size_t i = 0; i < op->region_count(); ++i) TENON_OK(inline_in(op->region(i), inlined));
    Op* next = op->next();
    if (inlined) {
      TENON_OK(infer_op(*op));
      TENON_OK(fold_op(*op));
    }
    op = next;
  }
  return {};
}

const PassRegistration kInlineBranchRegistered({{
    .name = "inline-branch",
    .contract =
        "An If on a constant becomes the branch that is taken; the other one goes.\n"
        "Needs folded constants to see them, and folds those behind a branch; keeps names and labels. Leaves the "
        "condition for remove-dead.",
    .run = [](Graph& graph) -> Result<Change> {
      bool inlined = false;
      TENON_OK(inline_in(graph.body(), inlined));
      return Change{inlined};
    },
}});

}  // namespace
}  // namespace tenon
