// Outputs of a graph that hold the same elements are stored by the kernel that makes them, each for itself.
#pragma once
#include <functional>

#include <tenon/ir/graph.hpp>

namespace tenon::snippet {

// Where a result of a snippet that `pays` is several outputs of the graph's body, by itself or behind views of it
// (Identity, Reshape and such), the snippet gets a further result for each but the first, which has the elements in the
// memory of that output: they would be copied there otherwise. Keeps names of outputs, and what others read.
void store_again(Graph& graph, const std::function<bool(const Value&)>& pays);

}  // namespace tenon::snippet
