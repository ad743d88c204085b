// Snippets that read slices of tensors in place, rather than copies of them.
//
//   %h = Slice %x [0:4096 of the last 8192]            %y = snippet.Subgraph %x (%0: f32[N,8192]) {
//   %y = snippet.Subgraph %h (%0: f32[N,4096]) {  -->    %1 = Slice %0 [0:4096 of the last 8192]
//     %1 = Sigmoid %0 ...                                 %2 = Sigmoid %1 ...
//
// The body's input then has cuts (body.hpp). Done in the graph, after tokenisation.
#pragma once
#include <functional>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

// Moves each result of a Slice with steps of 1, or of a Split, into the snippets of the graph's body that read it, and
// returns how many. Needs: the numbers of the slice are known, it has gaps, nothing else reads it, and `accepts` holds
// for each of these snippets as it becomes. Not where less than a cache line of it is contiguous: reading such rows in
// place is no faster than copying them. Keeps: values, names of results. Time: for each slice, that of making the
// bodies of its users.
TENON_API size_t take_crops(Graph& graph, const std::function<bool(const Op& subgraph)>& accepts);

}  // namespace tenon::snippet
