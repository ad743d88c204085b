// Operators that no single space of a body covers, in terms of operators that have a row in the decomposition table and
// of movement. Done in the graph, before tokenisation.
//
//   Hardmax %x {axis}   %m = ReduceMax %x   %p = ReduceMin(Where(%x == %m, 0 1 2 ..., C))   Cast(0 1 2 ... == %p)
//   LRN %x {size}       %x / (bias + alpha / size * (Slice %x [0:C-4]^2 + Slice %x [1:C-3]^2 + ...))^beta, of channels
//                       whose windows lie within %x; as parts of a Concat with those before and behind, which sum
//                       slices of Concat 0, %x^2
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// ArgMax, ArgMin, Hardmax, LRN.
TENON_API bool can_expand(const Op& op);
// The results of `op`, made at the builder's place. Code::unsupported where the axis that it looks along, or the
// channels, have an extent that is not known, or none; and of windows over more than 64 channels.
TENON_API Result<std::vector<Value*>> expand(Builder& builder, const Op& op);
// `op` expanded, in a graph of its own whose inputs are its operands: for questions about the operators.
TENON_API Result<std::unique_ptr<Graph>> expanded_alone(const Op& op);
// Replaces those operators of the graph's body that can be expanded; how many. `wanted` may leave some out.
TENON_API Result<size_t> expand_all(Graph& graph, const std::function<bool(const Op&)>& wanted);

}  // namespace tenon::snippet
