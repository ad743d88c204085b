// Elementwise operators behind a Concat, on the parts before they are joined: a snippet then makes each part where it
// lies in the result (docs/snippets.md), and what was joined needs no memory.
//
//   %r = Concat %a, %b {axis = -1}         %c1, %c2: Slices of %c
//   %y = Mul %r, %c                   -->  %y1 = Mul %a, %c1    %y2 = Mul %b, %c2
//                                          %y = Concat %y1, %y2 {axis = -1}
//
// Done in the graph, before tokenisation. As take_crops.hpp for what is read, this is for what is written.
#pragma once
#include <functional>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// Each Concat of the graph's body behind the elementwise operators that `accepts` takes, one after the other, while
// each is the only reader of the one before; how many operators. At most four parts of known extents, each of whole
// cache lines in one piece at least. Other operands are read in parts, and where they are elementwise and for this
// alone, made in parts. Keeps: names and types of results.
TENON_API Result<size_t> sink_concats(Graph& graph, const std::function<bool(const Op& op)>& accepts);

}  // namespace tenon::snippet
