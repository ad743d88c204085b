// Random tensors. With the attribute `seed`, every run gives the same numbers, on every machine and with any number of
// threads: element i depends only on the seed and i. Without it, every run differs. `dtype` is a type, like Cast.to.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// Has the shape `shape` and the element type `dtype` (default f32); normally distributed with mean `mean` and standard
// deviation `scale`.
struct RandomNormal : OpView<RandomNormal> {
  static constexpr std::string_view kName = "RandomNormal";
  using OpView::OpView;
};
// The same, uniformly distributed in [low, high).
struct RandomUniform : OpView<RandomUniform> {
  static constexpr std::string_view kName = "RandomUniform";
  using OpView::OpView;
};
// Has the operand's shape, and its element type unless `dtype` is given.
struct RandomNormalLike : OpView<RandomNormalLike> {
  static constexpr std::string_view kName = "RandomNormalLike";
  using OpView::OpView;
};
struct RandomUniformLike : OpView<RandomUniformLike> {
  static constexpr std::string_view kName = "RandomUniformLike";
  using OpView::OpView;
};
// 1 with the probability given by the operand's element, else 0; of the operand's type, or of type `dtype`.
struct Bernoulli : OpView<Bernoulli> {
  static constexpr std::string_view kName = "Bernoulli";
  using OpView::OpView;
};
// input [N, C] holds logarithms of weights, which need not sum to 1; output [N, sample_size] has the drawn classes, as
// `dtype` (default i32).
struct Multinomial : OpView<Multinomial> {
  static constexpr std::string_view kName = "Multinomial";
  using OpView::OpView;
};

}  // namespace tenon
