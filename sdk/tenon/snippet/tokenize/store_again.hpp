// Graph outputs that hold the same elements are each stored by the kernel that computes them, instead of being copied.
#pragma once
#include <functional>

#include <tenon/ir/graph.hpp>

namespace tenon::snippet {

// A result of a snippet for which `pays` holds may be several outputs of the graph's body, directly or through views
// (Identity, Reshape and such). The snippet then gets a further result for each of these outputs but the first, stored
// in the memory of that output; otherwise the elements would be copied there. Keeps: names of outputs, and what others
// read.
void store_again(Graph& graph, const std::function<bool(const Value&)>& pays);

}  // namespace tenon::snippet
