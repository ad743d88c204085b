// The order of the nodes, and the uses of values.
#include <algorithm>
#include <numeric>

#include <tenon/irgen/lowering_internal.hpp>
#include <tenon/runtime/memory_order.hpp>

namespace tenon::irgen::detail {

// A node that reads a storage, through whatever views, depends on the node that fills it.
Result<void> Lowering::order_nodes() {
  order_.resize(nodes_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (!options_.order_for_memory && groups_.empty()) return {};
  std::vector<OrderNode> nodes(nodes_.size());
  std::vector<size_t> made_by(places_.size(), kNever);  // by storage: the first node
  for (size_t n = 0; n < nodes_.size(); ++n)
    for (const NodeValue& result : nodes_[n].results) {
      size_t& maker = made_by[places_.root_of(result.storage)];
      maker = std::min(maker, n);
    }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    OrderNode& node = nodes[n];
    for (const NodeValue& operand : nodes_[n].operands) {
      const size_t maker = made_by[places_.root_of(operand.storage)];
      if (maker != kNever) node.operands.push_back(maker);
    }
    for (const NodeValue& result : nodes_[n].results) {
      const Storage& storage = places_.storage(places_.root_of(result.storage));
      node.kept = node.kept || storage.kind == Storage::Kind::output;
      if (storage.kind == Storage::Kind::local) node.result_bytes += static_cast<size_t>(storage.nominal_bytes);
    }
    const OpPlan* plan = nodes_[n].plan;
    node.in_place = options_.in_place && plan && !plan->choice.in_place.empty();
    if (plan) node.scratch_bytes = static_cast<size_t>(Places::nominal(plan->choice.workspace_bytes));
    if (nodes_[n].group) node.scratch_bytes = nodes_[n].group->scratch_bytes;
  }
  TENON_TRY(ordered, order_for_memory(nodes), "ordering the operators");
  order_ = std::move(ordered.order);
  return {};
}

void Lowering::number_uses() {
  for (size_t position = 0; position < order_.size(); ++position) {
    const Node& node = nodes_[order_[position]];
    for (const NodeValue& operand : node.operands) places_.storage(places_.root_of(operand.storage)).use(position);
    for (const NodeValue& result : node.results) places_.storage(places_.root_of(result.storage)).use(position);
  }
  // The caller's memory is in use to the end.
  for (const Value* output : part_.outputs) places_.root(*output).last = order_.size();
}

}  // namespace tenon::irgen::detail
