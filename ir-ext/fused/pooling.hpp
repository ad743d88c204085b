// Pooling of 8-bit integers over windows (ops/window.hpp) with explicit pads, x: i8[N, C, D1, D2 ...], y: i8[N, C, D1'
// ...]. Extents are never rounded up: what an operator like MaxPool covers by ceil_mode is expressed by pads.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::fused {

// y = the maximum of each window; padding is ignored, and a window with nothing but padding gives -128.
struct QMaxPool : OpView<QMaxPool> {
  static constexpr std::string_view kName = "fused.QMaxPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// y = clip((sum of each window * multiplier + rounding) >> shift, clip_min, clip_max)   (epilogue.hpp); padding counts
// as 0. A mean over k elements: multiplier / 2^shift close to 1 / k. For a whole image, kernel_shape is its extents. A
// sum times multiplier must fit 32 bits: multiplier * 128 * elements of the window + rounding < 2^31.
struct QAvgPool : OpView<QAvgPool> {
  static constexpr std::string_view kName = "fused.QAvgPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  int64_t multiplier() const { return attr<int64_t>("multiplier", 1); }
};

}  // namespace tenon::fused
