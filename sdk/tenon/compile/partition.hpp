// Partitions a graph into one graph per target.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/model/compiled_model.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Copies of `ops`, which belong to the body of `graph` and are in its order, as a graph of their own. Constants that
// they read are copied. Other values defined outside become inputs, and results that others read become outputs, by the
// `number_of` the value, which is called once for each, in their order. A value without a name is called slotN after
// its number.
struct CutGraph {
  std::unique_ptr<Graph> graph;
  std::vector<size_t> inputs, outputs;  // numbers
};
TENON_API CutGraph cut_graph(const Graph& graph, std::string name, std::span<Op* const> ops,
                             const std::function<size_t(const Value&)>& number_of);

// A part of a graph for one target. Its graph's inputs and outputs are values of the whole graph, by slot.
struct GraphPart {
  size_t target = 0;  // index of the backend
  std::unique_ptr<Graph> graph;
  std::vector<size_t> inputs, outputs;
};

struct Partition {
  std::vector<GraphPart> parts;  // in an executable order
  size_t slots = 0;              // slot i is input i for i below the number of graph inputs
  std::vector<size_t> output_slots;
  std::vector<std::pair<size_t, Tensor>> constants;  // constants that are outputs of the whole graph
  PlacementReport placement;
};

// Each operator of the body goes to the first of `backends` that does not refuse it; an operator that all refuse is an
// error that lists the reasons. Operators of one target are grouped as far as data flow allows (by the number of
// changes of target on the path from the inputs). Constants are placed where they are used; operators that depend only
// on constants go into the last part of their target that precedes their readers. Linear in the size of the graph,
// apart from a search over the changes of target for such operators.
TENON_API Result<Partition> partition(const Graph& graph, const std::vector<const TargetBackend*>& backends);

}  // namespace tenon
