// Means of windows as fused.QAvgPool.
#pragma once
#include <optional>

#include <tenon-ext/quant/accumulator_internal.hpp>

namespace tenon::quant {

// The mean of a quantised operand as 8 bits of that exponent; nullopt where it cannot be said in integers: elements do
// not all count alike, or an extent is not known.
Result<std::optional<Quantised>> quantised_mean(Builder& builder, const Op& op, const ClipRange& clip,
                                                int64_t exponent);

}  // namespace tenon::quant
