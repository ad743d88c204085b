// Steps whose operands or results have layouts.
#include <algorithm>

#include <tenon/ir/layout_kernel.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/reference/interpreter_internal.hpp>

namespace tenon::interpreter {

// ---- A context beside the slots ----

LaidContext::LaidContext(Runner& runner, const Step& step, std::vector<Datum> operands)
    : runner_(runner), step_(step), owned_(std::move(operands)), results_(step.op->result_count()) {
  op_ = step.op;
  for (const Datum& operand : owned_) pointers_.push_back(&operand);
  operands_ = pointers_;
}

Result<void> LaidContext::infer() {
  TENON_TRY(types, infer_types(ActualContext(*op_, operands_)));
  types_ = std::move(types);
  return {};
}

void LaidContext::set_results(std::vector<Datum> results) {
  results_ = std::move(results);
  preset_ = true;
}

Result<Dims> LaidContext::result_dims(size_t i) const {
  if (preset_) return results_[i].tensor().dims();
  const Type type = i < types_.size() ? types_[i] : Type();
  if (auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt) return *std::move(dims);
  return error(Code::invalid_argument, "the operands of ", op_->describe(), " do not tell the shape of result ", i,
               ", the shape rule gives ", type);
}

Result<Tensor*> LaidContext::output(size_t i) {
  if (preset_) return &results_[i].tensor();
  TENON_TRY(dims, result_dims(i));
  return output(i, types_[i].element(), std::move(dims));
}

Result<Tensor*> LaidContext::output(size_t i, ElementType element, Dims dims) {
  if (preset_) {
    Tensor& given = results_[i].tensor();
    if (given.element() == element && given.dims() == dims) return &given;
    return error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", given, " and made as ",
                 element, dims);
  }
  TENON_TRY(made, Tensor::allocate(element, std::move(dims)));
  results_[i] = std::move(made);
  return &results_[i].tensor();
}

void LaidContext::set_output(size_t i, Datum value) {
  if (!preset_) {
    results_[i] = std::move(value);
    return;
  }
  Tensor& given = results_[i].tensor();
  TENON_CHECK(value.is_tensor() && value.tensor().bytes() == given.bytes(), "result ", i, " of ", op_->describe(),
              " is planned as ", given, " and set to ", value.type());
  std::copy_n(value.tensor().data(), given.bytes(), given.mutable_data());
}

Result<std::vector<Datum>> LaidContext::run_region(size_t i, std::vector<Datum> inputs) {
  return runner_.run_region(op_->region(i), step_.regions[i], std::move(inputs));
}

uint64_t LaidContext::random_seed() { return fresh_seed(); }

// ---- A step ----

const LaidOut* LaidStep::operand_layout(size_t i) const {
  const size_t slot = operand_slot(i);
  if (!runner_.lies_in_layout(slot) || runner_.memory_.slots[slot].absent()) return nullptr;
  return runner_.memory_.laid_out[slot].get();
}

Type LaidStep::operand_type(size_t i) const {
  if (operand_slot(i) == kNowhere) return Type();
  if (const LaidOut* laid_out = operand_layout(i)) return Type(laid_out->element(), Shape(laid_out->dims()));
  return runner_.memory_.slots[operand_slot(i)].type();
}

Error LaidStep::in_result(size_t i, Error error) const {
  return std::move(error).with_frame(str("value '", op_.result(i)->name(), "'"));
}

Result<void> LaidStep::run() {
  if (isa<LayoutReorder>(op_)) return reorder();
  if (isa<LayoutScrub>(op_)) return scrub();
  if (op_.attr<std::string>(kLayoutKernelAttribute) == kPaddedKernel) {
    TENON_TRY(padded, run_padded());
    if (padded) return {};
  }
  TENON_TRY(flat, run_flat());
  if (flat) return {};
  return run_logical();
}

Result<const ReorderPlan*> LaidStep::reorder_plan(size_t from, size_t to) {
  const LaidOutPointer &source = runner_.memory_.laid_out[from], &target = runner_.memory_.laid_out[to];
  auto& reorders = runner_.memory_.reorders;
  const auto found = reorders.find(&op_);
  if (found != reorders.end() && found->second.from == source && found->second.to == target) return &found->second.plan;
  TENON_TRY(plan, plan_reorder(source->layout(), target->layout()));
  return &reorders.insert_or_assign(&op_, RunContext::Reorder{source, target, std::move(plan)}).first->second.plan;
}

Result<void> LaidStep::reorder() {
  const size_t from = operand_slot(0), to = result_slot(0);
  const LaidOut* source = operand_layout(0);
  // To or from row-major, packing and unpacking do the reorder.
  if (!source || !runner_.lies_in_layout(to)) return run_logical();
  TENON_TRY(target, runner_.lay_out(to, source->element(), source->dims()));
  TENON_TRY(plan, reorder_plan(from, to));
  const Tensor bytes = runner_.memory_.slots[from].tensor();
  TENON_TRY(made, runner_.physical(to, *target));
  if (plan->kind() == ReorderKind::no_op) {
    std::copy_n(bytes.data(), std::min(bytes.bytes(), made->bytes()), made->mutable_data());
    target->fill_padding(bytes_of(*made), target->layout().fill().value_or(0));
  } else {
    TENON_OK(plan->run(bytes_of(bytes), bytes_of(*made), runner_.parallel_));
  }
  target->settle_padding(bytes_of(*made), runner_.plan_.poison);
  return {};
}

Result<void> LaidStep::scrub() {
  const size_t from = operand_slot(0), to = result_slot(0);
  const LaidOut* source = operand_layout(0);
  if (!source || !runner_.lies_in_layout(to)) return run_logical();
  TENON_TRY(target, runner_.lay_out(to, source->element(), source->dims()));
  if (!(source->layout() == target->layout())) return run_logical();
  const Tensor bytes = runner_.memory_.slots[from].tensor();
  TENON_TRY(made, runner_.physical(to, *target));
  if (made->data() != bytes.data()) std::copy_n(bytes.data(), bytes.bytes(), made->mutable_data());
  target->fill_padding(bytes_of(*made), static_cast<uint64_t>(op_.attr<int64_t>("bits", 0)));
  auto checked = target->check_padding(bytes_of(*made), runner_.plan_.poison);
  if (!checked.ok()) return in_result(0, std::move(checked).error());
  return {};
}

// ---- In logical indices ----

Result<void> LaidStep::run_logical() {
  std::vector<Datum> operands;
  for (size_t i = 0; i < op_.operand_count(); ++i) {
    if (operand_slot(i) == kNowhere) {
      operands.emplace_back();
      continue;
    }
    TENON_TRY(operand, runner_.logical(operand_slot(i)));
    operands.push_back(std::move(operand));
  }
  LaidContext context(runner_, step_, std::move(operands));
  TENON_OK(context.infer());
  TENON_OK(step_.evaluate(context));
  for (size_t i = 0; i < op_.result_count(); ++i) {
    Datum& made = context.result(i);
    if (!agrees(made, op_.result(i)->type())) {
      return error(Code::invalid_argument, "result ", i, " is declared ", op_.result(i)->type(), " and turned out ",
                   made.type());
    }
    TENON_OK(store_logical(i, made));
  }
  return {};
}

Result<void> LaidStep::store_logical(size_t i, const Datum& made) {
  if (runner_.lies_in_layout(result_slot(i))) return runner_.store(result_slot(i), made);
  return runner_.place(op_, i, result_slot(i), made);
}

// ---- Over all slots ----

namespace {

// A context that does not give the rule the elements of operands in layouts.
class TypesContext final : public InferContext {
 public:
  TypesContext(const Op& op, std::vector<Type> types, std::vector<const Tensor*> values)
      : InferContext(op), types_(std::move(types)), values_(std::move(values)) {}
  const Type& type(size_t i) const override {
    static const Type unknown;
    return i < types_.size() ? types_[i] : unknown;
  }
  const Tensor* constant(size_t i) const override { return i < values_.size() ? values_[i] : nullptr; }
  std::optional<std::vector<Dim>> dims_value(size_t i) const override {
    return constant(i) ? dims_of_tensor(*constant(i)) : std::nullopt;
  }
  Type declared(size_t) const override { return Type(); }

 private:
  std::vector<Type> types_;
  std::vector<const Tensor*> values_;
};

Result<Tensor> flat_view(const LaidOut& laid_out, const Tensor& bytes) {
  const Dims slots = {laid_out.layout().physical_elements()};
  return Tensor::borrow(laid_out.element(), slots, const_cast<std::byte*>(bytes.data()), bytes.bytes());
}

bool is_elementwise(const Op& op) {
  return op.def() && op.def()->has(Trait::elementwise) && !op.def()->has(Trait::random) && op.region_count() == 0;
}

}  // namespace

Result<std::vector<Type>> LaidStep::result_types() const {
  if (step_.checked) return step_.types;
  std::vector<Type> types;
  std::vector<const Tensor*> values;
  for (size_t i = 0; i < op_.operand_count(); ++i) {
    types.push_back(operand_type(i));
    const bool known = types.back().is_tensor() && !operand_layout(i);
    values.push_back(known ? &runner_.memory_.slots[operand_slot(i)].tensor() : nullptr);
  }
  return infer_types(TypesContext(op_, std::move(types), std::move(values)));
}

Result<const LaidOut*> LaidStep::result_layout(size_t i, const Type& type) {
  const auto dims = type.is_tensor() && type.element().valid() ? type.shape().static_dims() : std::nullopt;
  if (!runner_.lies_in_layout(result_slot(i)) || !dims) return nullptr;
  return runner_.lay_out(result_slot(i), type.element(), *dims);
}

Result<bool> LaidStep::run_flat() {
  if (!is_elementwise(op_)) return false;
  const LaidOut* first = nullptr;
  std::vector<Datum> operands;
  for (size_t i = 0; i < op_.operand_count(); ++i) {
    const Datum stored = operand_slot(i) == kNowhere ? Datum() : runner_.memory_.slots[operand_slot(i)];
    if (const LaidOut* mine = operand_layout(i)) {
      if (!mine->is_flat() || (first && !first->same_slots(*mine))) return false;
      if (!first) first = mine;
      TENON_TRY(view, flat_view(*mine, stored.tensor()));
      operands.emplace_back(std::move(view));
    } else if (stored.absent()) {
      operands.push_back(stored);
    } else {
      if (!stored.is_tensor() || stored.tensor().size() != 1) return false;
      TENON_TRY(one, stored.tensor().reshaped(Dims(stored.tensor().rank() > 0 ? 1 : 0, 1)));
      operands.emplace_back(std::move(one));
    }
  }
  if (!first) return false;
  const auto types = result_types();
  if (!types.ok()) return false;
  std::vector<Datum> results;
  std::vector<const LaidOut*> layouts;
  for (size_t i = 0; i < op_.result_count(); ++i) {
    TENON_TRY(mine, result_layout(i, (*types)[i]));
    if (!mine || !mine->is_flat() || !first->same_slots(*mine)) return false;
    TENON_TRY(bytes, runner_.physical(result_slot(i), *mine));
    TENON_TRY(view, flat_view(*mine, *bytes));
    results.emplace_back(std::move(view));
    layouts.push_back(mine);
  }
  LaidContext context(runner_, step_, std::move(operands));
  context.set_results(std::move(results));
  // Values in padding may cause an error although no element does.
  if (!step_.evaluate(context).ok()) return false;
  for (size_t i = 0; i < op_.result_count(); ++i) {
    Tensor& made = runner_.memory_.slots[result_slot(i)].tensor();
    auto checked = layouts[i]->check_padding(bytes_of(made), runner_.plan_.poison);
    if (!checked.ok()) return in_result(i, std::move(checked).error());
  }
  return true;
}

}  // namespace tenon::interpreter
