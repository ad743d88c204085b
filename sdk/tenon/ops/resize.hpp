// Resampling of images: by a factor, at given points, or composed from blocks.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// Y = X resampled to other extents, along each of `axes` (default: all) in turn. Output i of an axis reads X around x,
// which coordinate_transformation_mode gives, where `in` and `out` are extents and scale = out / in, or as `scales`
// states:
//   half_pixel            (i + 0.5) / scale - 0.5
//   pytorch_half_pixel    the same, 0 when out is 1
//   half_pixel_symmetric  the same, shifted so that both ends lose equally when in * scale is not a whole number
//   align_corners         i * (in - 1) / (out - 1), 0 when out is 1
//   asymmetric            i / scale
//   tf_half_pixel_for_nn  (i + 0.5) / scale
//   tf_crop_and_resize    between roi's start and end, as fractions of in - 1; outside gives extrapolation_value
// `mode` nearest takes the element to which nearest_mode rounds x; linear weights 2 neighbours, cubic 4 by Keys' kernel
// with cubic_coeff_a (R. Keys, Cubic convolution interpolation, 1981). With antialias the kernel is widened by 1 /
// scale when shrinking. Beyond the border the border's element is used or, with exclude_outside, nothing, and the
// weights are normalised to sum to 1 again. keep_aspect_ratio_policy: `sizes` unchanged (stretch), or one scale for all
// axes, the smallest (not_larger) or the largest one.
struct Resize : OpView<Resize> {
  static constexpr std::string_view kName = "Resize";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* roi() const { return operand(1); }  // may be null, like all that follow; one of the last two is given
  Value* scales() const { return operand(2); }
  Value* sizes() const { return operand(3); }
  std::string mode() const { return attr<std::string>("mode", "nearest"); }
};

// Extents and factors of Resize, for all axes of X.
struct TENON_API ResizePlan {
  Dims out;
  std::vector<double> scales;      // 1 for axes that are not resized
  std::vector<double> start, end;  // the region of interest, as fractions
  std::vector<bool> resized;       // whether the axis is one of `axes`

  // `scales`, `sizes`, `roi`: the operands' elements, if they are given and not empty.
  static Result<ResizePlan> of(const Op& op, const Dims& in, const std::optional<std::vector<double>>& scales,
                               const std::optional<std::vector<int64_t>>& sizes,
                               const std::optional<std::vector<double>>& roi);
};

// Y[n, c, o] = X[n, c] at the point grid[n, o], whose coordinates (x, y ...: the last axis of X first) range from -1 to
// 1: from the first element's centre to the last one's with align_corners, else from border to border. `mode`: nearest
// (ties to even), linear, cubic (a = -0.75). padding_mode: zeros, border (the nearest element inside), reflection
// (mirrored at the ends).
struct GridSample : OpView<GridSample> {
  static constexpr std::string_view kName = "GridSample";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* grid() const { return operand(1); }
};

// grid[n, o] = theta[n] (x, y ..., 1)': the points of a grid over [-1, 1]^k through an affine map. theta: [N, k, k +
// 1], size: [N, C, D1, D2 ...], grid: [N, D1, D2 ..., k]; k 2 or 3. The ends are centres (align_corners) or borders.
struct AffineGrid : OpView<AffineGrid> {
  static constexpr std::string_view kName = "AffineGrid";
  using OpView::OpView;
  Value* theta() const { return operand(0); }
  Value* size() const { return operand(1); }
};

// Sums blocks where they overlap: input [N, C * block elements, blocks] to [N, C, image ...]; the transpose of dividing
// an image into the windows of a convolution with kernel block_shape.
struct Col2Im : OpView<Col2Im> {
  static constexpr std::string_view kName = "Col2Im";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* image_shape() const { return operand(1); }
  Value* block_shape() const { return operand(2); }
};

}  // namespace tenon
