#include <tenon/model/run_plan_internal.hpp>

#include <algorithm>

namespace tenon::detail {
namespace {

using Parts = CompiledModel::Parts;

bool fit_together(const Parts& parts) {
  const auto in_range = [&](const std::vector<size_t>& slots) {
    return std::ranges::all_of(slots, [&](size_t slot) { return slot < parts.slots; });
  };
  const auto fits = [&](const CompiledModel::Segment& segment) {
    return in_range(segment.inputs) && in_range(segment.outputs) &&
           segment.inputs.size() == segment.executable->inputs().size() &&
           segment.outputs.size() == segment.executable->outputs().size();
  };
  return parts.inputs.size() <= parts.slots && parts.outputs.size() == parts.output_slots.size() &&
         in_range(parts.output_slots) && std::ranges::all_of(parts.segments, fits) &&
         std::ranges::all_of(parts.constants, [&](const auto& constant) { return constant.first < parts.slots; });
}

std::optional<TensorType> known_type(const Type& type) {
  if (!type.is_tensor() || !type.shape().ranked() || !type.shape().is_static()) return std::nullopt;
  return TensorType{type.element(), type.shape()};
}

}  // namespace

Result<RunPlan> RunPlan::of(const Parts& parts) {
  if (!fit_together(parts)) return error(Code::parse, "the parts of model '", parts.name, "' do not fit together");
  RunPlan plan;
  TENON_OK(plan.check_and_live(parts));
  plan.find_checks(parts);
  plan.find_outputs(parts);
  plan.find_steps(parts);
  plan.find_passed(parts);
  return plan;
}

Result<void> RunPlan::check_and_live(const Parts& parts) {
  std::vector<bool> filled(parts.slots, false);
  std::fill_n(filled.begin(), parts.inputs.size(), true);
  for (const auto& [slot, tensor] : parts.constants) filled[slot] = true;
  given_ = filled;
  made_.assign(parts.slots, SIZE_MAX);
  last_.assign(parts.slots, SIZE_MAX);
  bool sound = true;
  for (size_t s = 0; s < parts.segments.size(); ++s) {
    for (const size_t slot : parts.segments[s].inputs) {
      sound = sound && filled[slot];
      last_[slot] = s;
    }
    for (const size_t slot : parts.segments[s].outputs) filled[slot] = true, made_[slot] = last_[slot] = s;
  }
  for (const size_t slot : parts.output_slots) sound = sound && filled[slot], last_[slot] = SIZE_MAX;
  if (sound) return {};
  return error(Code::parse, "model '", parts.name, "' reads a value that no segment makes");
}

void RunPlan::find_checks(const Parts& parts) {
  for (const CompiledModel::Segment& segment : parts.segments) made_checks.emplace_back(segment.executable->outputs());
  std::vector<bool> read(parts.slots, false);
  for (const CompiledModel::Segment& segment : parts.segments)
    for (const size_t slot : segment.inputs) read[slot] = true;
  const auto has_symbols = [](const ValueInfo& input) { return !known_type(input.type); };
  const bool all_read = std::all_of(read.begin(), read.begin() + static_cast<ptrdiff_t>(parts.inputs.size()),
                                    [](bool is_read) { return is_read; });
  const bool apart = parts.segments.size() > 1 && std::ranges::any_of(parts.inputs, has_symbols);
  if (!all_read || apart) input_check.emplace(parts.inputs);
}

// Of outputs that share a slot, the last one is the value itself.
void RunPlan::find_outputs(const Parts& parts) {
  output_of_slot.assign(parts.slots, kNoOutput);
  copied.assign(parts.output_slots.size(), true);
  for (size_t i = parts.output_slots.size(); i-- > 0;) {
    const size_t slot = parts.output_slots[i];
    if (given_[slot] || output_of_slot[slot] != kNoOutput) continue;
    output_of_slot[slot] = i;
    copied[i] = false;
  }
}

void RunPlan::find_steps(const Parts& parts) {
  for (const CompiledModel::Segment& segment : parts.segments) {
    Device* device = &segment.executable->device();
    const auto found = std::ranges::find(devices, device);
    steps.push_back({.at_once = device->is_host() ? dynamic_cast<const HostRun*>(segment.executable.get()) : nullptr,
                     .stream = static_cast<size_t>(found - devices.begin()),
                     .dead = {},
                     .done = {}});
    if (found == devices.end()) devices.push_back(device);
  }
}

void RunPlan::find_passed(const Parts& parts) {
  std::vector<bool> has_place(parts.slots, false);
  passed_of_slot.assign(parts.slots, SIZE_MAX);
  for (size_t s = 0; s < parts.segments.size(); ++s) {
    const CompiledModel::Segment& segment = parts.segments[s];
    for (size_t i = 0; i < segment.outputs.size() && steps[s].at_once != nullptr; ++i) {
      const size_t slot = segment.outputs[i];
      // A slot that is filled twice, or kept to the end, gets no planned place.
      if (given_[slot] || made_[slot] != s || last_[slot] == SIZE_MAX || has_place[slot]) continue;
      has_place[slot] = true;
      passed_of_slot[slot] = passed.size();
      passed.push_back({slot, known_type(segment.executable->outputs()[i].type), s, last_[slot]});
      open = open || !passed.back().type;
    }
    for (const ValueInfo& input : segment.executable->inputs())
      open = open || (steps[s].at_once != nullptr && !known_type(input.type) && input.type.is_tensor());
  }
  for (size_t slot = 0; slot < parts.slots; ++slot)
    if (last_[slot] != SIZE_MAX && !given_[slot])
      (has_place[slot] ? steps[last_[slot]].done : steps[last_[slot]].dead).push_back(slot);
}

}  // namespace tenon::detail
