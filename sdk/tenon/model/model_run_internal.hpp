// Inside the room: one run of a model.
#pragma once
#include <span>

#include <tenon/model/run_state_internal.hpp>

namespace tenon::detail {

class ModelRun {
 public:
  // The arguments outlive it; there are as many `inputs` and `outputs` as the model has.
  ModelRun(const CompiledModel::Parts& parts, const RunPlan& plan, RunState& state, std::span<const Datum> inputs,
           std::span<Datum> outputs, const RunOptions& options)
      : parts_(parts), plan_(plan), state_(state), inputs_(inputs), outputs_(outputs), options_(options) {}
  Result<void> run();

 private:
  using Segment = CompiledModel::Segment;

  Result<void> run_at_once(size_t number);
  Result<void> run_on_stream(size_t number, Stream& stream);
  // Where the value of a slot is made: in the slot, or in the caller's output.
  Datum& place_of(size_t slot);
  // The value on the host, copied there when only a device has it.
  Result<const Datum*> on_host(size_t slot);
  // Copies a result of a device into `to` where that is a place for it, else into new memory.
  Result<void> fetch(Slot& slot, Datum& to);
  // The value where the device of `stream` can read it.
  Result<RunValue> bring(size_t slot, Stream& stream);
  void end_step(size_t number);
  Result<void> finish_outputs();

  const CompiledModel::Parts& parts_;
  const RunPlan& plan_;
  RunState& state_;
  std::span<const Datum> inputs_;
  std::span<Datum> outputs_;
  const RunOptions& options_;
};

}  // namespace tenon::detail
