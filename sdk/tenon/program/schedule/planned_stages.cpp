#include <tenon/program/schedule/planned_stages_internal.hpp>

namespace tenon::program::detail {

namespace {

// Removes the author's loops and placements.
void clear_schedule(PipelineData& data) {
  for (StageSpec& spec : data.stages) spec.loops.clear(), spec.compute_at.reset();
  for (BufferSpec& spec : data.buffers) spec.store_at.reset();
}

}  // namespace

PlannedStages::PlannedStages(const PipelineData& data) : bare_(data) { clear_schedule(bare_); }

Result<std::unique_ptr<PlannedStages>> PlannedStages::of(const PipelineData& data, const std::vector<BufferRef>& inputs,
                                                         const std::vector<BufferRef>& outputs,
                                                         const SymbolValues& sizes, const CostModel& model) {
  if (model.workers < 1 || !(model.workers_of_largest > 0))
    return error(Code::invalid_argument, "a cost model of ", model.workers, " workers, of which ",
                 model.workers_of_largest, " have all that the largest memory gives: both are to be above 0");
  std::unique_ptr<PlannedStages> made(new PlannedStages(data));
  TENON_TRY(plan, plan_unscheduled(made->bare_, inputs, outputs, made->options_));
  made->plan_.emplace(std::move(plan));
  TENON_TRY(numbers, measure_stages(*made->plan_, sizes));
  made->numbers_ = std::move(numbers);
  made->scheduler_.emplace(*made->plan_, made->numbers_, model);
  made->workers_ = model.workers;
  if (model.workers > 1) {
    made->one_worker_ = model;
    made->one_worker_.workers = 1;
    made->serial_.emplace(*made->plan_, made->numbers_, made->one_worker_);
  }
  return made;
}

std::vector<Group> PlannedStages::stated(const PipelineData& data, const SymbolValues& sizes) const {
  std::vector<Group> made = scheduler_->stated(data, sizes);
  if (!serial_) return made;
  // Groups that workers do not share have the largest memory to themselves.
  const std::vector<Group> serial = serial_->stated(data, sizes);
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i].bands.dim < 0) made[i] = serial[i];
  return made;
}

std::vector<Group> PlannedStages::best() const {
  std::vector<Group> made = scheduler_->best();
  if (!serial_) return made;
  std::vector<Group> serial = serial_->best();
  return total(serial).seconds() <= total(made).seconds() ? serial : made;
}

std::vector<std::vector<Group>> PlannedStages::of_each_kind(double most_times, size_t most) const {
  std::vector<std::vector<Group>> made = scheduler_->of_each_kind(most_times, most);
  if (!serial_) return made;
  std::vector<Group> serial = serial_->best();
  const double seconds = total(serial).seconds();
  const bool first = seconds <= total(made.front()).seconds();
  const auto is_serial = [&](const std::vector<Group>& other) {
    return std::ranges::equal(serial, other, &Group::is_same_schedule);
  };
  if (std::ranges::any_of(made, is_serial) || (most < 2 && !first)) return made;
  if (made.size() >= std::max<size_t>(most, 1)) made.pop_back();
  const auto is_dearer = [&](const std::vector<Group>& other) { return total(other).seconds() > seconds; };
  const auto at = first ? made.begin() : std::find_if(made.begin() + 1, made.end(), is_dearer);
  made.insert(at, std::move(serial));
  return made;
}

std::vector<Group> PlannedStages::with_hints_to_try(std::vector<Group> groups) {
  for (Group& g : groups)
    if (g.far == Far::plain && g.hints_may_help) g.far = Far::fetched;
  return groups;
}

std::string PlannedStages::describe(const Group& g) const {
  std::string out =
      str(plan_->spec(plan_->order[g.last]).name, ": ", g.last - g.first + 1, g.first == g.last ? " stage" : " stages");
  const std::string bands = g.bands.dim < 0 ? ""
                                            : str(", in bands of ", static_cast<int64_t>(g.bands.indices), " over ",
                                                  scheduler_->index_name(g.bands.dim, g.last));
  if (g.strips.loops.empty()) return out + " as a whole" + bands;
  for (const Strips::Loop& loop : g.strips.loops)
    out += str(&loop == g.strips.loops.data() ? " over " : ", ", scheduler_->index_name(loop.dim, g.last),
               " in steps of ", scheduler_->step_of(loop, g.last));
  return out + bands +
         str(", ", static_cast<int64_t>(g.window_bytes), " bytes of windows",
             g.far != Far::plain ? ", the next iteration's far memory fetched" : "",
             g.far == Far::non_temporal ? ", non-temporal results" : "");
}

std::vector<std::string> PlannedStages::describe(const std::vector<Group>& groups) const {
  std::vector<std::string> out;
  for (const Group& g : groups) out.push_back(describe(g));
  return out;
}

void PlannedStages::apply(const std::vector<Group>& groups, PipelineData& data) const {
  clear_schedule(data);
  for (const Group& g : groups) {
    StageSpec& spec = data.stages[static_cast<size_t>(plan_->order[g.last])];
    spec.compute_at = LoopName{};
    for (const Strips::Loop& loop : g.strips.loops)
      spec.loops.push_back({Expr::symbol(scheduler_->index_name(loop.dim, g.last)), scheduler_->step_of(loop, g.last)});
    if (g.bands.dim >= 0)
      spec.loops.push_back(
          {Expr::symbol(scheduler_->index_name(g.bands.dim, g.last)), static_cast<int64_t>(g.bands.indices), workers_});
    if (g.far != Far::plain) spec.loops.front().ahead = 1;
    if (g.far == Far::non_temporal) spec.loops.front().non_temporal = true;
  }
}

}  // namespace tenon::program::detail
