// Inside the room: the contents of a model.
#pragma once
#include <utility>

#include <tenon/model/compiled_model.hpp>
#include <tenon/model/run_state_internal.hpp>
#include <tenon/model/spare_outputs_internal.hpp>

namespace tenon {

struct CompiledModel::Impl {
  Impl(Parts p, detail::RunPlan r) : parts(std::move(p)), plan(std::move(r)), states(parts, plan) {}

  const Parts parts;
  const detail::RunPlan plan;
  detail::RunStates states;
  detail::SpareOutputs spare;

  size_t own_bytes(size_t segment, size_t bytes) const;
  // Checks the number of inputs and outputs, and of inputs what segments do not check.
  Result<void> check_given(std::span<const Datum> inputs, size_t outputs) const;
  // Inputs and outputs have been checked.
  Result<void> run(std::span<const Datum> inputs, std::span<Datum> outputs, const RunOptions& options);
};

}  // namespace tenon
