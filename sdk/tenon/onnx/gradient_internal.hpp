// The training operator Gradient: it names values of its graph, which no name-free form could keep, so it is replaced
// by the operators of the reverse mode when it is read.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/support/result.hpp>

namespace tenon::onnx {

inline constexpr std::string_view kGradientOp = "ai.onnx.preview.training.Gradient";

// d(sum of y)/d(x) for each x of `xs`, where y is a function of `xs` and `constants` by the operators between them and
// y, taken at the values `at` (for xs, then constants). Operators between that have no gradient rule, or regions, are
// Code::unsupported.
Result<std::vector<Value*>> expand_gradient(Builder& builder, std::span<Value* const> xs,
                                            std::span<Value* const> constants, Value* y, std::span<Value* const> at);

}  // namespace tenon::onnx
