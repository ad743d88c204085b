// The passes that process operators one by one: selection, layouts, plans, commands.
#include <tenon/ir/builder.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/emit.hpp"
#include "nvdla/operators.hpp"
#include "nvdla/passes.hpp"
#include "nvdla/select.hpp"

namespace tenon::nvdla {
namespace {

bool is_ours(const Op& op) { return isa<Conv>(op) || isa<Sdp>(op) || isa<Pdp>(op); }

template <class Body>
Result<Change> for_ours(Graph& graph, const Body& body) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    if (!is_ours(*op)) continue;
    TENON_OK(body(*op), op->describe());
    change = Change::yes;
  }
  return change;
}

Result<Change> select_all(Graph& graph, const Machine& machine) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    if (isa<Constant>(*op) || is_ours(*op) || is_view(*op)) continue;
    Builder builder(graph.body(), op);
    const std::vector<Value*> operands = op->operands();
    TENON_TRY(value, select(builder, *op, operands, machine.hardware), op->describe());
    value->set_name(op->result()->name());
    op->result()->replace_all_uses_with(value);
    op->erase();
    change = Change::yes;
  }
  return change;
}

// Values of rank 2 are images of one pixel, whose layout omits H and W.
Result<void> lay_out(Value& value, const Hardware& hardware) {
  const auto dims = value.type().shape().static_dims();
  if (!dims) return {};
  if (dims->size() == 4) return set_layout(value, hardware.activation_layout, "NCHW");
  if (dims->size() == 2) return set_layout(value, str("NC{", hardware.atom_channels, "c}"), "NC");
  return {};
}

Result<Change> lay_out_all(Graph& graph, const Machine& machine) {
  for (size_t i = 0; i < graph.body().input_count(); ++i) TENON_OK(lay_out(*graph.body().input(i), machine.hardware));
  for (Op* op : graph.body().ops()) {
    if (isa<Constant>(*op)) continue;
    TENON_OK(lay_out(*op->result(), machine.hardware), op->describe());
    Value* const w = isa<Conv>(*op) ? op->operand(1) : nullptr;
    if (w && w->type().shape().rank() == 4) TENON_OK(set_layout(*w, machine.hardware.weight_layout, "KCRS"));
  }
  return Change::yes;
}

Result<void> plan(Op& op, const Hardware& hardware) {
  if (!isa<Conv>(op)) return {};
  TENON_TRY(layer, ConvLayer::of(op, hardware));
  TENON_TRY(plan, plan_buffer(layer, hardware));
  op.set_attr("plan", std::string(plan_name(plan.kind)));
  op.set_attr("band_rows", plan.band_rows);
  op.set_attr("data_banks", plan.data_banks);
  op.set_attr("weight_banks", plan.weight_banks);
  return {};
}

Result<void> encode_op(Op& op, const Hardware& hardware) {
  TENON_TRY(commands, commands_of(op, hardware));
  TENON_TRY(tensor, to_tensor(commands));
  op.set_attr("commands", tensor);
  return {};
}

}  // namespace

Pass select_pass(MachinePtr machine) {
  return {.name = "select-nvdla",
          .contract =
              "Every operator becomes nvdla.Conv, nvdla.Sdp or nvdla.Pdp, views and constants stay.\nNeeds "
              "operators that the target does not refuse, with types; keeps names of values.",
          .run = [machine](Graph& graph) { return select_all(graph, *machine); },
          .needs = {"infer-types"}};
}

Pass lay_out_pass(MachinePtr machine) {
  return {.name = "lay-out-nvdla",
          .contract =
              "Puts the target file's layouts on activations and weights.\nNeeds static shapes; changes no "
              "number.",
          .run = [machine](Graph& graph) { return lay_out_all(graph, *machine); }};
}

Pass plan_pass(MachinePtr machine) {
  return {
      .name = "plan-nvdla",
      .contract =
          "Writes the first plan of the convolution buffer that fits on each nvdla.Conv: plan, band_rows, "
          "data_banks,\nweight_banks. Needs the machine's operators; the order stays that of the graph.",
      .run = [machine](Graph& graph) { return for_ours(graph, [&](Op& op) { return plan(op, machine->hardware); }); }};
}

Pass encode_pass(MachinePtr machine) {
  return {.name = "encode-nvdla",
          .contract = "Writes `commands` on each operator.\nNeeds plan-nvdla and place-nvdla.",
          .run = [machine](Graph& graph) {
            return for_ours(graph, [&](Op& op) { return encode_op(op, machine->hardware); });
          }};
}

}  // namespace tenon::nvdla
