// Properties of float operators for quantisation: which preserve scales, and which multiply by weights.
#pragma once
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

inline bool is_f32(const Value* value) { return value->type().is_tensor() && value->type().element() == kF32; }
// Only moves elements, so that it is the same on integers.
bool moves_only(const Op& op);
// AveragePool, GlobalAveragePool, or ReduceMean over all axes of the image with keepdims.
bool is_mean(const Op& op);
// A constant f32 tensor, or null.
const Tensor* float_constant(const Value* value);
// Conv, Gemm or MatMul with constant f32 weights and a constant bias or none.
bool is_product(const Op& op);
// factor * f(x) = f(factor * x) for positive factors, except for the bounds of a Clip: operators that select, move,
// average or clip elements of their first operand.
bool is_transparent(const Op& op);

// quant.Round of x; a factor of 1 is omitted.
Result<Value*> make_round(Builder& builder, Value* x, const Step& step);

}  // namespace tenon::quant
