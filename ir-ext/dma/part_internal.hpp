// Parts of tensors that transfers move: shapes, and the same in generic operators.
#pragma once
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::dma {

// Of a dma.load of `x`. An error for a part that leaves x, or attributes that do not fit its rank.
Result<Shape> loaded_shape(const Op& op, const Shape& x);
// That `x` from `begin` on lies in `into`.
Result<void> check_stored_part(const Op& op, const Shape& x, const Shape& into);

Result<std::vector<Value*>> decompose_load(Builder& builder, const Op& op);
Result<std::vector<Value*>> decompose_store(Builder& builder, const Op& op);
Result<std::vector<Value*>> decompose_alloc(Builder& builder, const Op& op);

}  // namespace tenon::dma
