// Windows that slide over the spatial axes of [N, C, D1, D2 ...]: common to convolutions and pooling.
//
// With eff = (kernel - 1) * dilation + 1, the window at output position o of one axis covers the inputs
//   o * stride - pad_begin + k * dilation,  k in [0, kernel)
// and the output extent is floor((in + pad_begin + pad_end - eff) / stride) + 1. ceil_mode rounds up instead, but never
// starts a window after the input and pad_begin. auto_pad SAME_* makes the extent ceil(in / stride), with the least
// padding that this needs, an odd element at the end (UPPER) or the beginning (LOWER); VALID pads nothing.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

enum class AutoPad : uint8_t { notset, same_upper, same_lower, valid };

// The attributes auto_pad, strides, dilations, pads and ceil_mode of one operator, defaults filled in.
struct TENON_API Window {
  AutoPad auto_pad = AutoPad::notset;
  bool ceil_mode = false;
  Dims strides, dilations;  // one per axis, all >= 1
  Dims pads;                // begin of each axis, then end of each axis; zeros unless notset
  std::vector<Dim> kernel;  // one per axis

  // Errors: a list whose length is not the spatial rank, a stride or dilation below 1, a kernel that contradicts
  // `kernel_shape`.
  static Result<Window> of(const Op& op, size_t spatial_rank, std::vector<Dim> kernel);
  // Takes the kernel from the attribute `kernel_shape`, which is required.
  static Result<Window> of(const Op& op, size_t spatial_rank);

  size_t rank() const { return strides.size(); }
  // The number of inputs from the first to the last that a window covers, inclusive.
  Dim effective_kernel(size_t axis) const;
  // An error when a window is larger than the padded input.
  Result<Dim> output_extent(size_t axis, const Dim& in) const;
  // The padding before the first input; needs known kernels. Negative pads crop.
  Expr pad_begin(size_t axis, const Expr& in) const;
  int64_t pad_begin(size_t axis, int64_t in) const { return pad_begin(axis, Expr(in)).constant(); }
};

// The integers of attribute `name`, or `count` times `fallback`; an error when their number differs or one is below
// `least`.
TENON_API Result<Dims> integers_attribute(const Op& op, Name name, size_t count, int64_t fallback, int64_t least);

// The output shape [N, channels, D1', D2' ...] for an input of shape `in`; unranked in, unranked out.
TENON_API Result<Shape> window_output_shape(const Window& window, const Shape& in, Dim channels);

}  // namespace tenon
