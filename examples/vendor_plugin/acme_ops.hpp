// The operators that are specific to this device.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace acme {

// y = x * scale + shift, elementwise; scale and shift are f32 attributes. x, y: f32, any shape.
struct ScaleShift : tenon::OpView<ScaleShift> {
  static constexpr std::string_view kName = "acme.ScaleShift";
  using OpView::OpView;
  tenon::Value* x() const { return operand(0); }
  float scale() const { return attr<float>("scale", 1.0f); }
  float shift() const { return attr<float>("shift", 0.0f); }
};

}  // namespace acme
