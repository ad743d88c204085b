#include <tenon/ir/builder.hpp>
#include <tenon/ops/control.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon {
namespace {

// The branch that every run takes; null when that depends on the run.
Region* taken_branch(Op& op) {
  if (!isa<If>(op)) return nullptr;
  const Tensor* condition = constant_of(cast<If>(op).cond());
  if (!condition || condition->size() != 1) return nullptr;
  return &op.region(condition->int_at(0) != 0 ? 0 : 1);
}

// The branch's operators take the place of `op`. Returns what stands there now.
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

Result<bool> inline_in(Region& region) {
  bool changed = false;
  for (Op* op = region.first(); op && !region.is_return(*op);) {
    if (Region* branch = taken_branch(*op)) {
      TENON_TRY(next, inline_branch(*op, *branch));
      op = next;
      changed = true;
      continue;
    }
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_TRY(inside, inline_in(op->region(i)));
      changed |= inside;
    }
    op = op->next();
  }
  return changed;
}

const PassRegistration kRegistered({{
    .name = "inline-branch",
    .contract = "An If on a constant becomes the branch that is taken; the other one goes.\n"
                "Needs folded constants to see them; keeps names and labels. Leaves the condition for remove-dead.",
    .run = [](Graph& graph) -> Result<Change> {
      TENON_TRY(changed, inline_in(graph.body()));
      return Change{changed};
    },
}});

}  // namespace
}  // namespace tenon
