// Random graphs of the operators that snippets consist of, reproducible by seed.
#pragma once
#include <memory>
#include <random>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>

namespace tenon::snippet::test {

// Elementwise operators, reductions and views of mixed types on one space of up to four dims. Only operators whose
// forms in the dialect give the same bits as their evaluators.
class RandomTypedDag {
 public:
  explicit RandomTypedDag(uint32_t seed)
      : random_(seed), graph_(std::make_unique<Graph>("random")), b_(graph_->body()) {
    const auto rank = testing::pick(random_, 1, 4);
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t extent = testing::pick(random_, 0, 9);
      dims_.push_back(extent == 9 ? Dim(Expr::symbol(str("N", d))) : extent == 8 ? Dim(int64_t{1}) : Dim(extent + 1));
    }
    for (int64_t d = 0; d < rank; ++d) {
      if (testing::pick(random_, 0, 1)) axes_.push_back(d);
    }
    for (int64_t i = testing::pick(random_, 1, 6); i > 0; --i) values_.push_back(input());
  }

  std::unique_ptr<Graph> build(int64_t operators) {
    for (int64_t attempts = 0; attempts < operators; ++attempts) add();
    size_t outputs = 0;
    for (Value* value : values_) {
      if (!value->used() || testing::pick(random_, 0, 5) == 0) graph_->body().add_output(value, str("out", outputs++));
    }
    return std::move(graph_);
  }

 private:
  Value* input() {
    static const ElementType kTypes[] = {kF32, kF32, kF32, kF16, kBF16, kF64, kI8, kU8, kI32, kI64, kU32, kBool};
    std::vector<Dim> dims;
    for (const Dim& dim : dims_) dims.push_back(testing::pick(random_, 0, 2) == 0 ? Dim(int64_t{1}) : dim);
    dims.erase(dims.begin(), dims.begin() + testing::pick(random_, 0, static_cast<int64_t>(dims.size())));
    const ElementType element = kTypes[testing::pick(random_, 0, 11)];
    return graph_->body().add_input(str("in", graph_->body().input_count()), Type(element, Shape(dims)));
  }

  Value* any() {
    return values_[static_cast<size_t>(testing::pick(random_, 0, static_cast<int64_t>(values_.size()) - 1))];
  }
  Value* of(ElementType element) {
    for (int i = 0; i < 12; ++i) {
      if (Value* value = any(); value->type().element() == element) return value;
    }
    return b_.constant_scalar(element, static_cast<double>(testing::pick(random_, 0, element.is_bool() ? 1 : 5)));
  }

  void keep(Result<Value*> made) {
    if (made.ok()) values_.push_back(*made);
  }

  void add() {
    Value* x = any();
    const ElementType element = x->type().element();
    switch (testing::pick(random_, 0, 9)) {
      case 0:
      case 1:
      case 2: {
        static const char* kPairs[] = {"Add", "Sub", "Mul", "Max", "Min", "Div", "And", "BitwiseXor", "Mod"};
        return keep(b_.op(kPairs[testing::pick(random_, 0, 8)], {x, of(element)}));
      }
      case 3: {
        static const char* kCompares[] = {"Less", "Equal", "GreaterOrEqual"};
        return keep(b_.op(kCompares[testing::pick(random_, 0, 2)], {x, of(element)}));
      }
      case 4: return keep(b_.op("Where", {of(kBool), x, of(element)}));
      case 5: {
        static const char* kUnary[] = {"Neg", "Abs", "Relu", "Floor", "Sign", "Not", "BitwiseNot", "Sqrt", "IsNaN"};
        return keep(b_.op(kUnary[testing::pick(random_, 0, 8)], {x}));
      }
      case 6: {
        static const ElementType kTo[] = {kF32, kI32, kI8, kBool, kF64, kU8, kF16, kI64};
        return keep(b_.op("Cast", {x}, {{"to", Type(kTo[testing::pick(random_, 0, 7)], Shape())}}));
      }
      case 7: {
        static const char* kReductions[] = {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"};
        if (axes_.empty() || x->type().shape().rank() != static_cast<int64_t>(dims_.size())) return;
        if (element == kF16 || element == kBF16) return;  // sums of f32 are rounded to f32 first
        const bool exact = !element.is_float();
        return keep(b_.op(kReductions[testing::pick(random_, 0, exact ? 3 : 1)], {x, b_.constant_ints(axes_)},
                          {{"keepdims", testing::pick(random_, 0, 3) ? 1 : 0}}));
      }
      case 8: {
        if (x->type().shape().rank() == 0) return;
        return keep(b_.op("Unsqueeze", {x, b_.constant_ints({0})}));
      }
      default: return keep(b_.op("Clip", {x, b_.constant_scalar(element, 2), nullptr}));
    }
  }

  std::mt19937 random_;
  std::unique_ptr<Graph> graph_;
  Builder b_;
  std::vector<Dim> dims_;
  std::vector<int64_t> axes_;
  std::vector<Value*> values_;
};

}  // namespace tenon::snippet::test
