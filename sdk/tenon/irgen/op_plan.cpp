#include <tenon/irgen/op_plan.hpp>

#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/crop.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/ops/shape.hpp>
#include <tenon/support/log.hpp>

namespace tenon::irgen {
namespace {

bool plan_crop(const Op& op, const TypeSource& types, OpPlan& plan) {
  auto begins = crop_begins(op, types);
  if (!begins) return false;
  plan.at = *std::move(begins);
  plan.form = OpForm::crop;
  return true;
}

bool plan_concat(const Op& op, const TypeSource& types, OpPlan& plan) {
  if (!isa<Concat>(op)) return false;
  const auto axis = normalize_axis(op.attr<int64_t>("axis"), types.type_of(*op.result()).shape().rank());
  if (!axis.ok()) return false;
  plan.axis = static_cast<size_t>(*axis);
  Expr start = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.operand(i)) return false;
    plan.starts.push_back(start);
    start += types.type_of(*op.operand(i)).shape()[plan.axis].expr();
  }
  plan.form = OpForm::concat;
  return true;
}

// Every dim of the operand equals that of the result, or is 1.
bool plan_expand(const Op& op, const TypeSource& types, OpPlan& plan) {
  if (!isa<Expand>(op)) return false;
  const Shape &from = types.type_of(*op.operand(0)).shape(), &to = types.type_of(*op.result()).shape();
  if (from.rank() > to.rank()) return false;
  const size_t added = static_cast<size_t>(to.rank() - from.rank());
  for (size_t d = 0; d < from.dims().size(); ++d) {
    const bool repeats = from[d].is_static() && from[d].value() == 1;
    if (!repeats && !from[d].same_extent(to[d + added])) return false;
  }
  plan.form = from == to ? OpForm::view : OpForm::expand;
  return true;
}

// A view where dims with more than one index keep their order: the same bytes.
OpForm form_of_transpose(const Op& op, const TypeSource& types) {
  const Shape& from = types.type_of(*op.operand(0)).shape();
  const auto perm = op.attr<Attribute::Integers>("perm");
  int64_t last = -1;
  for (size_t d = 0; d < from.dims().size(); ++d) {
    const int64_t axis = perm.empty() ? from.rank() - 1 - static_cast<int64_t>(d) : perm[d];
    const Dim& dim = from[static_cast<size_t>(axis)];
    if (dim.is_static() && dim.value() == 1) continue;
    if (axis < last) return OpForm::transpose;
    last = axis;
  }
  return OpForm::view;
}

bool plan_movement(const Op& op, const TypeSource& types, OpPlan& plan) {
  if (op.def()->has(Trait::view) && op.operand(0) && op.result_count() == 1) {
    plan.form = OpForm::view;
    return true;
  }
  if (isa<Transpose>(op)) {
    plan.form = form_of_transpose(op, types);
    return true;
  }
  return plan_crop(op, types, plan) || plan_concat(op, types, plan) || plan_expand(op, types, plan);
}

// A call is omitted when any of its results is empty, so either all results are empty or none.
bool some_are_empty(const Op& op, const GraphTypes& types) {
  const auto empty = [&](size_t r) {
    return std::ranges::any_of(types.type_of(*op.result(r)).shape().dims(),
                               [](const Dim& d) { return d.is_static() && d.value() == 0; });
  };
  for (size_t r = 1; r < op.result_count(); ++r)
    if (empty(r) != empty(0)) return true;
  return false;
}

OpPlan plan_before_runs(const Op& op, const GraphTypes& types, const KernelSource& kernels) {
  OpPlan plan;
  if (isa<Constant>(op)) {
    plan.form = OpForm::constant;
    return plan;
  }
  plan.why_not = types.why_not(op);
  if (!plan.why_not.empty()) return plan;
  if (plan_movement(op, types, plan)) return plan;
  if (op.result_count() == 0 || some_are_empty(op, types)) {
    plan.why_not = op.result_count() == 0 ? "it has no result" : "some of its results are empty, and others are not";
    return plan;
  }
  auto choice = kernels.kernel(request_for(op, types));
  if (choice.ok()) {
    plan.choice = *std::move(choice);
    plan.form = OpForm::call;
  } else {
    plan.why_not = str(kernels.name(), " has no kernel for it: ", choice.error().message());
    // A missing kernel is an expected answer; a failure to make one is an error.
    if (choice.error().code() != Code::unsupported)
      log(LogLevel::warning, op.describe(), " is left to the host: ", plan.why_not);
  }
  return plan;
}

OpPlan plan_op(const Op& op, const GraphTypes& types, const KernelSource& kernels) {
  OpPlan plan = plan_before_runs(op, types, kernels);
  if (plan.form != OpForm::host) return plan;
  if (const auto operand = kernels.late_operand(op)) {
    plan.form = OpForm::late;
    plan.late_operand = *operand;
  }
  return plan;
}

}  // namespace

bool is_movement(const Op& op) {
  const auto held = [](const Value* value) { return !value || (fits_buffer(value->type()) && !value->layout()); };
  for (size_t i = 0; i < op.operand_count(); ++i)
    if (!held(op.operand(i))) return false;
  for (size_t i = 0; i < op.result_count(); ++i)
    if (!held(op.result(i))) return false;
  OpPlan plan;
  return op.def() && op.result_count() != 0 && plan_movement(op, TypeSource(), plan);
}

OpPlans plan_ops(const Graph& graph, const GraphTypes& types, const KernelSource& kernels) {
  OpPlans plans;
  plans.reserve(graph.body().op_count());
  for (const Op& op : graph.body()) plans.emplace(&op, plan_op(op, types, kernels));
  return plans;
}

}  // namespace tenon::irgen
