// Comparisons, logic, and selection by a condition. Operands broadcast as in NumPy; results are booleans, except for
// Where.
#pragma once
#include <tenon/ops/elementwise_views.hpp>

namespace tenon {

// Any element type, strings and complex numbers included. NaN differs from everything, itself included.
struct Equal : BinaryView<Equal> {  // c = a == b
  static constexpr std::string_view kName = "Equal";
  using BinaryView::BinaryView;
};

// Numbers; false where an operand is NaN.
struct Less : BinaryView<Less> {  // c = a < b
  static constexpr std::string_view kName = "Less";
  using BinaryView::BinaryView;
};
struct LessOrEqual : BinaryView<LessOrEqual> {  // c = a <= b
  static constexpr std::string_view kName = "LessOrEqual";
  using BinaryView::BinaryView;
};
struct Greater : BinaryView<Greater> {  // c = a > b
  static constexpr std::string_view kName = "Greater";
  using BinaryView::BinaryView;
};
struct GreaterOrEqual : BinaryView<GreaterOrEqual> {  // c = a >= b
  static constexpr std::string_view kName = "GreaterOrEqual";
  using BinaryView::BinaryView;
};

// Booleans.
struct And : BinaryView<And> {
  static constexpr std::string_view kName = "And";
  using BinaryView::BinaryView;
};
struct Or : BinaryView<Or> {
  static constexpr std::string_view kName = "Or";
  using BinaryView::BinaryView;
};
struct Xor : BinaryView<Xor> {
  static constexpr std::string_view kName = "Xor";
  using BinaryView::BinaryView;
};
struct Not : UnaryView<Not> {
  static constexpr std::string_view kName = "Not";
  using UnaryView::UnaryView;
};

// output = condition ? x : y; all three broadcast together. x and y have the same type, which may be any.
struct Where : OpView<Where> {
  static constexpr std::string_view kName = "Where";
  using OpView::OpView;
  Value* condition() const { return operand(0); }
  Value* x() const { return operand(1); }
  Value* y() const { return operand(2); }
};

struct IsNaN : UnaryView<IsNaN> {
  static constexpr std::string_view kName = "IsNaN";
  using UnaryView::UnaryView;
};
// True for the infinities that the attributes select. Formats without infinity give false.
struct IsInf : UnaryView<IsInf> {
  static constexpr std::string_view kName = "IsInf";
  using UnaryView::UnaryView;
  bool detects_positive() const { return attr<int64_t>("detect_positive", 1) != 0; }
  bool detects_negative() const { return attr<int64_t>("detect_negative", 1) != 0; }
};

}  // namespace tenon
