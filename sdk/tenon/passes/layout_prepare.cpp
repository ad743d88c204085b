#include <tenon/ir/builder.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/layout_model.hpp>
#include <tenon/passes/layout_pins_internal.hpp>

namespace tenon {
namespace {

using detail::is_pinned;

void drop_layout(Value& value) {
  if (value.layout() && !is_pinned(value)) value.set_layout(nullptr);
}

// Inserts a reorder of `from` that produces the pinned value, which gets its name and its uses.
void pin_behind(Value& from, Op& before) {
  Value* const operand = &from;
  Op& op = before.parent()->create(Name(LayoutReorder::kName), {&operand, 1}, {from.type()}, {}, &before);
  from.replace_all_uses_with(op.result());
  op.set_operand(0, &from);
  op.result()->set_name(from.name());
  op.result()->set_layout(from.shared_layout());
  from.set_name("");
  from.set_layout(nullptr);
}

Result<void> prepare(Op& op) {
  op.attributes().erase(Name(kLayoutKernelAttribute));
  const bool moves = isa<LayoutReorder>(op) || isa<LayoutScrub>(op);
  for (size_t i = 0; i < op.result_count(); ++i) drop_layout(*op.result(i));
  if (moves && !is_pinned(*op.result())) {
    TENON_OK(replace_value(*op.result(), *op.operand(0)));
    op.erase();
    return {};
  }
  if (isa<LayoutReorder>(op) || isa<Constant>(op)) return {};
  Op* next = op.next();
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (is_pinned(*op.result(i))) pin_behind(*op.result(i), *next);
  }
  if (!moves) return {};
  // A scrub: the pinned value is made from its operand, with zeros.
  Op& reorder = *next->previous();
  reorder.set_operand(0, op.operand(0));
  auto layout = std::make_shared<ValueLayout>(*reorder.result()->layout());
  layout->pad = PadState::zero;
  reorder.result()->set_layout(std::move(layout));
  op.erase();
  return {};
}

}  // namespace

Result<void> prepare_layouts(Graph& graph) {
  for (size_t i = 0; i < graph.body().input_count(); ++i) drop_layout(*graph.body().input(i));
  for (Op* op : graph.body().ops()) TENON_OK(prepare(*op));
  return {};
}

}  // namespace tenon
