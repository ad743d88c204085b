#include <algorithm>

#include <tenon/program/schedule/candidates_internal.hpp>

namespace tenon::program::detail {

SymbolValues sizes_of(const Arguments& arguments) {
  SymbolValues sizes = arguments.scalars;
  for (const auto& [name, buffer] : arguments.buffers)
    for (size_t d = 0; d < buffer.dims.size(); ++d) {
      const DimView& dim = buffer.dims[d];
      const auto at = static_cast<int>(d);
      sizes[std::string(min_of(name, at).name())] = dim.min;
      sizes[std::string(extent_of(name, at).name())] = dim.extent;
      sizes[std::string(stride_of(name, at).name())] = dim.stride;
      sizes[std::string(fold_of(name, at).name())] = dim.fold;
    }
  return sizes;
}

Candidates::Candidates(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                       const std::vector<BufferRef>& outputs, const Arguments& arguments)
    : pipeline_(PipelineData::of(pipeline).name), inputs_(inputs), outputs_(outputs), shapes_(arguments) {
  PipelineData::of(pipeline_) = PipelineData::of(pipeline);
}

Result<Candidates> Candidates::of(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                  const std::vector<BufferRef>& outputs, const Arguments& arguments,
                                  const CostModel& model, double most_times, size_t most) {
  Candidates made(pipeline, inputs, outputs, arguments);
  TENON_TRY(stages, PlannedStages::of(PipelineData::of(pipeline), inputs, outputs, sizes_of(arguments), model));
  made.stages_ = std::move(stages);
  made.schedules_ = made.stages_->of_each_kind(most_times, std::max<size_t>(most, 1));
  return made;
}

double Candidates::predicted_seconds(size_t which) const { return total(schedules_[which]).seconds(); }
std::vector<std::string> Candidates::describe(size_t which) const { return stages_->describe(schedules_[which]); }

Result<Program> Candidates::build(const std::vector<Group>& groups) {
  apply(groups, pipeline_);
  return pipeline_.build(inputs_, outputs_);
}

Result<Program> Candidates::whole() { return build({}); }

Result<BoundProgram> Candidates::bind(size_t which, BindOptions options) {
  TENON_TRY(program, build(schedules_[which]));
  options.hints = HintPolicy::always;
  return BoundProgram::bind(program, shapes_, options);
}

void Candidates::apply(const std::vector<Group>& groups, Pipeline& pipeline) const {
  stages_->apply(groups, PipelineData::of(pipeline));
}

}  // namespace tenon::program::detail
