// The boundaries between integers and floats: the last steps of fuse-quantised.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// Handles products of quantised operands whose result is read as floats without being rounded: for an output of the
// graph, 8 bits would not show which class is the largest. Two fused operators give 16 bits of the accumulator, within
// bounds that hold for every input:
//
//   high = (acc + rounding) >> s     low = ((high << s) - acc) >> t,  t = max(0, s - 8)     y = high * 2^s - low * 2^t
//
// times 2^exponent of the accumulator; low is computed from the negated weights with high as the residual.
Result<Change> widen_products(Region& body);

// Merges a Mul by a constant before quant.Quantize or after quant.Dequantize into their factor.
Result<Change> join_factors(Region& body);

}  // namespace tenon::quant
