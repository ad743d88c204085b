// Rewrites operators that need more than one iteration space as operators that have a row in the decomposition table,
// and data movement. Done in the graph, before tokenisation.
//
//   Hardmax %x {axis}   %m = ReduceMax %x   %p = ReduceMin(Where(%x == %m, 0 1 2 ..., C))   Cast(0 1 2 ... == %p)
//   LRN %x {size}       %x / (bias + alpha / size * (Slice %x [0:C-4]^2 + Slice %x [1:C-3]^2 + ...))^beta, for channels
//                       whose windows are inside %x. The channels before and after these sum slices of Concat 0, %x^2,
//                       and a Concat joins the parts
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// Whether expand() knows the operator: ArgMax, ArgMin, Hardmax, LRN.
TENON_API bool can_expand(const Op& op);
// The results of `op`, built at the builder's insertion point. Code::unsupported where the axis that it searches, or
// the channels, have an unknown extent or none, and for windows over more than 64 channels.
TENON_API Result<std::vector<Value*>> expand(Builder& builder, const Op& op);
// `op` expanded, in a graph of its own whose inputs are its operands: for questions about the operators.
TENON_API Result<std::unique_ptr<Graph>> expanded_alone(const Op& op);
// Replaces the operators of the graph's body that can be expanded and returns how many. `wanted` may exclude some.
TENON_API Result<size_t> expand_all(Graph& graph, const std::function<bool(const Op&)>& wanted);

}  // namespace tenon::snippet
