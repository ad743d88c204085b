#include <tenon/passes/change.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon {
namespace {

// From the last to the first, so that users are removed before what they use.
bool remove_dead_in(Region& region) {
  bool changed = false;
  for (Op* op = region.last(); op;) {
    Op* previous = op->previous();
    if (!op->has_uses() && has_no_effect(*op)) {
      op->erase();
      changed = true;
    } else {
      for (size_t i = 0; i < op->region_count(); ++i) changed |= remove_dead_in(op->region(i));
    }
    op = previous;
  }
  return changed;
}

const PassRegistration kRemoveDeadRegistered({{
    .name = "remove-dead",
    .contract = "Erases operators whose results nobody uses and that have no effect, in all regions.\n"
                "Needs nothing; keeps inputs and outputs, and operators without a definition.",
    .run = [](Graph& graph) -> Result<Change> { return Change{remove_dead_in(graph.body())}; },
}});

}  // namespace
}  // namespace tenon
