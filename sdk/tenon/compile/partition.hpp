// Cuts a graph into one graph per target.
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

// Copies of `ops`, which are of the body of `graph` and in its order, as a graph of its own. Constants that they read
// come along; other values from around them become inputs, and results that others read outputs, by `number_of` of the
// value: asked once for each, in their order. Values without a name of their own are called slotN after it.
struct CutGraph {
  std::unique_ptr<Graph> graph;
  std::vector<size_t> inputs, outputs;  // numbers
};
TENON_API CutGraph cut_graph(const Graph& graph, std::string name, std::span<Op* const> ops,
                             const std::function<size_t(const Value&)>& number_of);

// A part of a graph for one target. Its graph's inputs and outputs are values of the whole, by slot.
struct GraphPart {
  size_t target = 0;  // index of the backend
  std::unique_ptr<Graph> graph;
  std::vector<size_t> inputs, outputs;
};

struct Partition {
  std::vector<GraphPart> parts;  // in an order that can be run
  size_t slots = 0;              // slot i below the number of graph inputs is input i
  std::vector<size_t> output_slots;
  std::vector<std::pair<size_t, Tensor>> constants;  // constants that are outputs of the whole graph
  PlacementReport placement;
};

// Each operator of the body goes to the first of `backends` that does not refuse it; an operator that all refuse is an
// error that lists the reasons. Operators of one target are put together as far as data flow allows (by the number of
// changes of target on the way from the inputs); constants go where they are used, and operators of constants alone
// into the last part of their target before it. Linear in the size of the graph, but for the number of changes of
// target.
TENON_API Result<Partition> partition(const Graph& graph, const std::vector<const TargetBackend*>& backends);

}  // namespace tenon
