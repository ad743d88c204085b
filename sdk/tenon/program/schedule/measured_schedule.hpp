// Schedules by the clock: of those that a model predicts to be cheap, the one that takes least time on this machine.
//
//   TENON_TRY(report, measured_schedule(p, {in}, {out}, arguments, CostModel::of_machine()));
//   TENON_TRY(program, p.build({in}, {out}));
//
// A model knows neither what else uses the caches nor how kernels go through memory, so that of schedules which it
// predicts alike one may take a quarter more. Here the cheapest ones of each kind (strips of rows, tiles, columns, each
// plain, fetching ahead, and with non-temporal results as well, LoopOver) are built, bound and run in turn, in
// another order each round, and those that fall behind are dropped. A turn is of a few runs: the first ones find in the
// caches what another candidate has left there, which is not what the program finds that runs again and again. That
// takes some hundred runs of the pipeline, and other schedules may come out in another process: auto_schedule() is for
// programs that are to be the same everywhere.
//
// What came out may be kept in files: later calls for the same pipeline, sizes, machine and candidates take it from
// there and run nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/support/file_cache.hpp>

namespace tenon::program {

struct MeasureOptions {
  size_t most_candidates = 24;
  double most_times = 1.6;  // candidates are predicted to take at most so many times what the cheapest does
  int rounds = 61;          // of runs, at most; those that are left after the first few are alike
  double seconds = 3;       // no round begins later than this after the first one, ...
  int fewest_rounds = 12;   // ... but so many are run however long they take
  // Seconds since any time. Empty: what the calling thread has had of a processor; with a pool, the time of day.
  std::function<double()> clock = {};
  BindOptions bind = {};             // as the program will be bound, but for statistics
  const FileCache* files = nullptr;  // null: nothing is kept
};

// TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon, folder "schedules". A file is removed to measure
// anew.
TENON_API FileCache measured_schedule_files();

struct TENON_API MeasuredReport {
  struct Candidate {
    std::vector<std::string> groups;  // see ScheduleReport
    double predicted_seconds = 0;
    double seconds = 0;   // median of its runs; 0: it has not run
    int runs = 0;         // rounds that it was timed in, each with a few runs of which the fastest counts
    std::string refused;  // why it has not run: a kernel takes no such windows
  };
  // the first one is that of auto_schedule(); from there on the cheapest predicted first
  std::vector<Candidate> candidates;
  // Of those that ran to the end the one with the least part of each round, in the median: another may have smaller
  // `seconds`, which others of the machine were in.
  size_t chosen = 0;
  bool from_files = false;  // nothing has run
  std::string to_string() const;
};

// Replaces loops and placements of all stages. `arguments`: each input, constant and output by name, and each scalar,
// as for a run of the program; outputs are overwritten, many times. Where a data pointer is null, memory of zeros is
// made. When it fails (a size is missing, no candidate runs) the pipeline is as it was. Takes time on the calling
// thread; not while other threads run what shares these buffers.
TENON_API Result<MeasuredReport> measured_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                                   const std::vector<BufferRef>& outputs, const Arguments& arguments,
                                                   const CostModel& model, const MeasureOptions& options = {});

}  // namespace tenon::program
