#include <tenon/reference/interpreter.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/runtime/arena_plan.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

constexpr size_t kNowhere = SIZE_MAX;

// One operator to run. Values have slots, numbered over the whole graph: a region never runs inside itself.
struct Step {
  const Op* op = nullptr;
  EvaluatorFn evaluate = nullptr;
  size_t operands = 0;  // first of its operands in Plan::operand_slots
  size_t results = 0;   // slot of result 0; the others follow
  // When the plan was made, the operands' types and every value that the shape rule asks for were known, and it accepted
  // them.
  bool checked = false;
  std::vector<Type> types;              // of the results, when checked
  std::vector<size_t> dead;             // slots to drop afterwards
  std::vector<std::vector<Step>> regions;
};

struct RegionPlan {
  std::vector<size_t> inputs, outputs;  // slots
};

struct Planned {
  size_t slot;
  size_t offset;
  TensorType type;
};

// What holds for every run.
struct Plan {
  std::vector<Step> steps;
  std::unordered_map<const Region*, RegionPlan> regions;
  std::vector<size_t> operand_slots;  // kNowhere: absent
  size_t slots = 0;
  std::vector<std::pair<size_t, Tensor>> constants;
  std::vector<Planned> planned;
  std::vector<bool> in_arena;   // by slot
  std::vector<size_t> loose;    // slots that are neither in the arena nor constants
  ArenaPlan arena;
  std::vector<bool> copy_output;  // outputs whose bytes may be those of an input or a constant
};

// Types that follow from the graph's inputs and constants alone. What a model merely declares of inner values may be wrong,
// and memory is not planned on it.
class TrustedTypes final : public TypeSource {
 public:
  const Type& type_of(const Value& value) const override {
    static const Type unknown;
    const auto found = types_.find(&value);
    return found == types_.end() ? unknown : found->second;
  }
  void set(const Value& value, Type type) { types_[&value] = std::move(type); }

 private:
  std::unordered_map<const Value*, Type> types_;
};

// What the plan knows of an operator, and whether that was all that its shape rule wanted to know.
class PlanContext final : public StaticInferContext {
 public:
  PlanContext(const Op& op, const TypeSource& source) : StaticInferContext(op, source) {}

  const Tensor* constant(size_t i) const override {
    const Tensor* told = StaticInferContext::constant(i);
    note(i, told != nullptr);
    return told;
  }
  std::optional<std::vector<Dim>> dims_value(size_t i) const override {
    auto told = StaticInferContext::dims_value(i);
    note(i, told && std::ranges::all_of(*told, &Dim::is_static));
    return told;
  }
  // A rule may ask for the same value in both ways; one answer will do.
  bool complete() const {
    return std::ranges::none_of(asked_, [](const auto& operand) { return !operand.second; });
  }

 private:
  void note(size_t i, bool told) const {
    if (has_operand(i)) asked_[i] = asked_[i] || told;
  }
  mutable std::map<size_t, bool> asked_;  // operand -> told
};

bool has_static_shape(const Type& type) {
  return type.is_tensor() && type.element().valid() && type.shape().is_static();
}

class Planner {
 public:
  Planner(const Graph& graph, Plan& plan) : graph_(graph), plan_(plan) {}

  Result<void> make() {
    const Region& body = graph_.body();
    for (size_t i = 0; i < body.input_count(); ++i) trusted_.set(*body.input(i), body.input(i)->type());
    number(body);
    TENON_OK(add_steps(body, plan_.steps, /*root=*/true));
    plan_lives(body);
    plan_outputs(body);
    return {};
  }

 private:
  size_t slot(const Value* value) { return value ? slots_.at(value) : kNowhere; }

  void number(const Region& region) {
    RegionPlan& mine = plan_.regions[&region];
    for (size_t i = 0; i < region.input_count(); ++i) {
      slots_[region.input(i)] = plan_.slots;
      mine.inputs.push_back(plan_.slots++);
    }
    for (const Op& op : region) {
      for (size_t i = 0; i < op.result_count(); ++i) slots_[op.result(i)] = plan_.slots++;
      for (size_t i = 0; i < op.region_count(); ++i) number(op.region(i));
    }
    for (size_t i = 0; i < region.output_count(); ++i) plan_.regions[&region].outputs.push_back(slot(region.output(i)));
  }

  Result<void> add_steps(const Region& region, std::vector<Step>& steps, bool root) {
    for (const Op& op : region) {
      if (isa<Constant>(op)) {
        plan_.constants.emplace_back(slot(op.result()), *constant_of(op.result()));
        trusted_.set(*op.result(), Type(constant_of(op.result())->type()));
        continue;
      }
      Step step;
      step.op = &op;
      step.evaluate = find_evaluator(op.name());
      if (!step.evaluate) {
        return error(Code::unsupported, "the reference has no evaluator for ", op.describe(),
                     "; register one with register_evaluator, or give the operator a decomposition");
      }
      step.operands = plan_.operand_slots.size();
      for (size_t i = 0; i < op.operand_count(); ++i) plan_.operand_slots.push_back(slot(op.operand(i)));
      step.results = op.result_count() > 0 ? slot(op.result()) : kNowhere;
      if (root) TENON_OK(check(op, step));
      step.regions.resize(op.region_count());
      for (size_t i = 0; i < op.region_count(); ++i) TENON_OK(add_steps(op.region(i), step.regions[i], false));
      steps.push_back(std::move(step));
    }
    return {};
  }

  Result<void> check(const Op& op, Step& step) {
    if (op.region_count() > 0 || !op.def() || op.def()->has(Trait::data_dependent)) return {};
    bool known = true;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      known = known && (!op.operand(i) || has_static_shape(trusted_.type_of(*op.operand(i))));
    }
    if (!known) return {};
    const PlanContext context(op, trusted_);
    TENON_TRY(types, infer_types(context));
    if (!context.complete()) return {};
    step.checked = true;
    for (size_t i = 0; i < op.result_count(); ++i) {
      step.checked = step.checked && has_static_shape(types[i]);
      trusted_.set(*op.result(i), types[i]);
    }
    if (step.checked) step.types = std::move(types);
    return {};
  }

  // Lifetimes of the values made by the body's operators; a view counts as part of what it views.
  void plan_lives(const Region& body) {
    const size_t end = plan_.steps.size();
    std::vector<size_t> last_use(plan_.slots, kNowhere);
    for (size_t at = 0; at < end; ++at) mark_uses(plan_.steps[at], at, last_use);
    for (const size_t output : plan_.regions.at(&body).outputs) {
      if (output != kNowhere) last_use[output] = end;
    }

    struct Candidate {
      const Value* value = nullptr;
      size_t born = 0, family = 0;
      bool placeable = false;
    };
    std::vector<Candidate> candidates(plan_.slots);
    for (size_t at = 0; at < end; ++at) {
      const Step& step = plan_.steps[at];
      for (size_t i = 0; i < step.op->result_count(); ++i) {
        const size_t slot = step.results + i;
        Candidate& mine = candidates[slot];
        mine = {step.op->result(i), at, slot, step.checked && storage(*step.op->result(i)).has_value()};
        if (last_use[slot] == kNowhere) last_use[slot] = at;
        if (i == 0 && is_view(step)) {
          const size_t viewed = plan_.operand_slots[step.operands];
          if (mine.placeable && candidates[viewed].placeable) mine.family = candidates[viewed].family;
        }
      }
    }
    // An output's bytes outlive the run, so all of its family stays out of the arena.
    std::vector<size_t> family_end(plan_.slots, 0);
    for (size_t slot = 0; slot < plan_.slots; ++slot) {
      if (candidates[slot].placeable) {
        size_t& family = family_end[candidates[slot].family];
        family = std::max(family, last_use[slot]);
      }
    }
    std::vector<Lifetime> lives;
    std::vector<size_t> life_of(plan_.slots, kNowhere);
    plan_.in_arena.assign(plan_.slots, false);
    for (size_t slot = 0; slot < plan_.slots; ++slot) {
      const Candidate& mine = candidates[slot];
      if (!mine.placeable || family_end[mine.family] == end) continue;
      plan_.in_arena[slot] = true;
      if (mine.family != slot) continue;
      life_of[slot] = lives.size();
      lives.push_back({*storage(*mine.value), mine.born, family_end[slot]});
    }
    plan_.arena = plan_arena(lives, kAlignBytes);
    for (size_t slot = 0; slot < plan_.slots; ++slot) {
      if (!plan_.in_arena[slot]) continue;
      const Candidate& mine = candidates[slot];
      plan_.planned.push_back({slot, plan_.arena.offsets[life_of[mine.family]], trusted_.type_of(*mine.value).tensor()});
    }
    // A planned view is its operand under another shape: nothing is left to run.
    for (Step& step : plan_.steps) {
      if (is_view(step) && plan_.in_arena[step.results] && candidates[step.results].family != step.results) {
        step.evaluate = nullptr;
      }
    }
    std::vector<bool> constant(plan_.slots, false);
    for (const auto& [slot, tensor] : plan_.constants) constant[slot] = true;
    for (size_t slot = 0; slot < plan_.slots; ++slot) {
      if (plan_.in_arena[slot] || constant[slot]) continue;
      plan_.loose.push_back(slot);
      if (last_use[slot] < end) plan_.steps[last_use[slot]].dead.push_back(slot);
    }
  }

  static bool is_view(const Step& step) {
    return step.op->def() && step.op->def()->has(Trait::view) && step.op->operand(0) != nullptr;
  }

  std::optional<size_t> storage(const Value& value) const {
    const Type& type = trusted_.type_of(value);
    if (!has_static_shape(type) || type.element().is_string()) return std::nullopt;
    const auto count = element_count(*type.shape().static_dims());
    if (!count.ok()) return std::nullopt;
    const auto bytes = storage_bytes(type.element(), *count);
    // Left to allocation at run time, whose error names the tensor.
    if (!bytes.ok() || *bytes > tensor_bytes_limit()) return std::nullopt;
    return *bytes;
  }

  void mark_uses(const Step& step, size_t at, std::vector<size_t>& last_use) const {
    const auto mark = [&](size_t slot) {
      if (slot != kNowhere) last_use[slot] = at;
    };
    for (size_t i = 0; i < step.op->operand_count(); ++i) mark(plan_.operand_slots[step.operands + i]);
    for (size_t r = 0; r < step.regions.size(); ++r) {
      for (const Step& inner : step.regions[r]) mark_uses(inner, at, last_use);
      const RegionPlan& region = plan_.regions.at(&step.op->region(r));
      for (const size_t slot : region.inputs) mark(slot);
      for (const size_t slot : region.outputs) mark(slot);
    }
  }

  // An output needs a copy unless an operator of the body makes it afresh.
  void plan_outputs(const Region& body) {
    std::unordered_set<const Value*> seen;
    for (size_t i = 0; i < body.output_count(); ++i) {
      const Op* producer = body.output(i) ? body.output(i)->producer() : nullptr;
      const bool first = seen.insert(body.output(i)).second;
      const bool fresh = producer && producer->parent() == &body && !isa<Constant>(*producer) && producer->def() &&
                         !producer->def()->has(Trait::movement) && !producer->def()->has(Trait::view) &&
                         producer->region_count() == 0 && first;
      plan_.copy_output.push_back(!fresh);
    }
  }

  const Graph& graph_;
  Plan& plan_;
  std::unordered_map<const Value*, size_t> slots_;
  TrustedTypes trusted_;
};

// What one run at a time needs; kept for the next run.
struct RunContext {
  AlignedBytes arena;
  std::vector<Datum> slots;
  std::vector<const Datum*> operands;  // as Plan::operand_slots

  static Result<std::unique_ptr<RunContext>> make(const Plan& plan) {
    auto made = std::make_unique<RunContext>();
    TENON_TRY(arena, allocate_aligned(plan.arena.bytes), "allocating the arena of a run");
    made->arena = std::move(arena);
    made->slots.resize(plan.slots);
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

  bool holds(const Tensor& tensor, const Plan& plan) const {
    return tensor.data() >= arena.get() && tensor.data() < arena.get() + std::max<size_t>(plan.arena.bytes, 1);
  }
};

// Actual operands, for shape rules at run time.
class ActualContext final : public InferContext {
 public:
  ActualContext(const Op& op, std::span<const Datum* const> operands) : InferContext(op), operands_(operands) {
    types_.reserve(operands.size());
    for (const Datum* operand : operands) types_.push_back(operand->type());
  }
  const Type& type(size_t i) const override {
    static const Type unknown;
    return i < types_.size() ? types_[i] : unknown;
  }
  const Tensor* constant(size_t i) const override {
    return i < operands_.size() && operands_[i]->is_tensor() ? &operands_[i]->tensor() : nullptr;
  }
  std::optional<std::vector<Dim>> dims_value(size_t i) const override {
    const Tensor* tensor = constant(i);
    return tensor ? dims_of_tensor(*tensor) : std::nullopt;
  }
  // Only the parts that operands cannot tell: what an empty sequence or an absent optional would hold.
  Type declared(size_t i) const override {
    const Type& type = op().result(i)->type();
    return type.is_tensor() ? Type(type.element(), Shape()) : type;
  }

 private:
  std::span<const Datum* const> operands_;
  std::vector<Type> types_;
};

uint64_t fresh_seed() {
  static std::atomic<uint64_t> counter{[] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }()};
  return hash_mix(0, ++counter);
}

// Does `datum` have the kind and element type that `type` states, where it states them?
bool agrees(const Datum& datum, const Type& type) {
  if (!type.known() || datum.absent()) return true;
  if (type.is_optional()) return agrees(datum, type.inner());
  if (datum.is_tensor()) {
    return type.is_tensor() && (!type.element().valid() || datum.tensor().element() == type.element());
  }
  if (!type.is_sequence()) return false;
  for (const Datum& element : datum.elements()) {
    if (!agrees(element, type.inner())) return false;
  }
  return true;
}

class Runner {
 public:
  Runner(const Plan& plan, RunContext& memory, ParallelFor& parallel, Interpreter::Observer* observer)
      : plan_(plan), memory_(memory), parallel_(parallel), observer_(observer) {}

  Result<void> run(std::span<const Step> steps);
  Result<std::vector<Datum>> run_region(const Region& region, std::span<const Step> steps, std::vector<Datum> inputs) {
    const RegionPlan& mine = plan_.regions.at(&region);
    if (inputs.size() != mine.inputs.size()) {
      return error(Code::invalid_argument, "a region with ", mine.inputs.size(), " inputs is given ", inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!agrees(inputs[i], region.input(i)->type())) {
        return error(Code::invalid_argument, "input '", region.input(i)->name(), "' of a region is declared ",
                     region.input(i)->type(), " and given ", inputs[i].type());
      }
      memory_.slots[mine.inputs[i]] = std::move(inputs[i]);
    }
    TENON_OK(run(steps));
    std::vector<Datum> outputs;
    for (const size_t slot : mine.outputs) {
      TENON_TRY(output, slot == kNowhere ? Datum() : own(memory_.slots[slot]));
      outputs.push_back(std::move(output));
    }
    return outputs;
  }

  // A copy for data in the arena, which the next operators may overwrite.
  Result<Datum> own(const Datum& datum) const {
    if (datum.is_tensor() && memory_.holds(datum.tensor(), plan_)) {
      TENON_TRY(copy, datum.tensor().clone());
      return Datum(std::move(copy));
    }
    if (!datum.is_sequence()) return datum;
    std::vector<Datum> elements;
    for (const Datum& element : datum.elements()) {
      TENON_TRY(owned, own(element));
      elements.push_back(std::move(owned));
    }
    return Datum::sequence(std::move(elements), datum.element_type());
  }

 private:
  friend class StepContext;
  const Plan& plan_;
  RunContext& memory_;
  ParallelFor& parallel_;
  Interpreter::Observer* observer_;
};

class StepContext final : public EvalContext {
 public:
  StepContext(Runner& runner, const Step& step) : runner_(runner), step_(step) {
    op_ = step.op;
    operands_ = {runner.memory_.operands.data() + step.operands, step.op->operand_count()};
  }

  // The shape rule on the actual operands, unless the plan has done it.
  Result<void> check() {
    if (step_.checked || op_->region_count() > 0) return {};
    TENON_TRY(types, infer_types(ActualContext(*op_, operands_)));
    types_ = std::move(types);
    return {};
  }

  Result<Dims> result_dims(size_t i) const override {
    const Type& type = result_type(i);
    if (auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt) return *std::move(dims);
    std::string given;
    for (const Datum* operand : operands_) given += str(given.empty() ? "" : ", ", operand->type());
    return error(Code::invalid_argument, "the operands (", given, ") of ", op_->describe(), " do not tell the shape of result ",
                 i, ", the shape rule gives ", type, ": one has a rank that spells no shape, or holds numbers too large");
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
    return error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned, " and made as ", element,
                 dims);
  }

  void set_output(size_t i, Datum value) override {
    if (runner_.plan_.in_arena[step_.results + i]) {
      Tensor& planned = slot(i).tensor();
      const bool fits = value.is_tensor() && value.tensor().element() == planned.element() &&
                        value.tensor().dims() == planned.dims();
      TENON_CHECK(fits, "result ", i, " of ", op_->describe(), " is planned as ", planned, " and set to ", value.type());
      if (planned.data() != value.tensor().data()) {
        std::memmove(planned.mutable_data(), value.tensor().data(), planned.bytes());
      }
      return;
    }
    auto owned = runner_.own(value);
    if (owned.ok()) slot(i) = *std::move(owned);
    else delivered_ = std::move(owned).error();
  }
  // What went wrong in set_output().
  Result<void> delivered() { return std::move(delivered_); }

  Result<std::vector<Datum>> run_region(size_t i, std::vector<Datum> inputs) override {
    return runner_.run_region(op_->region(i), step_.regions[i], std::move(inputs));
  }

  ParallelFor& parallel() override { return runner_.parallel_; }
  uint64_t random_seed() override { return fresh_seed(); }

  // Control flow and sequences carry values whose types only the run shows.
  Result<void> check_results() {
    for (size_t i = 0; i < op_->result_count(); ++i) {
      if (agrees(slot(i), op_->result(i)->type())) continue;
      return error(Code::invalid_argument, "result ", i, " of ", op_->describe(), " is declared ", op_->result(i)->type(),
                   " and turned out ", slot(i).type());
    }
    return {};
  }

 private:
  Datum& slot(size_t i) { return runner_.memory_.slots[step_.results + i]; }
  // Operators with regions have no rule that a run asks.
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

Result<void> Runner::run(std::span<const Step> steps) {
  for (const Step& step : steps) {
    if (observer_) observer_->before(*step.op);
    if (step.evaluate) {
      StepContext context(*this, step);
      TENON_OK(context.check(), "operator ", step.op->describe());
      TENON_OK(step.evaluate(context), "operator ", step.op->describe());
      TENON_OK(context.delivered(), "operator ", step.op->describe());
      if (!step.checked) TENON_OK(context.check_results());
    }
    if (observer_ && step.op->result_count() > 0) {
      observer_->after(*step.op, {&memory_.slots[step.results], step.op->result_count()});
    }
    for (const size_t slot : step.dead) memory_.slots[slot] = Datum();
  }
  return {};
}

// The outputs of the whole graph, when it has run. What the caller or the graph holds, too, is copied.
Result<void> collect(const Plan& plan, const RunContext& context, const Region& body, std::vector<Datum>& outputs) {
  const RegionPlan& region = plan.regions.at(&body);
  for (size_t i = 0; i < body.output_count(); ++i) {
    const size_t slot = region.outputs[i];
    outputs.push_back(slot == kNowhere ? Datum() : context.slots[slot]);
    if (!plan.copy_output[i] || !outputs.back().is_tensor()) continue;
    TENON_TRY(copy, outputs.back().tensor().clone(), "output '", body.output_name(i), "'");
    outputs.back() = Datum(std::move(copy));
  }
  return {};
}

// Does the datum satisfy the declared type? Symbols take the first value they meet and must keep it.
Result<void> check_input(const Datum& datum, const Value& input, std::map<std::string, int64_t>& symbols) {
  const Type& type = input.type();
  const auto refuse = [&](std::string_view why) {
    return error(Code::invalid_argument, "input '", input.name(), "' is declared ", type, " and given ",
                 datum.absent() ? std::string("nothing") : datum.type().to_string(), why);
  };
  if (datum.absent()) {
    if (type.is_optional() || !type.known()) return {};
    return refuse("");
  }
  if (!agrees(datum, type)) return refuse("");
  if (!datum.is_tensor() || !type.is_tensor() || !type.shape().ranked()) return {};
  const Tensor& tensor = datum.tensor();
  if (tensor.rank() != type.shape().rank()) return refuse(": another rank");
  for (size_t i = 0; i < tensor.dims().size(); ++i) {
    const Dim& dim = type.shape()[i];
    if (dim.is_static() && dim.value() != tensor.dim(i)) return refuse(str(": dim ", i, " differs"));
    if (dim.is_static() || !dim.known()) continue;
    const auto [entry, fresh] = symbols.emplace(dim.to_string(), tensor.dim(i));
    if (!fresh && entry->second != tensor.dim(i)) {
      return refuse(str(": ", entry->first, " is ", entry->second, " elsewhere and ", tensor.dim(i), " here"));
    }
  }
  return {};
}

// Operators without an evaluator, rebuilt from simpler ones. Null when the graph needs none of that.
Result<std::unique_ptr<Graph>> decomposed(const Graph& graph) {
  constexpr int kMostLevels = 32;  // a decomposition that leads back to itself ends here
  std::unique_ptr<Graph> copy;
  for (int level = 0; level < kMostLevels; ++level) {
    const Graph& current = copy ? *copy : graph;
    bool needed = false;
    for_each_op(current.body(), [&](const Op& op) {
      needed = needed || (!find_evaluator(op.name()) && op.def() && op.def()->decompose_fn());
    });
    if (!needed) return copy;
    if (!copy) copy = graph.clone();
    Result<void> status;
    for_each_op(copy->body(), [&](Op& op) {
      if (!status.ok() || find_evaluator(op.name()) || !op.def() || !op.def()->decompose_fn()) return;
      Builder builder(*op.parent(), &op);
      builder.set_name_prefix(op.label());
      auto values = op.def()->decompose_fn()(builder, op);
      if (!values.ok()) {
        status = std::move(values).error().with_frame(str("the decomposition of ", op.describe()));
        return;
      }
      for (size_t i = 0; i < op.result_count(); ++i) {
        if (op.result(i)->used()) op.result(i)->replace_all_uses_with((*values)[i]);
      }
      op.erase();
    });
    TENON_OK(std::move(status));
  }
  return error(Code::internal, "decompositions of graph '", graph.name(), "' do not end after ", kMostLevels, " levels");
}

}  // namespace

struct Interpreter::Impl {
  std::unique_ptr<Graph> own_graph;  // when operators had to be decomposed
  const Graph* graph = nullptr;
  Plan plan;
  std::mutex mutex;
  std::vector<std::unique_ptr<RunContext>> idle;

  Result<std::unique_ptr<RunContext>> acquire() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    return RunContext::make(plan);
  }
  void release(std::unique_ptr<RunContext> context) {
    for (const size_t slot : plan.loose) context->slots[slot] = Datum();
    std::lock_guard lock(mutex);
    idle.push_back(std::move(context));
  }
};

Interpreter::Interpreter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Interpreter::~Interpreter() = default;

Result<std::unique_ptr<Interpreter>> Interpreter::prepare(const Graph& graph) {
  auto impl = std::make_unique<Impl>();
  TENON_TRY(rebuilt, decomposed(graph));
  impl->own_graph = std::move(rebuilt);
  impl->graph = impl->own_graph ? impl->own_graph.get() : &graph;
  TENON_OK(Planner(*impl->graph, impl->plan).make(), "preparing graph '", graph.name(), "' for the reference");
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(impl)));
}

Result<std::vector<Datum>> Interpreter::run(std::span<const Datum> inputs, ParallelFor& parallel) const {
  return run(inputs, parallel, nullptr);
}

Result<std::vector<Datum>> Interpreter::run(std::span<const Datum> inputs, ParallelFor& parallel,
                                            Observer* observer) const {
  const Region& body = impl_->graph->body();
  const Plan& plan = impl_->plan;
  if (inputs.size() != body.input_count()) {
    return error(Code::invalid_argument, "graph '", impl_->graph->name(), "' has ", body.input_count(), " inputs, ",
                 inputs.size(), " are given");
  }
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(check_input(inputs[i], *body.input(i), symbols));

  TENON_TRY(context, impl_->acquire());
  const RegionPlan& region = plan.regions.at(&body);
  for (size_t i = 0; i < inputs.size(); ++i) context->slots[region.inputs[i]] = inputs[i];
  Runner runner(plan, *context, parallel, observer);
  std::vector<Datum> outputs;
  auto done = [&]() -> Result<void> {
    try {
      TENON_OK(runner.run(plan.steps));
      return collect(plan, *context, body, outputs);
    } catch (const std::bad_alloc&) {
      return error(Code::resource_exhausted, "the heap is exhausted");
    } catch (const std::exception& thrown) {
      return error(Code::internal, "an evaluator threw: ", thrown.what());
    }
  }();
  impl_->release(std::move(context));
  TENON_OK(std::move(done), "graph '", impl_->graph->name(), "' on the reference");
  return outputs;
}

size_t Interpreter::arena_bytes() const { return impl_->plan.arena.bytes; }
size_t Interpreter::arena_lower_bound_bytes() const { return impl_->plan.arena.lower_bound_bytes; }

Result<std::vector<Datum>> evaluate(Name name, std::vector<Datum> operands, const Attributes& attributes, size_t results,
                                    ParallelFor& parallel) {
  Graph graph("evaluate");
  Region& body = graph.body();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(operands[i].absent() ? nullptr : body.add_input(str("operand", i), operands[i].type()));
  }
  // Results stay untyped: the shape rule at run time sees the values of all operands.
  Op& op = body.create(name, inputs, std::vector<Type>(results), attributes);
  for (size_t i = 0; i < results; ++i) body.add_output(op.result(i), str("result", i));
  std::erase_if(operands, [](const Datum& operand) { return operand.absent(); });
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(operands, parallel);
}

}  // namespace tenon
