// Float operators as the passes of quantisation see them: which let scales through, and which multiply weights.
#pragma once
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

inline bool is_f32(const Value* value) { return value->type().is_tensor() && value->type().element() == kF32; }
// Moves elements only: the same on integers.
bool moves_only(const Op& op);
// AveragePool, GlobalAveragePool, or ReduceMean over all axes of the image, kept.
bool is_mean(const Op& op);
// A constant f32 tensor, or null.
const Tensor* float_constant(const Value* value);
// Conv, Gemm or MatMul with constant f32 weights and, where there is one, bias.
bool is_product(const Op& op);
// factor * f(x) = f(factor * x) for positive factors, but for the ends of a Clip: picks, moves, means and clips of its
// first operand.
bool is_transparent(const Op& op);

// quant.Round of x; a factor of 1 is left out.
Result<Value*> make_round(Builder& builder, Value* x, const Step& step);

}  // namespace tenon::quant
