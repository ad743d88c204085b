// Which inputs windows (window.hpp) read for a box of outputs, and how the windowed operator runs on that part of its
// input.
//
// Along a spatial axis the outputs [a, b] read the inputs [a * stride - begin, b * stride - begin + eff - 1], cut to
// the input; what is cut off is padding. A part of the input padded by exactly that gives exactly those outputs.
#pragma once
#include <vector>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/window.hpp>

namespace tenon {

// Of spatial axis `axis`, dim axis + 2 of result and input alike.
TENON_API DimBounds window_reads(const Window& window, size_t axis, const BoundsQuery& query, const Dim& in);
// Of the taps of that axis: all, but some may only ever lie in the padding.
TENON_API DimBounds window_taps(const Window& window, size_t axis);

// Sets the pads with which the operator runs on the crop of operand `operand`, and makes the padding explicit.
TENON_API Result<void> set_window_pads(const Window& window, const SubBoxQuery& query, size_t operand, SubBoxOp& op);

}  // namespace tenon
