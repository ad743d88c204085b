// Constants and the identity.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// A tensor known at compile time: weights, scalars, shapes. `value` is shared, never written.
struct Constant : OpView<Constant> {
  static constexpr std::string_view kName = "Constant";
  using OpView::OpView;
  const Tensor& value() const { return *op().attributes().find("value")->get_if<Tensor>(); }
};

// y = x, for any type.
struct Identity : OpView<Identity> {
  static constexpr std::string_view kName = "Identity";
  using OpView::OpView;
  Value* input() const { return operand(0); }
};

}  // namespace tenon
