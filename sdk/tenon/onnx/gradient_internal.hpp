// The training operator Gradient. It refers to values of its graph by name, which no form without names could keep, so
// import replaces it by the operators of reverse-mode differentiation.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/support/result.hpp>

namespace tenon::onnx {

inline constexpr std::string_view kGradientOp = "ai.onnx.preview.training.Gradient";

// d(sum of y)/d(x) for each x of `xs`, where y is computed from `xs` and `constants` by the operators between them and
// y, evaluated at the values `at` (for xs, then constants). Operators in between that have no gradient rule, or have
// regions, are Code::unsupported.
Result<std::vector<Value*>> expand_gradient(Builder& builder, std::span<Value* const> xs,
                                            std::span<Value* const> constants, Value* y, std::span<Value* const> at);

}  // namespace tenon::onnx
