// Helpers of the gradient rules that stand in the operators' definitions.
#pragma once
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// `gradient`, which has the shape that `operand` was broadcast to, summed over what broadcasting had repeated: it has
// operand's shape. An error naming the shapes when it is not known which dims were repeated.
TENON_API Result<Value*> sum_to_operand(Builder& builder, Value* gradient, const Value* operand);

}  // namespace tenon
