// Random tensors. With the attribute `seed` every run gives the same numbers, on every machine and with any number of
// threads: element i depends on the seed and i only. Without it every run differs.
// `dtype` is a type as Cast.to is.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// Of the attribute `shape` and the element type `dtype` (default f32); normal with `mean` and the standard deviation
// `scale`.
struct RandomNormal : OpView<RandomNormal> {
  static constexpr std::string_view kName = "RandomNormal";
  using OpView::OpView;
};
// The same, uniform in [low, high).
struct RandomUniform : OpView<RandomUniform> {
  static constexpr std::string_view kName = "RandomUniform";
  using OpView::OpView;
};
// Of the operand's shape, and its element type unless `dtype` is given.
struct RandomNormalLike : OpView<RandomNormalLike> {
  static constexpr std::string_view kName = "RandomNormalLike";
  using OpView::OpView;
};
struct RandomUniformLike : OpView<RandomUniformLike> {
  static constexpr std::string_view kName = "RandomUniformLike";
  using OpView::OpView;
};
// 1 with the probability that the operand's element gives, else 0; of the operand's type, or of `dtype`.
struct Bernoulli : OpView<Bernoulli> {
  static constexpr std::string_view kName = "Bernoulli";
  using OpView::OpView;
};
// input [N, C] holds logarithms of weights (of any sum); output [N, sample_size] the classes drawn, as `dtype` (default
// i32).
struct Multinomial : OpView<Multinomial> {
  static constexpr std::string_view kName = "Multinomial";
  using OpView::OpView;
};

}  // namespace tenon
