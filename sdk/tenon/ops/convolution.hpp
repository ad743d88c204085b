// Convolutions. Activations are [N, C, D1, D2 ...] with any number of spatial axes; windows as in window.hpp.
#pragma once
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// y[n, m, o] = b[m] + sum over c in the group of m, and k, of x[n, c, o * stride - pad + k * dilation] * w[m, c, k],
// where x is 0 outside. w: [M, C / group, kernel ...], b: [M]. Output channels of group g depend on the input channels
// of group g only.
struct Conv : OpView<Conv> {
  static constexpr std::string_view kName = "Conv";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* b() const { return operand(2); }  // may be null
  int64_t group() const { return attr<int64_t>("group", 1); }
};

// The transpose of Conv as a linear map: y[n, m, i * stride - pad + k * dilation] gets b[m] and adds x[n, c, i] * w[c,
// m, k]. w: [C, M / group, kernel ...]. Output extent: (in - 1) * stride + eff + output_padding - pads, or as stated by
// `output_shape`, or in * stride for auto_pad SAME_*. The pads follow from it; an odd one is at the end for SAME_UPPER,
// else at the beginning.
struct ConvTranspose : OpView<ConvTranspose> {
  static constexpr std::string_view kName = "ConvTranspose";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* b() const { return operand(2); }  // may be null
  int64_t group() const { return attr<int64_t>("group", 1); }
};

// Conv of (x - x_zero_point) and (w - w_zero_point), 8-bit integers, in i32; w_zero_point: a scalar or one per m.
struct ConvInteger : OpView<ConvInteger> {
  static constexpr std::string_view kName = "ConvInteger";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* x_zero_point() const { return operand(2); }  // may be null
  Value* w_zero_point() const { return operand(3); }  // may be null
};

// y = saturate(round((ConvInteger(x, w) + b) * x_scale * w_scale / y_scale) + y_zero_point), ties to even. Scales and
// zero points of w: scalars or one per m; b: i32[M], with scale x_scale * w_scale.
struct QLinearConv : OpView<QLinearConv> {
  static constexpr std::string_view kName = "QLinearConv";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* x_scale() const { return operand(1); }
  Value* x_zero_point() const { return operand(2); }
  Value* w() const { return operand(3); }
  Value* w_scale() const { return operand(4); }
  Value* w_zero_point() const { return operand(5); }
  Value* y_scale() const { return operand(6); }
  Value* y_zero_point() const { return operand(7); }
  Value* b() const { return operand(8); }  // may be null
};

// Conv with displaced taps: tap k at output o reads x at o * stride - pad + k * dilation + offset[n, (g * K + k) * axes
// + axis, o] by linear interpolation (0 outside), times mask[n, g * K + k, o] when there is a mask. K: taps of the
// kernel; g: offset group of the input channel. offset: [N, offset_group * K * axes, D1', ...], mask: [N, offset_group
// * K, D1', ...].
struct DeformConv : OpView<DeformConv> {
  static constexpr std::string_view kName = "DeformConv";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* offset() const { return operand(2); }
  Value* b() const { return operand(3); }     // may be null
  Value* mask() const { return operand(4); }  // may be null
  int64_t group() const { return attr<int64_t>("group", 1); }
  int64_t offset_group() const { return attr<int64_t>("offset_group", 1); }
};

// Depthwise causal convolution along time: with z = [past_state, input] along the last axis,
// output[n, c, t] = act(bias[c] + sum over k of z[n, c, t + k] * weight[c, 0, k]); present_state is the last K - 1
// columns of z. input: [N, C, L], weight: [C, 1, K], states: [N, C, K - 1]; an absent past is 0. activation: none, silu
// or swish (the same: v * sigmoid(v)).
struct CausalConvWithState : OpView<CausalConvWithState> {
  static constexpr std::string_view kName = "CausalConvWithState";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* weight() const { return operand(1); }
  Value* bias() const { return operand(2); }        // may be null
  Value* past_state() const { return operand(3); }  // may be null
  Value* output() const { return result(0); }
  Value* present_state() const { return result(1); }
};

// How many outputs before its first one a ConvTranspose with this window drops, per spatial axis: as `pads` states, or
// as needed to get the extent `out`.
TENON_API Result<std::vector<Expr>> conv_transpose_begin(const Op& op, const Window& window,
                                                         const std::vector<Expr>& in, const std::vector<Expr>& out);

}  // namespace tenon
