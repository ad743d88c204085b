// Inside of the room: what is known of all runs of a model once its parts are.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/model/compiled_model.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/runtime/value_check.hpp>
#include <tenon/runtime/value_plan.hpp>

namespace tenon::detail {

// A value that a segment makes at once on the host, and others read: not one of the caller's outputs.
struct PassedSlot {
  size_t slot = 0;
  std::optional<TensorType> type;  // where it is known before a run
  size_t first = 0, last = 0;      // segments
};

struct RunPlan {
  // Errors: parts that do not fit together, a slot that is read before it is filled.
  static Result<RunPlan> of(const CompiledModel::Parts& parts);

  struct Step {
    const HostRun* at_once = nullptr;  // null: it runs on a stream
    size_t stream = 0;                 // segments of one device share a stream, so that their order needs no events
    std::vector<size_t> dead;          // slots that nothing later reads, ...
    std::vector<size_t> done;          // ... and those of them that keep their place, if they have one
  };
  static constexpr size_t kNoOutput = SIZE_MAX;

  std::vector<Step> steps;             // by segment
  std::vector<Device*> devices;        // by stream
  std::vector<size_t> output_of_slot;  // the output that holds its value itself, or kNoOutput
  std::vector<bool> copied;            // outputs that are copies: of inputs, constants, outputs behind them
  std::vector<PassedSlot> passed;
  std::vector<size_t> passed_of_slot;  // which of these it is
  // By segment, of what those make that run on a stream. Of others, and of what is read, executables are held to it.
  std::vector<ValueCheck> made_checks;
  // Of the model's inputs, where segments do not check all of it: of some that none reads, or symbols of dims that
  // several have.
  std::optional<ValueCheck> input_check;
  bool open = false;  // some extents of segments' inputs and outputs are known from runs only

 private:
  Result<void> check_and_live(const CompiledModel::Parts& parts);
  void find_checks(const CompiledModel::Parts& parts);
  void find_outputs(const CompiledModel::Parts& parts);
  void find_steps(const CompiledModel::Parts& parts);
  void find_passed(const CompiledModel::Parts& parts);

  std::vector<bool> given_;          // slots of inputs and constants, whose bytes others hold
  std::vector<size_t> made_, last_;  // by slot: segments; of outputs, last_ is SIZE_MAX
};

}  // namespace tenon::detail
