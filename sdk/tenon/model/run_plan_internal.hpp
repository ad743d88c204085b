// Inside the room: the facts about all runs of a model that follow from its parts.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/model/compiled_model.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/runtime/value_check.hpp>
#include <tenon/runtime/value_plan.hpp>

namespace tenon::detail {

// A value that a segment computes synchronously on the host and others read, unless it is one of the caller's outputs.
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
    std::vector<size_t> dead;          // slots without later readers, ...
    std::vector<size_t> done;          // ... and those of them that keep their place, if they have one
  };
  static constexpr size_t kNoOutput = SIZE_MAX;

  std::vector<Step> steps;             // by segment
  std::vector<Device*> devices;        // by stream
  std::vector<size_t> output_of_slot;  // the output that holds its value itself, or kNoOutput
  std::vector<bool> copied;            // outputs that are copies: of inputs, constants, other outputs
  std::vector<PassedSlot> passed;
  std::vector<size_t> passed_of_slot;  // its index in `passed`
  // By segment, for results of segments that run on a stream. Other results, and what segments read, the executables
  // check.
  std::vector<ValueCheck> made_checks;
  // For the model's inputs, where segments do not check all of them: inputs that none reads, or symbols of dims that
  // several inputs share.
  std::optional<ValueCheck> input_check;
  bool open = false;  // some extents of segments' inputs and outputs are known only from runs

 private:
  Result<void> check_and_live(const CompiledModel::Parts& parts);
  void find_checks(const CompiledModel::Parts& parts);
  void find_outputs(const CompiledModel::Parts& parts);
  void find_steps(const CompiledModel::Parts& parts);
  void find_passed(const CompiledModel::Parts& parts);

  std::vector<bool> given_;          // slots of inputs and constants, whose bytes are owned elsewhere
  std::vector<size_t> made_, last_;  // by slot: segments; for outputs, last_ is SIZE_MAX
};

}  // namespace tenon::detail
