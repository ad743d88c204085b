// Sequences (lists of values of the same kind) and optionals (a value or nothing).
//
// Positions may be negative and then count from the back.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// [input 0, input 1, ...]: tensors of the same element type.
struct SequenceConstruct : OpView<SequenceConstruct> {
  static constexpr std::string_view kName = "SequenceConstruct";
  using OpView::OpView;
};

// An empty sequence of tensors of `dtype` (default f32).
struct SequenceEmpty : OpView<SequenceEmpty> {
  static constexpr std::string_view kName = "SequenceEmpty";
  using OpView::OpView;
  ElementType dtype() const { return attr<Type>("dtype", Type(kF32, Shape())).element(); }
};

// The element at `position`.
struct SequenceAt : OpView<SequenceAt> {
  static constexpr std::string_view kName = "SequenceAt";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
  Value* position() const { return operand(1); }
};

// The sequence with `tensor` inserted before the element at `position`; at the end without one.
struct SequenceInsert : OpView<SequenceInsert> {
  static constexpr std::string_view kName = "SequenceInsert";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
  Value* tensor() const { return operand(1); }
  Value* position() const { return operand(2); }  // may be null
};

// The sequence without the element at `position`; without a position, without the last element.
struct SequenceErase : OpView<SequenceErase> {
  static constexpr std::string_view kName = "SequenceErase";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
  Value* position() const { return operand(1); }  // may be null
};

// The number of elements. i64[].
struct SequenceLength : OpView<SequenceLength> {
  static constexpr std::string_view kName = "SequenceLength";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
};

// For each output of the body, the sequence of its values for elements 0, 1, ... of input_sequence. The body also gets
// the elements at the same position of further sequences, and further tensors unchanged.
struct SequenceMap : OpView<SequenceMap> {
  static constexpr std::string_view kName = "SequenceMap";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
  Region& body() const { return op().region(0); }
};

// `input` split along `axis`: into parts of the length `split` (a scalar; the last part takes the remainder), of the
// lengths `split` (a vector), or, without it, of length 1; the latter lose the axis unless `keepdims`.
struct SplitToSequence : OpView<SplitToSequence> {
  static constexpr std::string_view kName = "SplitToSequence";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* split() const { return operand(1); }  // may be null
  int64_t axis() const { return attr<int64_t>("axis", 0); }
  bool keepdims() const { return attr<int64_t>("keepdims", 1) != 0; }
};

// The elements concatenated along `axis` or, with new_axis, stacked along a new axis `axis`.
struct ConcatFromSequence : OpView<ConcatFromSequence> {
  static constexpr std::string_view kName = "ConcatFromSequence";
  using OpView::OpView;
  Value* input_sequence() const { return operand(0); }
  int64_t axis() const { return attr<int64_t>("axis"); }
  bool new_axis() const { return attr<int64_t>("new_axis", 0) != 0; }
};

// An optional that holds `input`, or nothing if there is none; `type` states the type of its content.
struct Optional : OpView<Optional> {
  static constexpr std::string_view kName = "Optional";
  using OpView::OpView;
  Value* input() const { return operand(0); }  // may be null
};

// The content of an optional; an error at run time if it is empty. A value that is not an optional is returned as is.
struct OptionalGetElement : OpView<OptionalGetElement> {
  static constexpr std::string_view kName = "OptionalGetElement";
  using OpView::OpView;
  Value* input() const { return operand(0); }
};

// Whether the optional holds a value. False without an operand; true for a value that is not an optional. bool[].
struct OptionalHasElement : OpView<OptionalHasElement> {
  static constexpr std::string_view kName = "OptionalHasElement";
  using OpView::OpView;
  Value* input() const { return operand(0); }  // may be null
};

}  // namespace tenon
