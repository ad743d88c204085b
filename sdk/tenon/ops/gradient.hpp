// Helpers for the gradient rules in the operators' definitions.
#pragma once
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// `gradient`, which has the shape that `operand` was broadcast to, summed over the broadcast dims, so that it has
// operand's shape. An error naming the shapes when it is not known which dims were broadcast.
TENON_API Result<Value*> sum_to_operand(Builder& builder, Value* gradient, const Value* operand);

}  // namespace tenon
