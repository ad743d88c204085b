// Base classes of views of operators with one or two operands.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

template <class Derived>
struct UnaryView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* input() const { return this->operand(0); }
};

template <class Derived>
struct BinaryView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* a() const { return this->operand(0); }
  Value* b() const { return this->operand(1); }
};

}  // namespace tenon
