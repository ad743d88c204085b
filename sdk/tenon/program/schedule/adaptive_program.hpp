// Programs whose schedule is chosen by their runs.
//
//   TENON_TRY(program, AdaptiveProgram::bind(p, {in}, {out}, shapes, CostModel::of_machine()));
//   TENON_OK(program.run(arguments));         // any number of times, with other memory of the same shapes
//
// The candidates are those of measured_schedule(): the cheapest ones of each kind that the model offers, plain, with
// prefetching, and with non-temporal results. The first runs follow the schedule that is predicted to be the cheapest.
// From time to time, sixteen runs in a row are a trial: four with the chosen schedule and four with another one, twice,
// of which all but the first of each four are timed. If the fastest run of the other one takes less than 98% of the
// time, and two more trials show the same, it is chosen. Results are the same.
//
// Which schedule is the fastest depends on what other programs leave of the caches, and changes within minutes. Neither
// a prediction nor a measurement before the runs is right for all of them; this follows the changes. It takes some
// hundred runs until all candidates have been tried. Until then trials lengthen the runs by at most a fifth, then by at
// most 1% (2% where a second passes between trials).
//
// Use auto_schedule() where the program must be the same everywhere, and measured_schedule() where it is to be decided
// before the first run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>

namespace tenon::program {

struct AdaptOptions {
  size_t most_candidates = 32;  // each of which is bound before the first run
  double most_times = 2;  // candidates whose predicted time is at most this multiple of the cheapest one's
  // As for BoundProgram, except for hints: candidates with and without them are compared. All candidates share one
  // arena, which the program allocates unless arena_of_runs.
  BindOptions bind = {};
  // Returns seconds since any time, for trials. Empty: a steady clock.
  std::function<double()> clock = {};
};

class TENON_API AdaptiveProgram {
 public:
  struct Candidate {
    std::vector<std::string> groups;  // see ScheduleReport
    double predicted_seconds = 0;
    double relative_time = 0;  // to the chosen one, by its last trial; 0: not tried
    std::string refused;       // why it does not run: a kernel does not accept such windows
  };

  // `shapes` has dims and scalars; its data pointers are not used. Nothing is run. The pipeline keeps its own schedule.
  // Fails if no candidate can be bound.
  static Result<AdaptiveProgram> bind(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                      const std::vector<BufferRef>& outputs, const Arguments& shapes,
                                      const CostModel& model, const AdaptOptions& options = {});
  AdaptiveProgram(AdaptiveProgram&&) noexcept;
  AdaptiveProgram& operator=(AdaptiveProgram&&) noexcept;
  ~AdaptiveProgram();

  // As BoundProgram::run(). One run at a time. Runs with statistics or an observer follow the chosen schedule. Where a
  // kernel does not accept a candidate's windows, the run is repeated with the chosen schedule, and the candidate is
  // not tried again. An error is that of the chosen schedule; outputs are undefined then.
  Result<void> run(std::span<std::byte* const> buffers, const RunWith& with = {});
  Result<void> run(const Arguments& arguments);

  // The same code with an arena and trials of its own, for concurrent runs. The chosen schedule is the first one.
  Result<AdaptiveProgram> fork() const;

  // The size that RunWith::arena should have, aligned to kAlignBytes; see BoundProgram.
  int64_t lendable_bytes() const;
  // The first one is that of auto_schedule(), the others are sorted by predicted time.
  std::vector<Candidate> candidates() const;
  size_t chosen() const;
  // A line for each candidate.
  std::string to_string() const;

 private:
  struct Impl;
  explicit AdaptiveProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::program
