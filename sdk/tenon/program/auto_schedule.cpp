#include <tenon/program/auto_schedule.hpp>

#include <tenon/program/scheduler_internal.hpp>

namespace tenon::program {

namespace detail {
namespace {

PredictedCost total(const std::vector<Group>& groups) {
  PredictedCost out;
  for (const Group& g : groups) {
    out.memory_seconds += g.cost.memory_seconds;
    out.dispatch_seconds += g.cost.dispatch_seconds;
    out.redundant_seconds += g.cost.redundant_seconds;
  }
  return out;
}

std::string describe(const Plan& plan, const Scheduler& scheduler, const Group& g) {
  std::string out =
      str(plan.spec(plan.order[g.last]).name, ": ", g.last - g.first + 1, g.first == g.last ? " stage" : " stages");
  if (g.strips.loops.empty()) return out + " as a whole";
  for (const Strips::Loop& loop : g.strips.loops)
    out += str(&loop == g.strips.loops.data() ? " over " : ", ", scheduler.index_name(loop, g.last), " in steps of ",
               scheduler.step_of(loop, g.last));
  return out + str(", ", static_cast<int64_t>(g.window_bytes), " bytes of windows",
                   g.ahead ? ", the next iteration's far memory fetched" : "");
}

// Without the author's loops and places.
void clear_schedule(PipelineData& data) {
  for (StageSpec& spec : data.stages) spec.loops.clear(), spec.compute_at.reset();
  for (BufferSpec& spec : data.buffers) spec.store_at.reset();
}
PipelineData without_schedule(const PipelineData& data) {
  PipelineData bare = data;
  clear_schedule(bare);
  return bare;
}

void apply(PipelineData& data, const Plan& plan, const Scheduler& scheduler, const std::vector<Group>& groups) {
  clear_schedule(data);
  for (const Group& g : groups) {
    StageSpec& spec = data.stages[static_cast<size_t>(plan.order[g.last])];
    spec.compute_at = LoopName{};
    for (const Strips::Loop& loop : g.strips.loops)
      spec.loops.push_back({Expr::symbol(scheduler.index_name(loop, g.last)), scheduler.step_of(loop, g.last)});
    if (g.ahead) spec.loops.front().ahead = 1;
  }
}

}  // namespace
}  // namespace detail

Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                     const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                     const CostModel& model) {
  PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = detail::without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "scheduling '", data.name, "'");
  TENON_TRY(numbers, detail::measure_stages(plan, sizes), "scheduling '", data.name, "'");
  const detail::Scheduler scheduler(plan, numbers, model);
  ScheduleReport report;
  report.by_hand = detail::total(scheduler.stated(data, sizes));
  const std::vector<detail::Group> groups = scheduler.best();
  report.automatic = detail::total(groups);
  for (const detail::Group& g : groups) report.groups.push_back(detail::describe(plan, scheduler, g));
  detail::apply(data, plan, scheduler, groups);
  return report;
}

Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                   const CostModel& model) {
  const PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = detail::without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "the cost of '", data.name, "'");
  TENON_TRY(numbers, detail::measure_stages(plan, sizes), "the cost of '", data.name, "'");
  return detail::total(detail::Scheduler(plan, numbers, model).stated(data, sizes));
}

}  // namespace tenon::program
