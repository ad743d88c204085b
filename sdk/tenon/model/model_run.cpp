#include <tenon/model/model_run_internal.hpp>

#include <algorithm>
#include <utility>

namespace tenon::detail {

Result<void> ModelRun::run() {
  for (size_t i = 0; i < inputs_.size(); ++i) state_.values[i] = &inputs_[i];
  for (size_t s = 0; s < parts_.segments.size(); ++s) {
    const Segment& segment = parts_.segments[s];
    if (plan_.steps[s].at_once)
      TENON_OK(run_at_once(s), "target '", segment.target, "'");
    else
      TENON_OK(run_on_stream(s, *state_.streams[plan_.steps[s].stream]), "target '", segment.target, "'");
    end_step(s);
  }
  return finish_outputs();
}

Result<void> ModelRun::run_at_once(size_t number) {
  const Segment& segment = parts_.segments[number];
  state_.arguments.clear();
  state_.results.clear();
  for (const size_t slot : segment.inputs) {
    TENON_TRY(value, on_host(slot), "moving '", segment.executable->inputs()[state_.arguments.size()].name,
              "' to the host");
    state_.arguments.push_back(value);
  }
  for (const size_t slot : segment.outputs) state_.results.push_back(&place_of(slot));
  RunOptions options = options_;
  options.arena = state_.arena_of(number);
  TENON_OK(plan_.steps[number].at_once->run(state_.arguments, state_.results, options));
  for (size_t i = 0; i < segment.outputs.size(); ++i) state_.values[segment.outputs[i]] = state_.results[i];
  return {};
}

Result<void> ModelRun::run_on_stream(size_t number, Stream& stream) {
  const Segment& segment = parts_.segments[number];
  std::vector<RunValue> arguments, results(segment.outputs.size());
  for (const size_t slot : segment.inputs) {
    TENON_TRY(value, bring(slot, stream), "moving '", segment.executable->inputs()[arguments.size()].name, "'");
    arguments.push_back(std::move(value));
  }
  const bool host = stream.device().is_host();
  for (size_t i = 0; i < results.size() && host; ++i) results[i].host = place_of(segment.outputs[i]);
  TENON_TRY(done, segment.executable->enqueue(stream, arguments, results, options_));
  // The next segment reads host results immediately; device results wait on their stream.
  if (host) TENON_OK(done->wait());
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_OK(plan_.made_checks[number].output(i, results[i]));
    const size_t output = segment.outputs[i];
    Slot& slot = state_.slots[output];
    state_.values[output] = nullptr;
    slot.device = {};
    slot.ready = done;
    if (results[i].on_device()) {
      slot.device = std::move(results[i].device);
      continue;
    }
    Datum& place = place_of(output);
    place = std::move(results[i].host);
    state_.values[output] = &place;
  }
  return {};
}

Datum& ModelRun::place_of(size_t slot) {
  const size_t output = plan_.output_of_slot[slot];
  return output == RunPlan::kNoOutput ? state_.slots[slot].host : outputs_[output];
}

Result<const Datum*> ModelRun::on_host(size_t slot) {
  if (state_.values[slot]) return state_.values[slot];
  Datum& place = place_of(slot);
  TENON_OK(fetch(state_.slots[slot], place));
  state_.values[slot] = &place;
  return state_.values[slot];
}

Result<void> ModelRun::fetch(Slot& slot, Datum& to) {
  if (slot.ready) TENON_OK(slot.ready->wait());
  slot.ready = nullptr;
  const DeviceTensor& from = slot.device;
  Device& device = from.buffer->device();
  if (!is_place_for(to, from.element, from.dims)) {
    TENON_TRY(made, Tensor::allocate(from.element, from.dims));
    to = Datum(std::move(made));
  }
  Tensor& tensor = to.tensor();
  const auto stream = std::ranges::find_if(state_.streams, [&](const auto& s) { return &s->device() == &device; });
  if (stream == state_.streams.end())
    return error(Code::plugin, "a value lies on device '", device.name(), "', and no segment of the model runs there");
  TENON_TRY(copied, (*stream)->copy_to_host({tensor.mutable_data(), tensor.bytes()}, *from.buffer, from.offset));
  TENON_OK(copied->wait(), "copying a tensor ", tensor, " from device '", device.name(), "'");
  return {};
}

Result<RunValue> ModelRun::bring(size_t number, Stream& stream) {
  const Slot& slot = state_.slots[number];
  if (slot.device.buffer && &slot.device.buffer->device() == &stream.device()) return RunValue{{}, slot.device};
  TENON_TRY(value, on_host(number));
  if (stream.device().is_host() || !value->is_tensor()) return RunValue{*value, {}};
  return to_device(stream, value->tensor());
}

void ModelRun::end_step(size_t number) {
  const RunPlan::Step& step = plan_.steps[number];
  for (const size_t slot : step.dead) {
    state_.slots[slot].clear();
    state_.values[slot] = nullptr;
  }
  if (state_.placed) return;
  for (const size_t slot : step.done) {
    Slot& ended = state_.slots[slot];
    if (ended.host.is_tensor()) {
      PassedValue& seen = state_.seen[plan_.passed_of_slot[slot]];
      seen.element = ended.host.tensor().element();
      seen.dims = ended.host.tensor().dims();
    }
    ended = {};
  }
}

Result<void> ModelRun::finish_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const size_t slot = parts_.output_slots[i];
    TENON_TRY(value, on_host(slot), "output '", parts_.outputs[i].name, "'");
    if (!plan_.copied[i]) continue;  // it is already there
    // Outputs own their bytes.
    TENON_OK(copy_value(*value, outputs_[i]), "output '", parts_.outputs[i].name, "'");
  }
  for (const size_t slot : parts_.output_slots)
    if (plan_.output_of_slot[slot] != RunPlan::kNoOutput) state_.slots[slot].clear();
  return {};
}

}  // namespace tenon::detail
