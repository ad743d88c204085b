// Elementwise arithmetic on tensors. Operands broadcast as in NumPy unless stated otherwise; results have the element
// type of the first operand. Integers wrap around, as in two's complement.
#pragma once
#include <tenon/ops/elementwise_views.hpp>

namespace tenon {

struct Add : BinaryView<Add> {  // c = a + b
  static constexpr std::string_view kName = "Add";
  using BinaryView::BinaryView;
};
struct Sub : BinaryView<Sub> {  // c = a - b
  static constexpr std::string_view kName = "Sub";
  using BinaryView::BinaryView;
};
struct Mul : BinaryView<Mul> {  // c = a * b
  static constexpr std::string_view kName = "Mul";
  using BinaryView::BinaryView;
};
// c = a / b. Integers: rounded towards zero; 0 where b is 0 (ONNX leaves that undefined).
struct Div : BinaryView<Div> {
  static constexpr std::string_view kName = "Div";
  using BinaryView::BinaryView;
};
// c = a - n * b for an integer n. fmod false: c has the sign of b (floats: floor of the quotient, as Python's %); true:
// the sign of a (C's fmod). Integers: 0 where b is 0 (ONNX leaves that undefined).
struct Mod : BinaryView<Mod> {
  static constexpr std::string_view kName = "Mod";
  using BinaryView::BinaryView;
  bool fmod() const { return attr<int64_t>("fmod") != 0; }
};
// c = a ^ b; b may have another element type. Integer to a negative integer power: truncated, so 0 except for a = 1 and
// -1. Integer to a float power: computed in f64, then converted as by Cast.
struct Pow : BinaryView<Pow> {
  static constexpr std::string_view kName = "Pow";
  using BinaryView::BinaryView;
};
// c = a * 2^b (LEFT) or floor(a / 2^b) (RIGHT) of unsigned integers; 0 once b reaches the width.
struct BitShift : BinaryView<BitShift> {
  static constexpr std::string_view kName = "BitShift";
  using BinaryView::BinaryView;
  bool left() const { return attr<std::string>("direction") == "LEFT"; }
};
struct BitwiseAnd : BinaryView<BitwiseAnd> {
  static constexpr std::string_view kName = "BitwiseAnd";
  using BinaryView::BinaryView;
};
struct BitwiseOr : BinaryView<BitwiseOr> {
  static constexpr std::string_view kName = "BitwiseOr";
  using BinaryView::BinaryView;
};
struct BitwiseXor : BinaryView<BitwiseXor> {
  static constexpr std::string_view kName = "BitwiseXor";
  using BinaryView::BinaryView;
};

struct BitwiseNot : UnaryView<BitwiseNot> {
  static constexpr std::string_view kName = "BitwiseNot";
  using UnaryView::UnaryView;
};
struct Neg : UnaryView<Neg> {  // y = -x
  static constexpr std::string_view kName = "Neg";
  using UnaryView::UnaryView;
};
struct Abs : UnaryView<Abs> {  // y = |x|; the least signed integer is unchanged
  static constexpr std::string_view kName = "Abs";
  using UnaryView::UnaryView;
};
struct Sign : UnaryView<Sign> {  // y = 1, 0 or -1 for x above, at or below 0; NaN is kept
  static constexpr std::string_view kName = "Sign";
  using UnaryView::UnaryView;
};
struct Reciprocal : UnaryView<Reciprocal> {  // y = 1 / x
  static constexpr std::string_view kName = "Reciprocal";
  using UnaryView::UnaryView;
};
struct Sqrt : UnaryView<Sqrt> {  // y = sqrt(x), NaN below 0
  static constexpr std::string_view kName = "Sqrt";
  using UnaryView::UnaryView;
};
struct Ceil : UnaryView<Ceil> {  // the least integer >= x
  static constexpr std::string_view kName = "Ceil";
  using UnaryView::UnaryView;
};
struct Floor : UnaryView<Floor> {  // the greatest integer <= x
  static constexpr std::string_view kName = "Floor";
  using UnaryView::UnaryView;
};
struct Round : UnaryView<Round> {  // the nearest integer, ties to even
  static constexpr std::string_view kName = "Round";
  using UnaryView::UnaryView;
};
struct Exp : UnaryView<Exp> {  // y = e^x
  static constexpr std::string_view kName = "Exp";
  using UnaryView::UnaryView;
};
struct Log : UnaryView<Log> {  // y = ln x, NaN below 0
  static constexpr std::string_view kName = "Log";
  using UnaryView::UnaryView;
};

// One or more operands that broadcast together. Max and Min give NaN where any operand is NaN.
struct Max : OpView<Max> {
  static constexpr std::string_view kName = "Max";
  using OpView::OpView;
};
struct Min : OpView<Min> {
  static constexpr std::string_view kName = "Min";
  using OpView::OpView;
};
struct Sum : OpView<Sum> {
  static constexpr std::string_view kName = "Sum";
  using OpView::OpView;
};
struct Mean : OpView<Mean> {  // the sum divided by the number of operands
  static constexpr std::string_view kName = "Mean";
  using OpView::OpView;
};

}  // namespace tenon
