#include <tenon/snippet/expand.hpp>

#include <numeric>

#include <tenon/ops/reduce.hpp>
#include <tenon/ops/softmax.hpp>

namespace tenon::snippet {
namespace {

// One operator that looks for the first or last extreme along its axis.
class Expansion {
 public:
  Expansion(Builder& builder, const Op& op) : b_(builder), op_(op), x_(*op.operand(0)) {}

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
    const Dim& dim = shape[static_cast<size_t>(axis)];
    if (!dim.is_static() || dim.value() < 1)
      return error(Code::unsupported, op_.describe(), " looks along an axis of extent ", dim);
    extent_ = dim.value();
    return {};
  }

  // 0, 1, 2 ... along the axis; extent 1 along those behind it.
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

}  // namespace

bool can_expand(const Op& op) { return isa<ArgMax>(op) || isa<ArgMin>(op) || isa<Hardmax>(op); }

Result<std::vector<Value*>> expand(Builder& builder, const Op& op) { return Expansion(builder, op).run(); }

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
