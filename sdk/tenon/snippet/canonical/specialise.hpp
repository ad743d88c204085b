// Operators whose iteration space depends on the value of an operand, such as a reduction whose axes are an input of
// the graph. They have no body before the value is known, and one for each value afterwards.
//
//   if (const auto operand = unknown_operand(op)) {          // before a run: which value is needed
//     TENON_TRY(alone, with_value(op, *operand, axes));      // in a run: an ordinary reduction
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

// The operand of `op` whose value its body depends on and that is not constant. Nothing: there is none, or the operator
// cannot be expressed in the dialect.
TENON_API std::optional<size_t> unknown_operand(const Op& op);

// `op` in a graph of its own, with `value` as a constant wherever it reads that operand. The inputs of that graph are
// the other values that `op` reads, in order and each once, with the types of `types`; constants are copied instead.
// Its outputs are the results of `op` that are used, in order. Error of the operator's shape rule when it refuses the
// value.
TENON_API Result<std::unique_ptr<Graph>> with_value(const Op& op, size_t operand, const Tensor& value,
                                                    const TypeSource& types = {});

// `op` in a graph of its own, in the same way, with other types.
TENON_API Result<std::unique_ptr<Graph>> with_types(const Op& op, const TypeSource& types);
// The single operator of such a graph.
TENON_API const Op& only_op(const Graph& graph);

// make_body(op) as far as it is known before a run: with a value that the operand may have where it is missing, and
// with open extents where they are not known. If a target can emit this body, it can emit the body of any run.
TENON_API Result<Body> usual_body(const Op& op);

}  // namespace tenon::snippet
