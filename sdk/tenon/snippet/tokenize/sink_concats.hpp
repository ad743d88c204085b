// Moves elementwise operators that read a Concat to its operands: a snippet then computes each part in its place in
// the result (docs/snippets.md), and the concatenated operand needs no memory.
//
//   %r = Concat %a, %b {axis = -1}         %c1, %c2: Slices of %c
//   %y = Mul %r, %c                   -->  %y1 = Mul %a, %c1    %y2 = Mul %b, %c2
//                                          %y = Concat %y1, %y2 {axis = -1}
//
// Done in the graph, before tokenisation. take_crops.hpp does the same for what is read.
#pragma once
#include <functional>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// Moves each Concat of the graph's body after the elementwise operators that `accepts` takes, one after another, as
// long as each is the only reader of the one before. Returns how many operators it has passed. There may be at most
// four parts of known extents, each of whole cache lines in one contiguous piece. Other operands are sliced. Where they
// are elementwise results that nothing else reads, they are computed in parts. Keeps: names and types of results.
TENON_API Result<size_t> sink_concats(Graph& graph, const std::function<bool(const Op& op)>& accepts);

}  // namespace tenon::snippet
