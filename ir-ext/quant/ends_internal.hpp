// Where integers end and floats begin: the last steps of fuse-quantised.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// Products of quantised operands whose result is read as floats, without being rounded: of an output of the graph, 8
// bits would lose which class is the largest. Two fused operators give 16 bits of the accumulator, by bounds that no
// input leaves:
//
//   high = (acc + rounding) >> s     low = ((high << s) - acc) >> t,  t = max(0, s - 8)     y = high * 2^s - low * 2^t
//
// with 2^exponent of the accumulator in front; low comes from the negated weights and high as their residual.
Result<Change> widen_products(Region& body);

// A Mul by a constant before quant.Quantize or behind quant.Dequantize becomes their factor.
Result<Change> join_factors(Region& body);

}  // namespace tenon::quant
