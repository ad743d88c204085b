// Reductions over given axes, pools of whole channels, and softmaxes.
#include <limits>
#include <numeric>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/reduce.hpp>
#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- Spaces ----

Result<Space> reduce_space(const Op& op) {
  const Shape& shape = op.operand(0)->type().shape();
  if (!shape.ranked()) return error(Code::unsupported, op.describe(), " folds a tensor of unknown rank");
  std::vector<int64_t> axes;
  if (op.operand(1)) {
    const auto known = constant_ints_of(op.operand(1));
    if (!known) return error(Code::unsupported, op.describe(), " folds axes that are not constant");
    axes = *known;
  }
  TENON_TRY(folded, folded_axes(op, shape.rank(), axes));
  std::vector<size_t> dims;
  for (size_t d = 0; d < folded.size(); ++d) {
    if (folded[d]) dims.push_back(d);
  }
  TENON_TRY(space, folding_space(op, dims));
  const bool keeps = op.attr<int64_t>("keepdims", 1) != 0;
  ValueAxes left;
  for (size_t d = 0; d < folded.size(); ++d) {
    if (!folded[d]) left.push_back((*space.find(*op.operand(0)))[d]);
    if (folded[d] && keeps) left.emplace_back();
  }
  TENON_OK(space.set(*op.result(0), std::move(left)));
  return space;
}

// Everything but batch and channels; all dims are kept.
Result<Space> global_pool_space(const Op& op) {
  std::vector<size_t> dims;
  for (size_t d = 2; d < op.operand(0)->type().shape().dims().size(); ++d) dims.push_back(d);
  TENON_TRY(space, folding_space(op, dims));
  ValueAxes left = *space.find(*op.operand(0));
  for (const size_t d : dims) left[d].clear();
  TENON_OK(space.set(*op.result(0), std::move(left)));
  return space;
}

Result<Space> softmax_space(const Op& op) {
  const Shape& shape = op.operand(0)->type().shape();
  TENON_TRY(axis, normalize_axis(op.attr<int64_t>("axis", -1), shape.ranked() ? shape.rank() : 0));
  TENON_TRY(space, folding_space(op, {static_cast<size_t>(axis)}));
  TENON_OK(space.set(*op.result(0), *space.find(*op.operand(0))));
  return space;
}

// ---- Reductions ----

Result<ValueId> reduce_sum(Rebuild& r) { return r.sum(r.in(0)); }
Result<ValueId> reduce_prod(Rebuild& r) { return r.reduce("ReduceProd", r.in(0), 1); }
Result<ValueId> reduce_sum_square(Rebuild& r) { return r.sum(r.node("Mul", {r.in(0), r.in(0)})); }
Result<ValueId> reduce_l1(Rebuild& r) {
  return r.sum(r.element(0).is_unsigned_int() ? r.in(0) : r.node("Abs", {r.in(0)}));
}

// The result of a fold over nothing: the end of the element type's range.
ValueId extreme(Rebuild& r, Name name, ValueId value, ElementType element, bool greatest) {
  if (element.is_float()) return r.reduce(name, value, greatest ? -kInfinity : kInfinity);
  // The greatest numbers of 64 bits are not doubles; lane_bits saturates.
  return r.reduce(name, value, greatest ? least_of(element) : greatest_of(element));
}

Result<ValueId> reduce_extreme(Rebuild& r, Name name, bool greatest) {
  const ElementType element = r.element(0);
  if (!element.is_bool()) return extreme(r, name, r.in(0), element, greatest);
  const ValueId number = r.reduce(name, r.convert(r.in(0), kI32), greatest ? 0 : 1);
  return r.cast(number, kI32, kBool);
}
Result<ValueId> reduce_max(Rebuild& r) { return reduce_extreme(r, "ReduceMax", true); }
Result<ValueId> reduce_min(Rebuild& r) { return reduce_extreme(r, "ReduceMin", false); }

// Integers are summed in 64 bits; over nothing their mean is 0, like any division by 0.
Result<ValueId> reduce_mean(Rebuild& r) {
  const ElementType element = r.element(0);
  if (element.is_float()) return r.mean(r.in(0));
  const ElementType wide = element.is_signed_int() ? kI64 : kU64;
  return r.cast(r.mean(r.convert(r.in(0), wide)), wide, element);
}

// Functions of sums of integers are computed in f64 and cast back.
Result<ValueId> in_floats(Rebuild& r, ValueId (*function)(Rebuild&, ValueId)) {
  const ElementType element = r.element(0);
  if (element.is_float()) return function(r, r.in(0));
  return r.cast(function(r, r.cast(r.in(0), element, kF64)), kF64, element);
}

Result<ValueId> reduce_l2(Rebuild& r) {
  return in_floats(r, [](Rebuild& r, ValueId x) { return r.node("Sqrt", {r.sum(r.node("Mul", {x, x}))}); });
}
Result<ValueId> reduce_log_sum(Rebuild& r) {
  return in_floats(r, [](Rebuild& r, ValueId x) { return r.node("Log", {r.sum(x)}); });
}

// greatest + ln(sum of e^(x - greatest)); an infinite maximum is not subtracted, since infinity minus itself is NaN.
ValueId log_sum_exp(Rebuild& r, ValueId x) {
  const ValueId greatest = r.reduce("ReduceMax", x, -kInfinity);
  const ValueId infinite = r.compare("Equal", r.node("Abs", {greatest}), r.scalar_like(x, kInfinity));
  const ValueId offset = r.node("Where", {infinite, r.scalar_like(x, 0), greatest});
  const ValueId sum = r.sum(r.node("Exp", {r.node("Sub", {x, offset})}));
  return r.node("Add", {offset, r.node("Log", {sum})});
}
Result<ValueId> reduce_log_sum_exp(Rebuild& r) { return in_floats(r, log_sum_exp); }

// ---- Softmaxes ----

ValueId less_greatest(Rebuild& r, ValueId x) { return r.node("Sub", {x, r.reduce("ReduceMax", x, -kInfinity)}); }

Result<ValueId> softmax(Rebuild& r) {
  const ValueId power = r.node("Exp", {less_greatest(r, r.in(0))});
  // One division per row: the sum is at least 1, or NaN.
  const ValueId sum = r.sum(power);
  return r.node("Mul", {power, r.node("Div", {r.scalar_like(sum, 1), sum})});
}

Result<ValueId> log_softmax(Rebuild& r) {
  const ValueId x = less_greatest(r, r.in(0));
  return r.node("Sub", {x, r.node("Log", {r.sum(r.node("Exp", {x}))})});
}

// ---- Rows ----

// All axes: folding none needs no additional operator.
Tensor all_axes(const Op& op) {
  std::vector<int64_t> axes(op.operand(0)->type().shape().dims().size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes);
}

DecomposeRow reduction(std::string_view op, Result<ValueId> (*rebuild)(Rebuild&), bool exact = false) {
  return {
      .op = op, .space = reduce_space, .rebuild = rebuild, .exact = exact, .value_operand = 1, .usual_value = all_axes};
}

}  // namespace

DecomposeRows reduce_rows() {
  return {
      reduction("ReduceSum", reduce_sum),
      reduction("ReduceProd", reduce_prod),
      reduction("ReduceMax", reduce_max, /*exact=*/true),
      reduction("ReduceMin", reduce_min, /*exact=*/true),
      reduction("ReduceMean", reduce_mean),
      reduction("ReduceL1", reduce_l1),
      reduction("ReduceL2", reduce_l2),
      reduction("ReduceLogSum", reduce_log_sum),
      reduction("ReduceLogSumExp", reduce_log_sum_exp),
      reduction("ReduceSumSquare", reduce_sum_square),
      {.op = "GlobalMaxPool", .space = global_pool_space, .rebuild = reduce_max, .exact = true},
      {.op = "GlobalAveragePool", .space = global_pool_space, .rebuild = reduce_mean},
      {.op = "Softmax", .space = softmax_space, .rebuild = softmax},
      {.op = "LogSoftmax", .space = softmax_space, .rebuild = log_softmax},
  };
}

}  // namespace tenon::snippet
