// Snippets that read parts of tensors where these lie, rather than copies of them.
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

// Moves each result of a Slice with steps of 1 or a Split, whose numbers are known and which has gaps, into the
// snippets of the graph's body that read it, where nothing else reads it and `accepts` each of these operators as they
// become; how many. Not where less than a cache line of it lies in one piece: such rows are walked no faster than
// copied. Keeps: values, names of results. Time: of each crop that of making the bodies of its users.
TENON_API size_t take_crops(Graph& graph, const std::function<bool(const Op& subgraph)>& accepts);

}  // namespace tenon::snippet
