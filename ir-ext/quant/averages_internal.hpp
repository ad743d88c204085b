// Means of windows, as fused.QAvgPool.
#pragma once
#include <optional>

#include <tenon-ext/quant/accumulator_internal.hpp>

namespace tenon::quant {

// The mean of a quantised operand as 8 bits with that exponent; nullopt if it cannot be expressed in integers: elements
// have different weights, or an extent is not known.
Result<std::optional<Quantised>> quantised_mean(Builder& builder, const Op& op, const ClipRange& clip,
                                                int64_t exponent);

}  // namespace tenon::quant
