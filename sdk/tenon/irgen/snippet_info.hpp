// Reports of targets about the snippets that they compile, and about operators that they refuse.
#pragma once
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::irgen {

// Info of a snippet.Subgraph, without the bytes of its code. The time is that of moving its bytes at the bandwidth of
// the target's smallest memory that holds them, on one thread; 0 when bytes or bandwidths are not known.
TENON_API KernelInfo kernel_info_of(const Op& subgraph, const TargetDescription& target);

// Gives each snippet of the graph's body without a label one, "#0", "#1" ..., in the order of the body. Profiles are in
// order of execution, and use the label to find what kernel_info_of() gave.
TENON_API void label_snippets(Graph& graph);

// A message without the operator's own label. Reports count refusals of equal wording: those of a hundred convolutions
// are one.
TENON_API std::string without_label(const Op& op, const std::string& message);

}  // namespace tenon::irgen
