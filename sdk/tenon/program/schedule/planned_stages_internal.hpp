// Inside the room: a pipeline without its schedule, at given sizes, and schedules for it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/program/schedule/scheduler_internal.hpp>

namespace tenon::program::detail {

class PlannedStages {
 public:
  // `model` outlives it.
  static Result<std::unique_ptr<PlannedStages>> of(const PipelineData& data, const std::vector<BufferRef>& inputs,
                                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                                   const CostModel& model);

  // The cheapest for `model`, or for a single worker where that is predicted to cost less.
  std::vector<Group> best() const;
  // See Scheduler::of_each_kind; with best() as the first one, and with the cheapest for one worker.
  std::vector<std::vector<Group>> of_each_kind(double most_times, size_t most) const;
  // The schedule of `data`, the same pipeline, as its author stated it.
  std::vector<Group> stated(const PipelineData& data, const SymbolValues& sizes) const;
  // Adds hints where the model predicts that they cost more than they save, if they may help: what other programs leave
  // of the caches changes, and runs ignore hints that do not help (HintPolicy). Costs stay those of the given groups.
  static std::vector<Group> with_hints_to_try(std::vector<Group> groups);
  // A line for each group that describes its schedule completely: different schedules have different lines.
  std::vector<std::string> describe(const std::vector<Group>& groups) const;
  // Replaces loops and placements of all stages of the pipeline from which this was made.
  void apply(const std::vector<Group>& groups, PipelineData& data) const;

 private:
  explicit PlannedStages(const PipelineData& data);
  std::string describe(const Group& group) const;

  PipelineData bare_;
  const BuildOptions options_;
  std::optional<Plan> plan_;  // refers to the two members before
  PipelineNumbers numbers_;
  std::optional<Scheduler> scheduler_;  // refers to the two members before
  int64_t workers_ = 1;
  CostModel one_worker_;
  std::optional<Scheduler> serial_;  // where the model has several workers
};

}  // namespace tenon::program::detail
