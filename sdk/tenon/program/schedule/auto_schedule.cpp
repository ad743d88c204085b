#include <tenon/program/schedule/auto_schedule.hpp>

#include <tenon/program/schedule/planned_stages_internal.hpp>

namespace tenon::program {

using detail::PlannedStages;

Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                     const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                     const CostModel& model) {
  PipelineData& data = PipelineData::of(pipeline);
  TENON_TRY(stages, PlannedStages::of(data, inputs, outputs, sizes, model), "scheduling '", data.name, "'");
  const std::vector<detail::Group> groups = stages->best();
  ScheduleReport report{.automatic = detail::total(groups),
                        .by_hand = detail::total(stages->stated(data, sizes)),
                        .groups = stages->describe(groups)};
  stages->apply(PlannedStages::with_hints_to_try(groups), data);
  return report;
}

Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                   const CostModel& model) {
  const PipelineData& data = PipelineData::of(pipeline);
  TENON_TRY(stages, PlannedStages::of(data, inputs, outputs, sizes, model), "the cost of '", data.name, "'");
  return detail::total(stages->stated(data, sizes));
}

}  // namespace tenon::program
