#include "vta/passes/walk.hpp"

namespace tenon::vta {
namespace {

Result<Change> select_for(Graph& graph, const Hardware& hardware) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    // The name decides; operators that are refused belong to another target and are left alone.
    if (!op->name().view().starts_with("fused.")) continue;
    auto made = device_op(*op, hardware);
    if (!made.ok()) continue;
    for (Value*& operand : made->operands) operand = behind_views(operand);
    Op& kernel = write_kernel(*made, *op);
    op->result()->replace_all_uses_with(kernel.result());
    const std::vector<Value*> operands = op->operands();
    op->erase();
    erase_unused(operands);
    change = Change::yes;
  }
  return change;
}

}  // namespace

Pass vta_select(const PassContext& context) {
  return {.name = "vta-select",
          .contract = "Needs vta-legalise. Leaves a vta.Kernel on whole tensors for each fused operator.",
          .run = [hardware = context.hardware](Graph& graph) { return select_for(graph, hardware); }};
}

}  // namespace tenon::vta
