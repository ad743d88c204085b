// Pooling: windows of [N, C, D1, D2 ...] reduced to one element each; see window.hpp for windows, pads and ceil_mode.
#pragma once
#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// Y = the maximum of each window; padding is ignored; NaN is greater than all. Indices: the position of the maximum, as
// a row-major index into all of X, or with storage_order 1 with the spatial axes column-major.
struct MaxPool : OpView<MaxPool> {
  static constexpr std::string_view kName = "MaxPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* y() const { return result(0); }
  Value* indices() const { return result(1); }
};

// Y = the mean of each window: over its elements inside X or, with count_include_pad, including the zeros of the
// padding.
struct AveragePool : OpView<AveragePool> {
  static constexpr std::string_view kName = "AveragePool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  bool count_include_pad() const { return attr<int64_t>("count_include_pad", 0) != 0; }
};

// Y = (sum of |x|^p over each window)^(1/p).
struct LpPool : OpView<LpPool> {
  static constexpr std::string_view kName = "LpPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  int64_t p() const { return attr<int64_t>("p", 2); }
};

// The same over all spatial axes, which are kept with extent 1.
struct GlobalMaxPool : OpView<GlobalMaxPool> {
  static constexpr std::string_view kName = "GlobalMaxPool";
  using OpView::OpView;
};
struct GlobalAveragePool : OpView<GlobalAveragePool> {
  static constexpr std::string_view kName = "GlobalAveragePool";
  using OpView::OpView;
};
struct GlobalLpPool : OpView<GlobalLpPool> {
  static constexpr std::string_view kName = "GlobalLpPool";
  using OpView::OpView;
};

// Inverse of MaxPool: zeros, with the elements of X at the positions I, which are indices into a tensor of the extents
// (in - 1) * stride + kernel - pads. `output_shape`, if given, is the shape of Y instead: the same positions in a
// larger tensor.
struct MaxUnpool : OpView<MaxUnpool> {
  static constexpr std::string_view kName = "MaxUnpool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* i() const { return operand(1); }
  Value* output_shape() const { return operand(2); }  // may be null
};

// For each row [batch, x1, y1, x2, y2] of rois, times spatial_scale and rounded: the box, ends included, is divided
// into pooled_shape bins (which may overlap by one element), and the maximum of each is taken; 0 for an empty bin.
// (Girshick, Fast R-CNN, 2015, section 2.1)
struct MaxRoiPool : OpView<MaxRoiPool> {
  static constexpr std::string_view kName = "MaxRoiPool";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* rois() const { return operand(1); }
};

// For each row [x1, y1, x2, y2] of rois: the box is divided into output_height x output_width bins, each sampled at
// sampling_ratio^2 points (0: as many as the bin has elements) by linear interpolation, and their mean or maximum is
// taken. (He et al., Mask R-CNN, 2017, section 3; "half_pixel" shifts the box by half an element, "output_half_pixel"
// does not and makes boxes at least 1 wide.)
struct RoiAlign : OpView<RoiAlign> {
  static constexpr std::string_view kName = "RoiAlign";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* rois() const { return operand(1); }
  Value* batch_indices() const { return operand(2); }
};

// The extents of Y of MaxUnpool if no output_shape is given.
TENON_API Result<Shape> max_unpool_shape(const Op& op, const Shape& x);

}  // namespace tenon
