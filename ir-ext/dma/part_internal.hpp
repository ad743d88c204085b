// Parts of tensors that transfers move: their shapes, and the equivalent generic operators.
#pragma once
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::dma {

// The shape of a dma.load of `x`. An error for a part outside x, or attributes that do not fit its rank.
Result<Shape> loaded_shape(const Op& op, const Shape& x);
// Checks that `x`, written at `begin`, is inside `into`.
Result<void> check_stored_part(const Op& op, const Shape& x, const Shape& into);

Result<std::vector<Value*>> decompose_load(Builder& builder, const Op& op);
Result<std::vector<Value*>> decompose_store(Builder& builder, const Op& op);
Result<std::vector<Value*>> decompose_alloc(Builder& builder, const Op& op);

}  // namespace tenon::dma
