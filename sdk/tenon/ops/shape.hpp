// Operators on shapes: reading a shape, changing the shape of a tensor, and making tensors from shapes.
//
// Axes may be negative and then count from the back. Extents of result shapes are inferred as expressions wherever the
// operand's are, and so are the elements of integer vectors that consist of extents.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// shape = the extents of `data` for the axes [start, end), clamped to the rank. i64[n].
struct ShapeOf : OpView<ShapeOf> {
  static constexpr std::string_view kName = "Shape";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  int64_t start() const { return attr<int64_t>("start", 0); }
  int64_t end() const { return attr<int64_t>("end", INT64_MAX); }
};

// size = the number of elements of `data`. i64[].
struct Size : OpView<Size> {
  static constexpr std::string_view kName = "Size";
  using OpView::OpView;
  Value* data() const { return operand(0); }
};

// The elements of `data` in the same order, with the shape given by the integers of `shape`. -1, at most once, is
// inferred from the others; 0 means data's extent at the same position, or 0 with `allowzero`.
struct Reshape : OpView<Reshape> {
  static constexpr std::string_view kName = "Reshape";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* shape() const { return operand(1); }
  bool allowzero() const { return attr<int64_t>("allowzero", 0) != 0; }
};

// A matrix: [product of the extents before `axis`, product of the others]; axis in [-rank, rank].
struct Flatten : OpView<Flatten> {
  static constexpr std::string_view kName = "Flatten";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  int64_t axis() const { return attr<int64_t>("axis", 1); }
};

// Without the listed axes, whose extent must be 1; without a list, without all axes of extent 1.
struct Squeeze : OpView<Squeeze> {
  static constexpr std::string_view kName = "Squeeze";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* axes() const { return operand(1); }  // may be null
};

// With axes of extent 1 inserted, so that they are at `axes` of the result.
struct Unsqueeze : OpView<Unsqueeze> {
  static constexpr std::string_view kName = "Unsqueeze";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* axes() const { return operand(1); }
};

// `input` repeated to the shape that input's and `shape` broadcast to.
struct Expand : OpView<Expand> {
  static constexpr std::string_view kName = "Expand";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* shape() const { return operand(1); }
};

// A tensor of shape `input` filled with the one element of `value` (f32 zero when there is none).
struct ConstantOfShape : OpView<ConstantOfShape> {
  static constexpr std::string_view kName = "ConstantOfShape";
  using OpView::OpView;
  Value* shape() const { return operand(0); }
  const Tensor* value() const {
    const Attribute* attribute = op().attributes().find("value");
    return attribute ? attribute->get_if<Tensor>() : nullptr;
  }
};

// start, start + delta, ... while below limit: max(0, ceil((limit - start) / delta)) elements. Scalars.
struct Range : OpView<Range> {
  static constexpr std::string_view kName = "Range";
  using OpView::OpView;
  Value* start() const { return operand(0); }
  Value* limit() const { return operand(1); }
  Value* delta() const { return operand(2); }
};

// y[i, j] = 1 where j - i = k, else 0; y has the shape of the matrix `input`, and its element type unless `dtype` is
// given.
struct EyeLike : OpView<EyeLike> {
  static constexpr std::string_view kName = "EyeLike";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  int64_t k() const { return attr<int64_t>("k", 0); }
};

}  // namespace tenon
