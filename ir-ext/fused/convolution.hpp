// Convolution of 8-bit integers with everything that an accelerator does on its accumulators afterwards.
//
//   acc = sum of x * w over the window + bias[o] + (residual << residual_shift)
//   y = clip((acc + rounding) >> shift, clip_min, clip_max)                         (epilogue.hpp)
//
// x: i8[N, C, D1, D2 ...], w: i8[O, C / group, kernel ...], bias: i32[O], residual: i8 of y's shape, y: i8[N, O, D1'
// ...]. Windows as in ops/window.hpp, with explicit pads; what is padded is 0. Depthwise: group = C. A ReLU is clip_min
// = 0.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::fused {

struct QConv : OpView<QConv> {
  static constexpr std::string_view kName = "fused.QConv";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* bias() const { return operand(2); }      // may be null
  Value* residual() const { return operand(3); }  // may be null
  int64_t group() const { return attr<int64_t>("group", 1); }
  int64_t residual_shift() const { return attr<int64_t>("residual_shift", 0); }
};

}  // namespace tenon::fused
