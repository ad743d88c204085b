// Matrix product of 8-bit integers, with the epilogue of a convolution.
//
//   acc = x * transpose(w) + bias[m] + (residual << residual_shift)
//   y = clip((acc + rounding) >> shift, clip_min, clip_max)                         (epilogue.hpp)
//
// x: i8[N, K], w: i8[M, K], bias: i32[M], residual: i8[N, M], y: i8[N, M].
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::fused {

struct QDense : OpView<QDense> {
  static constexpr std::string_view kName = "fused.QDense";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* bias() const { return operand(2); }      // may be null
  Value* residual() const { return operand(3); }  // may be null
  int64_t residual_shift() const { return attr<int64_t>("residual_shift", 0); }
};

}  // namespace tenon::fused
