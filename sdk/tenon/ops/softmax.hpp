// Normalised exponentials along one axis; negative axes count from the back. Results have the operand's type.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

template <class Derived>
struct SoftmaxView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* input() const { return this->operand(0); }
  int64_t axis() const { return this->template attr<int64_t>("axis", -1); }
};

// y = e^(x - max x) / sum of e^(x - max x) along `axis`
struct Softmax : SoftmaxView<Softmax> {
  static constexpr std::string_view kName = "Softmax";
  using SoftmaxView::SoftmaxView;
};
// y = x - max x - ln(sum of e^(x - max x)) along `axis`
struct LogSoftmax : SoftmaxView<LogSoftmax> {
  static constexpr std::string_view kName = "LogSoftmax";
  using SoftmaxView::SoftmaxView;
};
// 1 at the first maximum along `axis`, 0 elsewhere
struct Hardmax : SoftmaxView<Hardmax> {
  static constexpr std::string_view kName = "Hardmax";
  using SoftmaxView::SoftmaxView;
};

}  // namespace tenon
