// Graphs of models in the form that the planner of orders uses.
#pragma once
#include <unordered_map>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/runtime/memory_order.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::bench {

// Bytes of the values produced by the body's operators; inputs and constants are stored elsewhere. Values without a
// static shape take none and are counted in `unknown`. A view is a part of what it views: its readers read that.
class ModelGraph {
 public:
  explicit ModelGraph(const Graph& graph) {
    for (const Op& op : graph.body()) {
      if (!isa<Constant>(op)) add(op);
    }
    const Region& body = graph.body();
    for (size_t i = 0; i < body.output_count(); ++i) {
      const auto made = made_by_.find(body.output(i));
      if (made != made_by_.end()) nodes[made->second].kept = true;
    }
  }

  std::vector<OrderNode> nodes;
  size_t unknown = 0;

 private:
  void add(const Op& op) {
    const auto viewed = op.operand_count() > 0 ? made_by_.find(op.operand(0)) : made_by_.end();
    const bool view = op.def() && op.def()->has(Trait::view) && viewed != made_by_.end();
    const size_t node = view ? viewed->second : nodes.size();
    if (!view) nodes.emplace_back();
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const auto made = made_by_.find(op.operand(i));
      if (made != made_by_.end() && made->second != node) nodes[node].operands.push_back(made->second);
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      made_by_[op.result(i)] = node;
      if (!view) nodes[node].result_bytes += bytes_of(op.result(i)->type());
    }
  }

  size_t bytes_of(const Type& type) {
    if (type.is_tensor() && type.element().valid() && !type.element().is_string() && type.shape().is_static()) {
      const auto count = element_count(*type.shape().static_dims());
      const auto bytes = count.ok() ? storage_bytes(type.element(), *count) : Result<size_t>(count.error());
      if (bytes.ok()) return *bytes;
    }
    ++unknown;
    return 0;
  }

  std::unordered_map<const Value*, size_t> made_by_;
};

}  // namespace tenon::bench
