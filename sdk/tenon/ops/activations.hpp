// Activation and other functions of one variable, elementwise, on floats unless stated otherwise. `alpha`, `beta`,
// `gamma` are attributes with ONNX's defaults.
#pragma once
#include <tenon/ops/elementwise_views.hpp>

namespace tenon {

struct Relu : UnaryView<Relu> {  // max(x, 0); NaN is kept. Any number type
  static constexpr std::string_view kName = "Relu";
  using UnaryView::UnaryView;
};
struct LeakyRelu : UnaryView<LeakyRelu> {  // x >= 0 ? x : alpha * x
  static constexpr std::string_view kName = "LeakyRelu";
  using UnaryView::UnaryView;
};
struct Elu : UnaryView<Elu> {  // x >= 0 ? x : alpha * (e^x - 1)
  static constexpr std::string_view kName = "Elu";
  using UnaryView::UnaryView;
};
struct Selu : UnaryView<Selu> {  // gamma * (x > 0 ? x : alpha * (e^x - 1))
  static constexpr std::string_view kName = "Selu";
  using UnaryView::UnaryView;
};
struct Celu : UnaryView<Celu> {  // max(0, x) + min(0, alpha * (e^(x / alpha) - 1))
  static constexpr std::string_view kName = "Celu";
  using UnaryView::UnaryView;
};
struct ThresholdedRelu : UnaryView<ThresholdedRelu> {  // x > alpha ? x : 0
  static constexpr std::string_view kName = "ThresholdedRelu";
  using UnaryView::UnaryView;
};
struct Sigmoid : UnaryView<Sigmoid> {  // 1 / (1 + e^-x)
  static constexpr std::string_view kName = "Sigmoid";
  using UnaryView::UnaryView;
};
struct HardSigmoid : UnaryView<HardSigmoid> {  // max(0, min(1, alpha * x + beta))
  static constexpr std::string_view kName = "HardSigmoid";
  using UnaryView::UnaryView;
};
struct HardSwish : UnaryView<HardSwish> {  // x * max(0, min(1, x / 6 + 1/2))
  static constexpr std::string_view kName = "HardSwish";
  using UnaryView::UnaryView;
};
struct Swish : UnaryView<Swish> {  // x / (1 + e^(-alpha * x))
  static constexpr std::string_view kName = "Swish";
  using UnaryView::UnaryView;
};
struct Mish : UnaryView<Mish> {  // x * tanh(ln(1 + e^x))
  static constexpr std::string_view kName = "Mish";
  using UnaryView::UnaryView;
};
struct Softplus : UnaryView<Softplus> {  // ln(1 + e^x)
  static constexpr std::string_view kName = "Softplus";
  using UnaryView::UnaryView;
};
struct Softsign : UnaryView<Softsign> {  // x / (1 + |x|)
  static constexpr std::string_view kName = "Softsign";
  using UnaryView::UnaryView;
};
struct Tanh : UnaryView<Tanh> {
  static constexpr std::string_view kName = "Tanh";
  using UnaryView::UnaryView;
};
struct Erf : UnaryView<Erf> {  // 2 / sqrt(pi) times the integral of e^(-t^2) over [0, x]
  static constexpr std::string_view kName = "Erf";
  using UnaryView::UnaryView;
};
struct Sin : UnaryView<Sin> {
  static constexpr std::string_view kName = "Sin";
  using UnaryView::UnaryView;
};
struct Cos : UnaryView<Cos> {
  static constexpr std::string_view kName = "Cos";
  using UnaryView::UnaryView;
};
struct Tan : UnaryView<Tan> {
  static constexpr std::string_view kName = "Tan";
  using UnaryView::UnaryView;
};
struct Asin : UnaryView<Asin> {
  static constexpr std::string_view kName = "Asin";
  using UnaryView::UnaryView;
};
struct Acos : UnaryView<Acos> {
  static constexpr std::string_view kName = "Acos";
  using UnaryView::UnaryView;
};
struct Atan : UnaryView<Atan> {
  static constexpr std::string_view kName = "Atan";
  using UnaryView::UnaryView;
};
struct Sinh : UnaryView<Sinh> {
  static constexpr std::string_view kName = "Sinh";
  using UnaryView::UnaryView;
};
struct Cosh : UnaryView<Cosh> {
  static constexpr std::string_view kName = "Cosh";
  using UnaryView::UnaryView;
};
struct Asinh : UnaryView<Asinh> {
  static constexpr std::string_view kName = "Asinh";
  using UnaryView::UnaryView;
};
struct Acosh : UnaryView<Acosh> {
  static constexpr std::string_view kName = "Acosh";
  using UnaryView::UnaryView;
};
struct Atanh : UnaryView<Atanh> {
  static constexpr std::string_view kName = "Atanh";
  using UnaryView::UnaryView;
};

// approximate none: x / 2 * (1 + erf(x / sqrt(2))); tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
struct Gelu : UnaryView<Gelu> {
  static constexpr std::string_view kName = "Gelu";
  using UnaryView::UnaryView;
  bool by_tanh() const { return attr<std::string>("approximate") == "tanh"; }
};
// x < -lambd ? x + bias : x > lambd ? x - bias : 0. Any number type.
struct Shrink : UnaryView<Shrink> {
  static constexpr std::string_view kName = "Shrink";
  using UnaryView::UnaryView;
  float bias() const { return attr<float>("bias", 0); }
  float lambd() const { return attr<float>("lambd", 0.5f); }
};
// x >= 0 ? x : slope * x, with slope broadcast to x (never the other way). Any number type.
struct PRelu : OpView<PRelu> {
  static constexpr std::string_view kName = "PRelu";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* slope() const { return operand(1); }
};
// min(max(x, low), high): high where low > high. The bounds are scalars; either may be absent. Any number type; NaN is
// kept.
struct Clip : OpView<Clip> {
  static constexpr std::string_view kName = "Clip";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* low() const { return operand(1); }
  Value* high() const { return operand(2); }
};
// Swish(a) * b, where a is the gate. Both have the same shape.
struct SwiGLU : BinaryView<SwiGLU> {
  static constexpr std::string_view kName = "SwiGLU";
  using BinaryView::BinaryView;
  float alpha() const { return attr<float>("alpha", 1); }
};

}  // namespace tenon
