#include <tenon/snippet/tokenize/expand.hpp>

#include <algorithm>
#include <numeric>

#include <tenon/ops/normalization.hpp>
#include <tenon/ops/reduce.hpp>
#include <tenon/ops/softmax.hpp>

namespace tenon::snippet {
namespace {

// The extent of the axis along which an operator works.
Result<int64_t> extent_of(const Op& op, int64_t axis) {
  const Dim& dim = op.operand(0)->type().shape()[static_cast<size_t>(axis)];
  if (dim.is_static() && dim.value() >= 1) return dim.value();
  return error(Code::unsupported, op.describe(), " looks along an axis of extent ", dim);
}

// An operator that finds the first or last extreme along its axis.
class Positions {
 public:
  Positions(Builder& builder, const Op& op) : b_(builder), op_(op), x_(*op.operand(0)) {}

  Result<std::vector<Value*>> run() {
    TENON_OK(find_axis());
    const bool least = isa<ArgMin>(op_), hard = isa<Hardmax>(op_);
    const bool last = op_.attr<int64_t>("select_last_index", 0) != 0;
    TENON_TRY(position, first_or_last(least ? "ReduceMin" : "ReduceMax", last, hard ? 1 : keeps()));
    if (!hard) return std::vector<Value*>{position};
    TENON_TRY(here, b_.op("Equal", {positions(), position}));
    TENON_TRY(y, b_.op("Cast", {here}, {{"to", Type(x_.type().element(), Shape())}}));
    return std::vector<Value*>{y};
  }

 private:
  int64_t keeps() const { return op_.attr<int64_t>("keepdims", 1); }

  Result<void> find_axis() {
    const Shape& shape = x_.type().shape();
    if (!shape.ranked()) return error(Code::unsupported, op_.describe(), " takes a tensor of unknown rank");
    TENON_TRY(axis, normalize_axis(op_.attr<int64_t>("axis", isa<Hardmax>(op_) ? -1 : 0), shape.rank()));
    axis_ = axis;
    TENON_TRY(extent, extent_of(op_, axis));
    extent_ = extent;
    return {};
  }

  // 0, 1, 2 ... along the axis; extent 1 along the inner dims.
  Value* positions() {
    if (positions_) return positions_;
    Dims dims(static_cast<size_t>(x_.type().shape().rank() - axis_), 1);
    dims[0] = extent_;
    std::vector<int64_t> numbers(static_cast<size_t>(extent_));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return positions_ = b_.constant(Tensor::of<int64_t>(dims, numbers));
  }

  Result<Value*> fold(Name reduction, Value* x, int64_t keepdims) {
    return b_.op(reduction, {x, b_.constant_ints({axis_})}, {{"keepdims", keepdims}});
  }

  Result<Value*> first_or_last(Name reduction, bool last, int64_t keepdims) {
    Value* x = op_.operand(0);
    TENON_TRY(extreme, fold(reduction, x, 1));
    TENON_TRY(found, b_.op("Equal", {x, extreme}));
    if (x_.type().element().is_float()) {  // NaN is the extreme where there is one
      TENON_TRY(nan, b_.op("IsNaN", {x}));
      TENON_TRY(either, b_.op("Or", {found, nan}));
      found = either;
    }
    TENON_TRY(at, b_.op("Where", {found, positions(), b_.constant_int(last ? -1 : extent_)}));
    return fold(last ? "ReduceMax" : "ReduceMin", at, keepdims);
  }

  Builder& b_;
  const Op& op_;
  const Value& x_;
  int64_t axis_ = 0, extent_ = 0;
  Value* positions_ = nullptr;
};

// Local response normalisation: channels whose windows are inside x are sums of squares of slices; for the first and
// last few channels, whose windows are not, channels of zeros are added. f16 and bf16 are computed in f32 and rounded
// once.
class ResponseNormalization {
 public:
  ResponseNormalization(Builder& builder, const Op& op)
      : b_(builder),
        op_(op),
        x_(op.operand(0)),
        work_(x_->type().element() == kF64 ? kF64 : kF32),
        size_(op.attr<int64_t>("size")) {}

  Result<std::vector<Value*>> run() {
    if (!x_->type().shape().ranked())
      return error(Code::unsupported, op_.describe(), " takes a tensor of unknown rank");
    TENON_TRY(channels, extent_of(op_, 1));
    channels_ = channels;
    below_ = std::min((size_ - 1) / 2, channels - 1);
    above_ = std::min(size_ - 1 - (size_ - 1) / 2, channels - 1);
    if (below_ + above_ >= kMostTerms)
      return error(Code::unsupported, op_.describe(), " sums ", below_ + above_ + 1, " channels; up to ", kMostTerms,
                   " become slices");
    std::vector<int64_t> borders{0, channels};
    if (below_ + above_ < channels) borders = {0, below_, channels - above_, channels};
    std::vector<Value*> parts;
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      if (borders[i] == borders[i + 1]) continue;
      TENON_TRY(part, normalised(borders[i], borders[i + 1]));
      parts.push_back(part);
    }
    if (parts.size() == 1) return parts;
    TENON_TRY(y, b_.op("Concat", parts, {{"axis", 1}}));
    return std::vector<Value*>{y};
  }

 private:
  static constexpr int64_t kMostTerms = 64;

  Result<Value*> cast(Value* value, ElementType to) {
    if (value->type().element() == to) return value;
    return b_.op("Cast", {value}, {{"to", Type(to, Shape())}});
  }
  Result<Value*> channels_of(Value* value, int64_t first, int64_t end) {
    return b_.op("Slice", {value, b_.constant_ints({first}), b_.constant_ints({end}), b_.constant_ints({1})});
  }
  // Slices come first, so that no derived value is materialised.
  Result<Value*> work_on(int64_t first, int64_t end) {
    TENON_TRY(some, first == 0 && end == channels_ ? x_ : channels_of(x_, first, end));
    return cast(some, work_);
  }
  Result<Value*> squares_of(int64_t first, int64_t end) {
    TENON_TRY(some, work_on(first, end));
    return b_.op("Mul", {some, some});
  }

  // For the channels from `first` to `end`.
  Result<Value*> normalised(int64_t first, int64_t end) {
    TENON_TRY(x, work_on(first, end));
    TENON_TRY(sum, window_sum(first, end));
    const auto scalar = [&](double value) { return b_.constant_scalar(work_, value); };
    const double alpha = op_.attr<float>("alpha", 0.0001f);
    TENON_TRY(mean, b_.op("Mul", {sum, scalar(alpha / static_cast<double>(size_))}));
    TENON_TRY(base, b_.op("Add", {mean, scalar(op_.attr<float>("bias", 1.0f))}));
    TENON_TRY(divisor, b_.op("Pow", {base, scalar(op_.attr<float>("beta", 0.75f))}));
    TENON_TRY(quotient, b_.op("Div", {x, divisor}));
    return cast(quotient, x_->type().element());
  }

  // The sum of x^2 over the existing channels of each window.
  Result<Value*> window_sum(int64_t first, int64_t end) {
    Value* padded = nullptr;  // the squares of all channels of the windows, where some do not exist
    if (first < below_ || end + above_ > channels_) {
      TENON_TRY(made, padded_squares(first - below_, end + above_));
      padded = made;
    }
    Value* sum = nullptr;
    for (int64_t term = 0; term <= below_ + above_; ++term) {
      TENON_TRY(squares, padded ? channels_of(padded, term, term + end - first)
                                : squares_of(first - below_ + term, end - below_ + term));
      if (!sum) {
        sum = squares;
        continue;
      }
      TENON_TRY(longer, b_.op("Add", {sum, squares}));
      sum = longer;
    }
    return sum;
  }
  // 0 for channels that do not exist.
  Result<Value*> padded_squares(int64_t first, int64_t end) {
    TENON_TRY(squares, squares_of(std::max<int64_t>(first, 0), std::min(end, channels_)));
    std::vector<Value*> parts;
    if (first < 0) {
      TENON_TRY(made, zeros(-first));
      parts.push_back(made);
    }
    parts.push_back(squares);
    if (end > channels_) {
      TENON_TRY(made, zeros(end - channels_));
      parts.push_back(made);
    }
    return b_.op("Concat", parts, {{"axis", 1}});
  }
  // 0 in channels of x: x < x is never true. This also serves unknown extents.
  Result<Value*> zeros(int64_t channels) {
    TENON_TRY(some, channels_of(x_, 0, channels));
    TENON_TRY(nowhere, b_.op("Less", {some, some}));
    return cast(nowhere, work_);
  }

  Builder& b_;
  const Op& op_;
  Value* x_;
  const ElementType work_;
  const int64_t size_;
  int64_t channels_ = 0, below_ = 0, above_ = 0;  // channels before and after one that its window covers
};

}  // namespace

bool can_expand(const Op& op) { return isa<ArgMax>(op) || isa<ArgMin>(op) || isa<Hardmax>(op) || isa<LRN>(op); }

Result<std::vector<Value*>> expand(Builder& builder, const Op& op) {
  return isa<LRN>(op) ? ResponseNormalization(builder, op).run() : Positions(builder, op).run();
}

Result<std::unique_ptr<Graph>> expanded_alone(const Op& op) {
  auto graph = std::make_unique<Graph>(op.name().str());
  ValueMap map;
  for (const Value* operand : op.operands())
    if (operand && !map.contains(operand)) map[operand] = graph->body().add_input(operand->name(), operand->type());
  Op& copy = clone_op(op, graph->body(), nullptr, map);
  Builder builder(graph->body(), &copy);
  TENON_TRY(results, expand(builder, copy));
  for (size_t i = 0; i < results.size(); ++i) graph->body().add_output(results[i], str("y", i));
  copy.erase();
  return graph;
}

Result<size_t> expand_all(Graph& graph, const std::function<bool(const Op&)>& wanted) {
  size_t made = 0;
  for (Op* op : graph.body().ops()) {
    if (!can_expand(*op) || !wanted(*op)) continue;
    Builder builder(graph.body(), op);
    TENON_TRY(results, expand(builder, *op), op->describe());
    results[0]->producer()->set_label(op->label());
    for (size_t i = 0; i < results.size(); ++i) {
      results[i]->set_name(op->result(i)->name());
      op->result(i)->replace_all_uses_with(results[i]);
    }
    op->erase();
    ++made;
  }
  return made;
}

}  // namespace tenon::snippet
