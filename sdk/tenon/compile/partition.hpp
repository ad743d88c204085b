// Cuts a graph into one graph per target.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/model/compiled_model.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

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
