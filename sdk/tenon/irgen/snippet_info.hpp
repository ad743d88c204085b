// What targets tell of the snippets that they compile, and of operators that they refuse.
#pragma once
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::irgen {

// Of a snippet.Subgraph: everything but the bytes of its code. The time is that of its bytes at the bandwidth of the
// smallest memory of the target that holds them, on one thread; 0 when bytes or bandwidths are not known.
TENON_API KernelInfo kernel_info_of(const Op& subgraph, const TargetDescription& target);

// Gives snippets of the graph's body that have no label one each, "#0", "#1" ..., in the order of the body: profiles
// are in order of execution, and find by it what kernel_info_of() tells.
TENON_API void label_snippets(Graph& graph);

// A message without the operator's own label. Reports count refusals of the same words: those of a hundred convolutions
// are one.
TENON_API std::string without_label(const Op& op, const std::string& message);

}  // namespace tenon::irgen
