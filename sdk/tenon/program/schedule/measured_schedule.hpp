// Measured schedules: among the schedules that a model predicts to be cheap, the fastest one on this machine.
//
//   TENON_TRY(report, measured_schedule(p, {in}, {out}, arguments, CostModel::of_machine()));
//   TENON_TRY(program, p.build({in}, {out}));
//
// A model knows neither what else uses the caches nor how kernels traverse memory, so among schedules with equal
// predictions one may take a quarter longer. Here the cheapest ones of each kind (strips of rows, tiles, columns, each
// plain, with prefetching, and with non-temporal results as well, LoopOver) are built, bound and run in turn, in
// another order each round, and those that fall behind are dropped. A turn consists of a few runs: the first ones find
// in the caches what another candidate has left there, which differs from the state in which the program runs
// repeatedly. This takes some hundred runs of the pipeline, and another process may choose another schedule:
// auto_schedule() is for programs that must be the same everywhere.
//
// The choice may be kept in files: later calls for the same pipeline, sizes, machine and candidates take it from there
// and run nothing.
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
  size_t most_candidates = 32;
  double most_times = 2;  // candidates whose predicted time is at most this multiple of the cheapest one's
  int rounds = 61;          // of runs, at most; the candidates that remain after the first few are nearly equal
  double seconds = 3;       // no round begins later than this after the first one, ...
  int fewest_rounds = 12;   // ... but at least this many rounds are run however long they take
  // Returns seconds since any time. Empty: the processor time of the calling thread; with a pool, wall-clock time.
  std::function<double()> clock = {};
  BindOptions bind = {};             // as the program will be bound, except for statistics and hints
  const FileCache* files = nullptr;  // null: nothing is kept
};

// TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon, folder "schedules". Remove a file to measure anew.
TENON_API FileCache measured_schedule_files();

struct TENON_API MeasuredReport {
  struct Candidate {
    std::vector<std::string> groups;  // see ScheduleReport
    double predicted_seconds = 0;
    double seconds = 0;   // median of its runs; 0: it has not run
    int runs = 0;         // rounds in which it was timed, each with a few runs of which the fastest counts
    std::string refused;  // why it has not run: a kernel does not accept such windows
  };
  // The first one is that of auto_schedule(); the others are sorted by predicted time.
  std::vector<Candidate> candidates;
  // Among those that ran to the end, and whose median share of a round is within 5% of the least, the one that is
  // predicted to be the cheapest. Another may have smaller `seconds`, which other processes have influenced. If it is
  // one without prefetching, the pipeline nevertheless gets hints where they may help later: runs ignore them as long
  // as they do not (HintPolicy, bound_program.hpp).
  size_t chosen = 0;
  bool from_files = false;  // nothing was run
  std::string to_string() const;
};

// Replaces loops and placements of all stages. `arguments`: each input, constant and output by name, and each scalar,
// as for a run of the program; outputs are overwritten many times. Where a data pointer is null, zero-filled memory is
// used. If it fails (a size is missing, no candidate runs), the pipeline is unchanged. Takes time on the calling
// thread; no other thread may use these buffers meanwhile.
TENON_API Result<MeasuredReport> measured_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                                   const std::vector<BufferRef>& outputs, const Arguments& arguments,
                                                   const CostModel& model, const MeasureOptions& options = {});

}  // namespace tenon::program
