// Which inputs windows (window.hpp) read for a box of outputs, and how the windowed operator runs on that part of its
// input.
//
// Along a spatial axis the outputs [a, b] read the inputs [a * stride - begin, b * stride - begin + eff - 1], clamped
// to the input; the rest is padding. A crop of the input with exactly that padding gives exactly those outputs.
#pragma once
#include <vector>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/window.hpp>

namespace tenon {

// The range that is read along spatial axis `axis`, which is dim axis + 2 of result and input.
TENON_API DimBounds window_reads(const Window& window, size_t axis, const BoundsQuery& query, const Dim& in);
// The range of taps along that axis: all, but some may only ever be in the padding.
TENON_API DimBounds window_taps(const Window& window, size_t axis);

// Sets the pads with which the operator runs on the crop of operand `operand`, and makes the padding explicit.
TENON_API Result<void> set_window_pads(const Window& window, const SubBoxQuery& query, size_t operand, SubBoxOp& op);

}  // namespace tenon
