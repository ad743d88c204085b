// Linear quantisation: q = saturate(round(x / scale) + zero_point) and back, x = (q - zero_point) * scale.
//
// Scale and zero point (of the same shape; an absent zero point is 0) are
//   per tensor   one number, if their rank is 0 or they have one element and x's axis is longer
//   per axis     [D] for the extent D of x's dim `axis`
//   per block    of x's shape except in dim `axis`, which has extent ceil(D / block_size), if `block_size` > 0
// Ties are rounded to even. Integers saturate. For narrow floats the zero point is 0, and `saturate` decides what
// happens to numbers that are too large (see ConvertOptions). `output_dtype` and `precision` are types, like Cast.to;
// if absent, as stated below.
#pragma once
#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

template <class Derived>
struct QuantizeView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* x() const { return this->operand(0); }
  Value* scale() const { return this->operand(1); }
  Value* zero_point() const { return this->operand(2); }
  int64_t axis() const { return this->template attr<int64_t>("axis", 1); }
  int64_t block_size() const { return this->template attr<int64_t>("block_size", 0); }
};

// The result has the zero point's element type, else `output_dtype`, else u8. The division is rounded to `precision`,
// or to the scale's type.
struct QuantizeLinear : QuantizeView<QuantizeLinear> {
  static constexpr std::string_view kName = "QuantizeLinear";
  using QuantizeView::QuantizeView;
};
// The result has the element type `output_dtype`, else the scale's.
struct DequantizeLinear : QuantizeView<DequantizeLinear> {
  static constexpr std::string_view kName = "DequantizeLinear";
  using QuantizeView::QuantizeView;
};
// Quantises x to u8 by its own range, extended to contain 0: scale = (greatest - least) / 255 (1 if x = 0 everywhere,
// which ONNX leaves undefined), zero_point = saturate(round(-least / scale)). Results: y, y_scale, y_zero_point. In
// f32.
struct DynamicQuantizeLinear : OpView<DynamicQuantizeLinear> {
  static constexpr std::string_view kName = "DynamicQuantizeLinear";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// The index of each element's scale: x is outer x extent x inner around `axis`, and the element (o, d, i) has scale
// number o * outer_step + d / block * axis_step + i * inner_step.
struct ScaleLayout {
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t block = 1;
  int64_t outer_step = 0, axis_step = 0, inner_step = 0;
};
TENON_API Result<ScaleLayout> scale_layout(const Op& op, const Dims& x, const Dims& scale);

}  // namespace tenon
