#include <algorithm>

#include <tenon/model/compiled_model_internal.hpp>
#include <tenon/model/model_run_internal.hpp>

namespace tenon {

CompiledModel::CompiledModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompiledModel::~CompiledModel() = default;

Result<std::unique_ptr<CompiledModel>> CompiledModel::assemble(Parts parts) {
  TENON_TRY(plan, detail::RunPlan::of(parts));
  return std::unique_ptr<CompiledModel>(new CompiledModel(std::make_unique<Impl>(std::move(parts), std::move(plan))));
}

const std::vector<ValueInfo>& CompiledModel::inputs() const { return impl_->parts.inputs; }
const std::vector<ValueInfo>& CompiledModel::outputs() const { return impl_->parts.outputs; }
const PlacementReport& CompiledModel::placement() const { return impl_->parts.placement; }
const std::vector<CompiledModel::Segment>& CompiledModel::segments() const { return impl_->parts.segments; }
const CompiledModel::Parts& CompiledModel::parts() const { return impl_->parts; }

// The memory lent to segments is in the arena of the states once that is known.
size_t CompiledModel::Impl::own_bytes(size_t segment, size_t bytes) const {
  const HostRun* at_once = plan.steps[segment].at_once;
  if (!at_once || states.arena_bytes() == 0) return bytes;
  return bytes - std::min(bytes, at_once->lendable_bytes());
}

size_t CompiledModel::arena_bytes() const {
  size_t bytes = impl_->states.arena_bytes();
  for (size_t s = 0; s < segments().size(); ++s) bytes += impl_->own_bytes(s, segments()[s].executable->arena_bytes());
  return bytes;
}
size_t CompiledModel::arena_lower_bound_bytes() const {
  size_t bytes = impl_->states.arena_lower_bound_bytes();
  for (size_t s = 0; s < segments().size(); ++s)
    bytes += impl_->own_bytes(s, segments()[s].executable->arena_lower_bound_bytes());
  return bytes;
}

Result<void> CompiledModel::Impl::check_given(std::span<const Datum> inputs, size_t outputs) const {
  if (inputs.size() != parts.inputs.size())
    return error(Code::invalid_argument, "model '", parts.name, "' has ", parts.inputs.size(), " inputs, ",
                 inputs.size(), " are given");
  if (outputs != parts.outputs.size())
    return error(Code::invalid_argument, "model '", parts.name, "' has ", parts.outputs.size(), " outputs, places for ",
                 outputs, " are given");
  if (plan.input_check) TENON_OK(plan.input_check->inputs(inputs), "model '", parts.name, "'");
  return {};
}

Result<void> CompiledModel::Impl::run(std::span<const Datum> inputs, std::span<Datum> outputs,
                                      const RunOptions& options) {
  TENON_TRY(state, states.acquire(inputs));
  TENON_OK(detail::ModelRun(parts, plan, *state, inputs, outputs, options).run(), "running model '", parts.name, "'");
  // Streams of a failed run may hold work or an error: its state is not used again.
  states.release(std::move(state));
  return {};
}

Result<std::vector<Datum>> CompiledModel::run(std::span<const Datum> inputs, const RunOptions& options) const {
  std::vector<Datum> outputs(impl_->parts.outputs.size());
  TENON_OK(impl_->check_given(inputs, outputs.size()));
  impl_->spare.take(outputs);
  TENON_OK(impl_->run(inputs, outputs, options));
  impl_->spare.keep(outputs);
  return outputs;
}

Result<void> CompiledModel::run_into(std::span<const Datum> inputs, std::span<Datum> outputs,
                                     const RunOptions& options) const {
  TENON_OK(impl_->check_given(inputs, outputs.size()));
  return impl_->run(inputs, outputs, options);
}

std::future<Result<std::vector<Datum>>> CompiledModel::run_async(std::vector<Datum> inputs, RunOptions options) const {
  return std::async(std::launch::async, [this, inputs = std::move(inputs), options] { return run(inputs, options); });
}

}  // namespace tenon
