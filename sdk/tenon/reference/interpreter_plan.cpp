// What is common to all runs of a graph: steps, slots, the arena.
#include <algorithm>
#include <unordered_set>

#include <tenon/ir/asked_context.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/reference/interpreter_internal.hpp>

namespace tenon::interpreter {
namespace {

// Types that follow from the graph's inputs and constants alone. What a model merely declares about inner values may be
// wrong, so no memory is planned by it.
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
    plan_.laid_out.resize(plan_.slots);
    for (size_t i = 0; i < body.input_count(); ++i) TENON_OK(lay_out(*body.input(i)));
    TENON_OK(add_steps(body, plan_.steps, /*root=*/true));
    plan_lives(body);
    plan_outputs(body);
    return {};
  }

 private:
  size_t slot(const Value* value) { return value ? slots_.at(value) : kNowhere; }

  size_t add_slot(const Value& value) {
    slots_[&value] = plan_.slots;
    plan_.laid_values.push_back(value.layout() ? &value : nullptr);
    return plan_.slots++;
  }

  void number(const Region& region) {
    RegionPlan& mine = plan_.regions[&region];
    for (size_t i = 0; i < region.input_count(); ++i) mine.inputs.push_back(add_slot(*region.input(i)));
    for (const Op& op : region) {
      for (size_t i = 0; i < op.result_count(); ++i) add_slot(*op.result(i));
      for (size_t i = 0; i < op.region_count(); ++i) number(op.region(i));
    }
    for (size_t i = 0; i < region.output_count(); ++i) plan_.regions[&region].outputs.push_back(slot(region.output(i)));
  }

  Result<void> add_steps(const Region& region, std::vector<Step>& steps, bool root) {
    for (const Op& op : region) {
      if (isa<Constant>(op)) {
        TENON_OK(add_constant(*op.result(), *constant_of(op.result())));
        continue;
      }
      TENON_TRY(folded, fold_reorder(op));
      if (folded) continue;
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
      step.laid_out = has_layout(op);
      if (root) TENON_OK(check(op, step));
      step.regions.resize(op.region_count());
      for (size_t i = 0; i < op.region_count(); ++i) TENON_OK(add_steps(op.region(i), step.regions[i], false));
      steps.push_back(std::move(step));
    }
    return {};
  }

  bool has_layout(const Op& op) const {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (op.operand(i) && op.operand(i)->layout()) return true;
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      if (op.result(i)->layout()) return true;
    }
    return false;
  }

  // The layout of the value, if its shape is known.
  Result<void> lay_out(const Value& value) {
    const Type& type = trusted_.type_of(value);
    if (!value.layout() || !has_static_shape(type)) return {};
    TENON_TRY(made, LaidOut::make(*value.layout(), type.element(), *type.shape().static_dims()), "value '",
              value.name(), "'");
    plan_.laid_out[slot(&value)] = std::move(made);
    return {};
  }

  // Converted to its layout once, for all runs.
  Result<void> add_constant(const Value& value, const Tensor& tensor) {
    trusted_.set(value, Type(tensor.type()));
    logical_constants_[&value] = tensor;
    TENON_OK(lay_out(value));
    const LaidOutPointer& laid_out = plan_.laid_out[slot(&value)];
    if (!laid_out) {
      plan_.constants.emplace_back(slot(&value), tensor);
      return {};
    }
    TENON_TRY(physical, allocate_physical(*laid_out), "value '", value.name(), "'");
    TENON_OK(laid_out->pack(tensor, bytes_of(physical), plan_.poison, serial()), "value '", value.name(), "'");
    plan_.constants.emplace_back(slot(&value), std::move(physical));
    return {};
  }

  // layout.Reorder and layout.Scrub of a constant are constants.
  Result<bool> fold_reorder(const Op& op) {
    if (!isa<LayoutReorder>(op) && !isa<LayoutScrub>(op)) return false;
    const auto found = logical_constants_.find(op.operand(0));
    if (found == logical_constants_.end()) return false;
    const Tensor logical = found->second;
    TENON_OK(add_constant(*op.result(), logical));
    const LaidOutPointer& laid_out = plan_.laid_out[slot(op.result())];
    if (isa<LayoutScrub>(op) && laid_out) {
      const auto bits = static_cast<uint64_t>(op.attr<int64_t>("bits", 0));
      laid_out->fill_padding(bytes_of(plan_.constants.back().second), bits);
    }
    return true;
  }

  Result<void> check(const Op& op, Step& step) {
    if (op.region_count() > 0 || !op.def() || op.def()->has(Trait::data_dependent)) return {};
    bool known = true;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      known = known && (!op.operand(i) || has_static_shape(trusted_.type_of(*op.operand(i))));
    }
    if (!known) return {};
    const AskedContext context(op, trusted_, &Dim::is_static);
    TENON_TRY(types, infer_types(context));
    if (context.missing()) return {};
    step.checked = true;
    for (size_t i = 0; i < op.result_count(); ++i) {
      step.checked = step.checked && has_static_shape(types[i]);
      trusted_.set(*op.result(i), types[i]);
    }
    if (!step.checked) return {};
    step.types = std::move(types);
    for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(lay_out(*op.result(i)));
    return {};
  }

  // Lifetimes of the values produced by the body's operators; a view counts as part of what it views.
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
        if (i == 0 && (is_view(step) || is_scrub_in_place(step, at, last_use))) {
          const size_t viewed = plan_.operand_slots[step.operands];
          if (mine.placeable && candidates[viewed].placeable) mine.family = candidates[viewed].family;
        }
      }
    }
    // An output's bytes outlive the run, so its whole family stays out of the arena; one in a layout is unpacked.
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
      plan_.planned.push_back({slot, plan_.arena.offsets[life_of[mine.family]], stored_type(*mine.value)});
    }
    // A planned view is its operand under another shape, so there is nothing to run.
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
    return !step.laid_out && step.op->def() && step.op->def()->has(Trait::view) && step.op->operand(0) != nullptr;
  }

  // Whether it may write into its operand, because nobody reads that later.
  bool is_scrub_in_place(const Step& step, size_t at, const std::vector<size_t>& last_use) const {
    if (!isa<LayoutScrub>(*step.op)) return false;
    const size_t from = plan_.operand_slots[step.operands];
    const LaidOutPointer &before = plan_.laid_out[from], &after = plan_.laid_out[step.results];
    return before && after && last_use[from] == at && before->layout() == after->layout();
  }

  // The type in memory.
  TensorType stored_type(const Value& value) const {
    const LaidOutPointer& laid_out = plan_.laid_out[slots_.at(&value)];
    if (!laid_out) return trusted_.type_of(value).tensor();
    return {kU8, Shape(Dims{static_cast<int64_t>(laid_out->bytes())})};
  }

  std::optional<size_t> storage(const Value& value) const {
    if (const LaidOutPointer& laid_out = plan_.laid_out[slots_.at(&value)]) {
      return laid_out->bytes() > tensor_bytes_limit() ? std::nullopt : std::optional(laid_out->bytes());
    }
    if (value.layout()) return std::nullopt;
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

  // An output needs a copy unless an operator of the body allocates it.
  void plan_outputs(const Region& body) {
    std::unordered_set<const Value*> seen;
    for (size_t i = 0; i < body.output_count(); ++i) {
      const Op* producer = body.output(i) ? body.output(i)->producer() : nullptr;
      const bool first = seen.insert(body.output(i)).second;
      const bool fresh = producer && !body.output(i)->layout() && producer->parent() == &body &&
                         !isa<Constant>(*producer) && producer->def() && !producer->def()->has(Trait::movement) &&
                         !producer->def()->has(Trait::view) && producer->region_count() == 0 && first;
      plan_.copy_output.push_back(!fresh);
    }
  }

  const Graph& graph_;
  Plan& plan_;
  std::unordered_map<const Value*, size_t> slots_;
  TrustedTypes trusted_;
  std::unordered_map<const Value*, Tensor> logical_constants_;
};

}  // namespace

Result<void> make_plan(const Graph& graph, Plan& plan) { return Planner(graph, plan).make(); }

}  // namespace tenon::interpreter
