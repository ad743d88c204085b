// Losses of classification: scores of shape [N, C, D1 ...], the wanted class of each place as integers [N, D1 ...], and
// optionally a weight per class [C]. Places whose class is `ignore_index` count for nothing.
//
// `reduction`: none gives the loss of each place, sum their sum, mean the sum over the sum of the places' weights (NaN
// when that is 0). Sums are kept in f64. A class outside [0, C) is an error at run time.
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
// The same of LogSoftmax(scores) along the classes, which is the second result where it is wanted.
struct SoftmaxCrossEntropyLoss : LossView<SoftmaxCrossEntropyLoss> {
  static constexpr std::string_view kName = "SoftmaxCrossEntropyLoss";
  using LossView::LossView;
};

}  // namespace tenon
