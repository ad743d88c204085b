// Inside the room: the schedules that a model offers for a pipeline at given sizes, to be run and compared.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/schedule/planned_stages_internal.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program::detail {

// The symbols of the arguments' bounds, strides and folds, and the scalars.
SymbolValues sizes_of(const Arguments& arguments);

class TENON_API Candidates {
 public:
  // At most `most` (at least one), whose predicted time is at most `most_times` that of the cheapest. The first one is
  // that of auto_schedule(), the others are sorted by predicted time. `model` outlives them; the pipeline is copied.
  static Result<Candidates> of(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                               const std::vector<BufferRef>& outputs, const Arguments& arguments,
                               const CostModel& model, double most_times, size_t most);

  size_t size() const { return schedules_.size(); }
  double predicted_seconds(size_t which) const;
  // See ScheduleReport: different schedules have different lines.
  std::vector<std::string> describe(size_t which) const;
  const std::vector<Group>& groups(size_t which) const { return schedules_[which]; }

  // The program without loops.
  Result<Program> whole();
  // Bound to the shapes of the arguments. Runs follow hints: with and without them are different candidates.
  Result<BoundProgram> bind(size_t which, BindOptions options);
  // Replaces loops and placements of all stages of the pipeline from which these were made.
  void apply(const std::vector<Group>& groups, Pipeline& pipeline) const;

 private:
  Candidates(const Pipeline& pipeline, const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
             const Arguments& arguments);
  Result<Program> build(const std::vector<Group>& groups);

  Pipeline pipeline_;
  std::vector<BufferRef> inputs_, outputs_;
  Arguments shapes_;
  std::unique_ptr<PlannedStages> stages_;
  std::vector<std::vector<Group>> schedules_;
};

}  // namespace tenon::program::detail
