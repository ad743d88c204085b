// Runs the steps of a plan.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include <tenon/ir/op_def.hpp>
#include <tenon/reference/interpreter_internal.hpp>
#include <tenon/support/hash.hpp>

namespace tenon::interpreter {

Result<std::unique_ptr<RunContext>> RunContext::make(const Plan& plan) {
  auto made = std::make_unique<RunContext>();
  TENON_TRY(arena, allocate_aligned(plan.arena.bytes), "allocating the arena of a run");
  made->arena = std::move(arena);
  made->slots.resize(plan.slots);
  made->laid_out = plan.laid_out;
  for (const auto& [slot, tensor] : plan.constants) made->slots[slot] = tensor;
  for (const Planned& planned : plan.planned) {
    const Dims dims = *planned.type.shape.static_dims();
    TENON_TRY(count, element_count(dims));
    TENON_TRY(bytes, storage_bytes(planned.type.element, count));
    TENON_TRY(tensor, Tensor::borrow(planned.type.element, dims, made->arena.get() + planned.offset, bytes));
    made->slots[planned.slot] = std::move(tensor);
  }
  static const Datum absent;
  for (const size_t slot : plan.operand_slots) {
    made->operands.push_back(slot == kNowhere ? &absent : &made->slots[slot]);
  }
  return made;
}
// ---- What a shape rule sees ----

ActualContext::ActualContext(const Op& op, std::span<const Datum* const> operands)
    : InferContext(op), operands_(operands) {
  types_.reserve(operands.size());
  for (const Datum* operand : operands) types_.push_back(operand->type());
}

const Type& ActualContext::type(size_t i) const {
  static const Type unknown;
  return i < types_.size() ? types_[i] : unknown;
}

const Tensor* ActualContext::constant(size_t i) const {
  return i < operands_.size() && operands_[i]->is_tensor() ? &operands_[i]->tensor() : nullptr;
}

std::optional<std::vector<Dim>> ActualContext::dims_value(size_t i) const {
  const Tensor* tensor = constant(i);
  return tensor ? dims_of_tensor(*tensor) : std::nullopt;
}

Type ActualContext::declared(size_t i) const {
  const Type& type = op().result(i)->type();
  return type.is_tensor() ? Type(type.element(), Shape()) : type;
}

// ---- Slots ----

Result<std::vector<Datum>> Runner::run_region(const Region& region, std::span<const Step> steps,
                                              std::vector<Datum> inputs) {
  const RegionPlan& mine = plan_.regions.at(&region);
  if (inputs.size() != mine.inputs.size()) {
    return error(Code::invalid_argument, "a region with ", mine.inputs.size(), " inputs is given ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!agrees(inputs[i], region.input(i)->type())) {
      return error(Code::invalid_argument, "input '", region.input(i)->name(), "' of a region is declared ",
                   region.input(i)->type(), " and given ", inputs[i].type());
    }
    TENON_OK(store(mine.inputs[i], std::move(inputs[i])));
  }
  TENON_OK(run(steps));
  std::vector<Datum> outputs;
  for (const size_t slot : mine.outputs) {
    if (slot == kNowhere) {
      outputs.emplace_back();
      continue;
    }
    TENON_TRY(output, logical(slot));
    TENON_TRY(owned, own(output));
    outputs.push_back(std::move(owned));
  }
  return outputs;
}

Result<std::vector<Datum>> Runner::outputs(const RegionPlan& body) const {
  std::vector<Datum> outputs;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (body.outputs[i] == kNowhere) {
      outputs.emplace_back();
      continue;
    }
    TENON_TRY(made, logical(body.outputs[i]));
    outputs.push_back(std::move(made));
    if (lies_in_layout(body.outputs[i]) || !plan_.copy_output[i] || !outputs.back().is_tensor()) continue;
    TENON_TRY(copy, outputs.back().tensor().clone(), "output ", i);
    outputs.back() = Datum(std::move(copy));
  }
  return outputs;
}

bool Runner::is_lent(const Datum& datum) const {
  if (datum.is_tensor()) return memory_.holds(datum.tensor(), plan_);
  return datum.is_sequence() && std::ranges::any_of(datum.elements(), [&](const Datum& one) { return is_lent(one); });
}

Result<Datum> Runner::own(const Datum& datum) const {
  if (!is_lent(datum)) return datum;
  if (datum.is_tensor()) {
    TENON_TRY(copy, datum.tensor().clone());
    return Datum(std::move(copy));
  }
  std::vector<Datum> elements;
  for (const Datum& element : datum.elements()) {
    TENON_TRY(owned, own(element));
    elements.push_back(std::move(owned));
  }
  return Datum::sequence(std::move(elements), datum.element_type());
}

Result<Datum> Runner::logical(size_t slot) const {
  const Datum& stored = memory_.slots[slot];
  if (!lies_in_layout(slot) || stored.absent()) return stored;
  TENON_TRY(unpacked, memory_.laid_out[slot]->unpack(bytes_of(stored.tensor()), parallel_));
  return Datum(std::move(unpacked));
}

Result<const LaidOut*> Runner::lay_out(size_t slot, ElementType element, const Dims& dims) {
  LaidOutPointer& mine = memory_.laid_out[slot];
  if (mine && mine->element() == element && mine->dims() == dims) return mine.get();
  const Value& value = *plan_.laid_values[slot];
  TENON_TRY(made, LaidOut::make(*value.layout(), element, dims), "value '", value.name(), "'");
  mine = std::move(made);
  return mine.get();
}

Result<Tensor*> Runner::physical(size_t slot, const LaidOut& laid_out) {
  Datum& stored = memory_.slots[slot];
  if (!plan_.in_arena[slot]) {
    TENON_TRY(made, allocate_physical(laid_out), "value '", plan_.laid_values[slot]->name(), "'");
    stored = std::move(made);
  }
  return &stored.tensor();
}

Result<void> Runner::store(size_t slot, Datum value) {
  if (!lies_in_layout(slot) || value.absent()) {
    memory_.slots[slot] = std::move(value);
    return {};
  }
  const Value& stored = *plan_.laid_values[slot];
  if (!value.is_tensor()) {
    return error(Code::invalid_argument, "value '", stored.name(), "' lies in ", quote(stored.layout()->text),
                 " and turned out ", value.type(), "; only tensors of numbers have a layout");
  }
  TENON_TRY(laid_out, lay_out(slot, value.tensor().element(), value.tensor().dims()));
  TENON_TRY(bytes, physical(slot, *laid_out));
  TENON_OK(laid_out->pack(value.tensor(), bytes_of(*bytes), plan_.poison, parallel_), "value '", stored.name(), "'");
  return {};
}

Result<void> Runner::place(const Op& op, size_t i, size_t slot, const Datum& value) {
  if (!plan_.in_arena[slot]) {
    TENON_TRY(owned, own(value));
    memory_.slots[slot] = std::move(owned);
    return {};
  }
  Tensor& planned = memory_.slots[slot].tensor();
  const bool fits = value.is_tensor() && value.tensor().element() == planned.element() &&
                    value.tensor().dims() == planned.dims();
  TENON_CHECK(fits, "result ", i, " of ", op.describe(), " is planned as ", planned, " and set to ", value.type());
  if (planned.data() != value.tensor().data()) {
    std::memmove(planned.mutable_data(), value.tensor().data(), planned.bytes());
  }
  return {};
}

// ---- Steps ----

class StepContext final : public EvalContext {
 public:
  StepContext(Runner& runner, const Step& step) : runner_(runner), step_(step) {
    op_ = step.op;
    operands_ = {runner.memory_.operands.data() + step.operands, step.op->operand_count()};
  }

  // Runs the shape rule on the actual operands, unless the plan has done so.
  Result<void> check() {
    if (step_.checked) return {};
    TENON_TRY(types, infer_types(ActualContext(*op_, operands_)));
    types_ = std::move(types);
    return {};
  }

  Result<Dims> result_dims(size_t i) const override {
    const Type& type = result_type(i);
    if (auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt) return *std::move(dims);
    std::string given;
    for (const Datum* operand : operands_) given += str(given.empty() ? "" : ", ", operand->type());
    return error(Code::invalid_argument, "the operands (", given, ") of ", op_->describe(),
                 " do not tell the shape of result ", i, ", the shape rule gives ", type,
                 ": one has a rank that spells no shape, or holds numbers too large");
  }

  Result<Tensor*> output(size_t i) override {
    if (runner_.plan_.in_arena[step_.results + i]) return &slot(i).tensor();
    TENON_TRY(dims, result_dims(i));
    const ElementType element = result_type(i).element();
    if (element.valid()) return allocate(i, element, std::move(dims));
    return error(Code::internal, "the shape rule of ", op_->describe(), " gives result ", i, " no element type");
  }

  Result<Tensor*> output(size_t i, ElementType element, Dims dims) override {
    if (!runner_.plan_.in_arena[step_.results + i]) return allocate(i, element, std::move(dims));
    Tensor& planned = slot(i).tensor();
    if (planned.element() == element && planned.dims() == dims) return &planned;
    return error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned, " and made as ",
                 element, dims);
  }

  void set_output(size_t i, Datum value) override {
    auto placed = runner_.place(*op_, i, step_.results + i, value);
    if (!placed.ok()) delivered_ = std::move(placed);
  }
  // The error of set_output(), if any.
  Result<void> delivered() { return std::move(delivered_); }

  Result<std::vector<Datum>> run_region(size_t i, std::vector<Datum> inputs) override {
    return runner_.run_region(op_->region(i), step_.regions[i], std::move(inputs));
  }

  ParallelFor& parallel() override { return runner_.parallel_; }
  uint64_t random_seed() override { return fresh_seed(); }

  // Checks the values of control flow and sequences, whose types are known only at run time.
  Result<void> check_results() {
    for (size_t i = 0; i < op_->result_count(); ++i) {
      if (agrees(slot(i), op_->result(i)->type())) continue;
      return error(Code::invalid_argument, "result ", i, " of ", op_->describe(), " is declared ",
                   op_->result(i)->type(), " and turned out ", slot(i).type());
    }
    return {};
  }

 private:
  Datum& slot(size_t i) { return runner_.memory_.slots[step_.results + i]; }
  const Type& result_type(size_t i) const {
    static const Type unknown;
    const std::vector<Type>& types = step_.checked ? step_.types : types_;
    return i < types.size() ? types[i] : unknown;
  }

  Result<Tensor*> allocate(size_t i, ElementType element, Dims dims) {
    TENON_TRY(made, Tensor::allocate(element, std::move(dims)));
    slot(i) = std::move(made);
    return &slot(i).tensor();
  }

  Runner& runner_;
  const Step& step_;
  std::vector<Type> types_;
  Result<void> delivered_;
};

Result<void> Runner::observe(const Step& step) {
  std::vector<Datum> results;
  for (size_t i = 0; i < step.op->result_count(); ++i) {
    TENON_TRY(result, logical(step.results + i));
    results.push_back(std::move(result));
  }
  observer_->after(*step.op, results);
  return {};
}

Result<void> Runner::run(std::span<const Step> steps) {
  for (const Step& step : steps) {
    if (observer_) observer_->before(*step.op);
    if (step.laid_out) {
      TENON_OK(LaidStep(*this, step).run(), "operator ", step.op->describe());
    } else if (step.evaluate) {
      StepContext context(*this, step);
      TENON_OK(context.check(), "operator ", step.op->describe());
      TENON_OK(step.evaluate(context), "operator ", step.op->describe());
      TENON_OK(context.delivered(), "operator ", step.op->describe());
      if (!step.checked) TENON_OK(context.check_results());
    }
    if (observer_ && step.op->result_count() > 0) TENON_OK(observe(step));
    for (const size_t slot : step.dead) memory_.slots[slot] = Datum();
  }
  return {};
}

}  // namespace tenon::interpreter

namespace tenon {

uint64_t fresh_seed() {
  static std::atomic<uint64_t> counter{[] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }()};
  return hash_mix(0, ++counter);
}

}  // namespace tenon
