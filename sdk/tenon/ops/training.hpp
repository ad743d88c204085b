// Optimiser steps, from the domain ai.onnx.preview.training.
//
// Operands: R, the learning rate (a scalar float); T, the number of steps done before (a scalar i64); then for n
// tensors to optimise X1 ... Xn, their gradients G1 ... Gn, and the optimiser's state of the same shapes. Results: the
// new X1 ... Xn and the new state. In all of them g = norm_coefficient * x + G.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// State H. h' = h + g^2;  x' = x - R / (1 + T * decay_factor) * g / (sqrt(h') + epsilon)
struct Adagrad : OpView<Adagrad> {
  static constexpr std::string_view kName = "ai.onnx.preview.training.Adagrad";
  using OpView::OpView;
  size_t tensors() const { return op().result_count() / 2; }
};
// State V and H. v' = alpha * v + (1 - alpha) * g;  h' = beta * h + (1 - beta) * g^2;
// r = R * sqrt(1 - beta^T) / (1 - alpha^T), or R for T = 0;
// x' = (1 - norm_coefficient_post) * (x - r * v' / (sqrt(h') + epsilon))
struct Adam : OpView<Adam> {
  static constexpr std::string_view kName = "ai.onnx.preview.training.Adam";
  using OpView::OpView;
  size_t tensors() const { return op().result_count() / 3; }
};
// State V. v' = alpha * v + b * g with b = beta, or 1 for T = 0;
// mode standard: x' = x - R * v';  nesterov: x' = x - R * (g + alpha * v')
struct Momentum : OpView<Momentum> {
  static constexpr std::string_view kName = "ai.onnx.preview.training.Momentum";
  using OpView::OpView;
  size_t tensors() const { return op().result_count() / 2; }
  bool nesterov() const { return attr<std::string>("mode") == "nesterov"; }
};

}  // namespace tenon
