// Pools of 8-bit integers over windows (ops/window.hpp) with explicit pads, x: i8[N, C, D1, D2 ...], y: i8[N, C, D1'
// ...]. There is no rounding up of extents: what an operator like MaxPool covers with ceil_mode is said by pads.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::fused {

// y = the largest element of each window; padding is never the largest, and a window of padding only gives -128.
struct QMaxPool : OpView<QMaxPool> {
  static constexpr std::string_view kName = "fused.QMaxPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// y = clip((sum of each window * multiplier + rounding) >> shift, clip_min, clip_max)   (epilogue.hpp); padding is 0
// and counts. A mean over k elements: multiplier / 2^shift close to 1 / k. A whole image: its extents as kernel_shape.
// No sum times multiplier may leave 32 bits: multiplier * 128 * elements of the window + rounding < 2^31.
struct QAvgPool : OpView<QAvgPool> {
  static constexpr std::string_view kName = "fused.QAvgPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  int64_t multiplier() const { return attr<int64_t>("multiplier", 1); }
};

}  // namespace tenon::fused
