// Inside of the room: what a model consists of.
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
  // One for each input and output, and of inputs what segments do not check.
  Result<void> check_given(std::span<const Datum> inputs, size_t outputs) const;
  // Of what has been checked.
  Result<void> run(std::span<const Datum> inputs, std::span<Datum> outputs, const RunOptions& options);
};

}  // namespace tenon
