// Operators whose iteration space depends on the value of an operand, such as a reduction whose axes are an input of
// the graph. They have no body before the value is known, and one for each value afterwards.
//
//   if (const auto operand = unknown_operand(op)) {          // before a run: which value will be asked for
//     TENON_TRY(alone, with_value(op, *operand, axes));      // at a run: an ordinary reduction
//   }
#pragma once
#include <memory>
#include <optional>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::snippet {

// The operand of `op` whose value its body depends on and that is no constant. Nothing: there is none, or the operator
// has no form in the dialect.
TENON_API std::optional<size_t> unknown_operand(const Op& op);

// `op` in a graph of its own, with `value` as a constant wherever it reads that operand. Inputs are the other values
// that it reads, in order and each once, but constants, which are copied; outputs its results that are used, in order.
// Types of inputs are those of `types`. An error of the operator's shape rule when it refuses the value.
TENON_API Result<std::unique_ptr<Graph>> with_value(const Op& op, size_t operand, const Tensor& value,
                                                    const TypeSource& types = {});

// `op` in a graph of its own, in the same way, with other types.
TENON_API Result<std::unique_ptr<Graph>> with_types(const Op& op, const TypeSource& types);
// The one operator of such a graph.
TENON_API const Op& only_op(const Graph& graph);

// make_body(op) as far as it can be told before a run: where a value is missing, for one that the operand may have;
// where extents are not known, for any. What a target can emit of it, it can of the body that a run shows.
TENON_API Result<Body> usual_body(const Op& op);

}  // namespace tenon::snippet
