#include <tenon/model/run_state_internal.hpp>

#include <algorithm>
#include <utility>

namespace tenon::detail {
namespace {

std::vector<Dims> extents_of(std::span<const Datum> inputs) {
  std::vector<Dims> extents;
  for (const Datum& input : inputs) extents.push_back(input.is_tensor() ? input.tensor().dims() : Dims());
  return extents;
}

std::vector<PassedValue> values_of_types(const std::vector<PassedSlot>& passed) {
  std::vector<PassedValue> values;
  for (const PassedSlot& p : passed) values.push_back({p.type->element, *p.type->shape.static_dims(), p.first, p.last});
  return values;
}

}  // namespace

RunStates::RunStates(const CompiledModel::Parts& parts, const RunPlan& plan) : parts_(parts), plan_(plan) {
  if (!plan.open)
    known_.push_back({{}, std::make_shared<const ValuePlan>(plan_with_arenas(values_of_types(plan.passed)))});
}

ValuePlan RunStates::plan_with_arenas(std::vector<PassedValue> values) const {
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const size_t bytes = plan_.steps[s].at_once ? plan_.steps[s].at_once->lendable_bytes() : 0;
    // Without bytes it gets no place.
    values.push_back({bytes > 0 ? kU8 : ElementType(), {static_cast<int64_t>(bytes)}, s, s});
  }
  return ValuePlan(std::move(values));
}

RunStates::~RunStates() { delete spare_.take(); }

bool RunStates::serves(const RunState& state, std::span<const Datum> inputs) const {
  if (!plan_.open) return true;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_tensor() && inputs[i].tensor().dims() != state.extents[i]) return false;
  return true;
}

Result<std::unique_ptr<RunState>> RunStates::acquire(std::span<const Datum> inputs) {
  std::unique_ptr<RunState> spare(spare_.take());
  if (spare && serves(*spare, inputs)) return spare;
  {
    const std::lock_guard lock(mutex_);
    if (spare) idle_.push_back(std::move(spare));
    for (size_t i = idle_.size(); i-- > 0;) {
      if (!serves(*idle_[i], inputs)) continue;
      std::unique_ptr<RunState> taken = std::move(idle_[i]);
      idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(i));
      return taken;
    }
  }
  return make(inputs);
}

Result<std::unique_ptr<RunState>> RunStates::make(std::span<const Datum> inputs) {
  auto made = std::make_unique<RunState>();
  for (Device* device : plan_.devices) {
    TENON_TRY(stream, device->create_stream(/*background=*/false), "opening a stream on device '", device->name(), "'");
    made->streams.push_back(std::move(stream));
  }
  made->slots.resize(parts_.slots);
  made->values.resize(parts_.slots);
  for (const auto& [slot, tensor] : parts_.constants) {
    made->slots[slot].host = tensor;
    made->values[slot] = &made->slots[slot].host;
  }
  if (plan_.open) made->extents = extents_of(inputs);
  made->seen.resize(plan_.passed.size());
  if (const auto plan = known_plan(made->extents)) TENON_OK(place(*made, *plan));
  return made;
}

std::shared_ptr<const ValuePlan> RunStates::known_plan(const std::vector<Dims>& extents) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(known_, [&](const Known& k) { return k.extents == extents; });
  if (known == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, known);
  return known_.front().plan;
}

Result<void> RunStates::place(RunState& state, const ValuePlan& plan) const {
  TENON_TRY(places, plan.places(), "values between the segments of model '", parts_.name, "'");
  const auto arenas = places.begin() + static_cast<ptrdiff_t>(plan_.passed.size());
  state.arenas.assign(std::make_move_iterator(arenas), std::make_move_iterator(places.end()));
  for (size_t i = 0; i < plan_.passed.size(); ++i) state.slots[plan_.passed[i].slot].host = std::move(places[i]);
  state.placed = true;
  return {};
}

void RunStates::release(std::unique_ptr<RunState> state) {
  if (state->placed && spare_.give(state.get())) {
    static_cast<void>(state.release());
    return;
  }
  std::shared_ptr<const ValuePlan> planned = state->placed ? nullptr : plan_seen(*state);
  const std::lock_guard lock(mutex_);
  if (planned) known_.push_front({state->extents, std::move(planned)});
  if (known_.size() > kMostExtents) known_.pop_back();
  idle_.push_back(std::move(state));
  if (plan_.open && idle_.size() > kMostExtents) idle_.erase(idle_.begin());
}

// Null: there is no memory for all values at once, and later runs allocate them one by one, as this one did.
std::shared_ptr<const ValuePlan> RunStates::plan_seen(RunState& state) const {
  for (size_t i = 0; i < state.seen.size(); ++i) {
    state.seen[i].first = plan_.passed[i].first;
    state.seen[i].last = plan_.passed[i].last;
  }
  auto plan = std::make_shared<const ValuePlan>(plan_with_arenas(state.seen));
  return place(state, *plan).ok() ? plan : nullptr;
}

size_t RunStates::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const Known& known : known_) most = std::max(most, known.plan->bytes());
  return most;
}

size_t RunStates::arena_lower_bound_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const Known& known : known_) most = std::max(most, known.plan->lower_bound_bytes());
  return most;
}

}  // namespace tenon::detail
