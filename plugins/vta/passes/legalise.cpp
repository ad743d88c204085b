#include "vta/passes/walk.hpp"

namespace tenon::vta {
namespace {

Result<Change> legalise_for(Graph& graph, const Hardware& hardware) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    if (isa<ViewOp>(op) || !op->def() || op->operand_count() == 0) continue;
    const auto made = device_op(*op, hardware);
    if (!made.ok() || !std::holds_alternative<DeviceView>(made->work)) continue;
    const Dims shape = *op->result()->type().shape().static_dims();
    Value* const x = op->operand(0);
    Op& view =
        graph.body().create(ViewOp::name(), std::span(&x, 1), {op->result()->type()}, {{names().shape, shape}}, op);
    view.set_label(op->label());
    view.result()->set_name(op->result()->name());
    op->result()->replace_all_uses_with(view.result());
    const std::vector<Value*> operands = op->operands();
    op->erase();
    erase_unused({operands.begin() + 1, operands.end()});
    change = Change::yes;
  }
  return change;
}

}  // namespace

Pass vta_legalise(const PassContext& context) {
  return {.name = "vta-legalise",
          .contract = "Needs types. Leaves vta.View for operators that change shapes alone.",
          .run = [hardware = context.hardware](Graph& graph) { return legalise_for(graph, hardware); }};
}

}  // namespace tenon::vta
