// Losses of classification: scores of shape [N, C, D1 ...], the target class at each position as integers [N, D1 ...],
// and optionally a weight per class [C]. Positions whose class is `ignore_index` are ignored.
//
// `reduction`: none gives the loss at each position, sum their sum, mean the sum divided by the sum of the positions'
// weights (NaN when that is 0). Sums are computed in f64. A class outside [0, C) is an error at run time.
#pragma once
#include <optional>
#include <string>

#include <tenon/ir/op_view.hpp>

namespace tenon {

template <class Derived>
struct LossView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* scores() const { return this->operand(0); }
  Value* classes() const { return this->operand(1); }
  Value* weights() const { return this->operand(2); }
  std::string reduction() const { return this->template attr<std::string>("reduction", "mean"); }
};

// loss = -weight[class] * input[class]; input holds logarithms of probabilities.
struct NegativeLogLikelihoodLoss : LossView<NegativeLogLikelihoodLoss> {
  static constexpr std::string_view kName = "NegativeLogLikelihoodLoss";
  using LossView::LossView;
};
// The same for LogSoftmax(scores) along the classes, which is the second result if it is used.
struct SoftmaxCrossEntropyLoss : LossView<SoftmaxCrossEntropyLoss> {
  static constexpr std::string_view kName = "SoftmaxCrossEntropyLoss";
  using LossView::LossView;
};

}  // namespace tenon
