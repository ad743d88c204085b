// How commands measure: time and memory of this process.
#pragma once
#include <chrono>
#include <span>
#include <vector>

#include <tenon/model/compiled_model.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon::cli {

double milliseconds_since(std::chrono::steady_clock::time_point start);
// Most memory that this process has had in use so far.
double peak_rss_mb();

struct RunTimes {
  std::vector<double> milliseconds;  // at least one, sorted
  // The time that such a share of runs, 0 to 1, did not need more than.
  double rank(double share) const;
};

// So many runs on the same inputs, behind one that is not measured: caches, page faults, the arena, the outputs.
Result<RunTimes> time_runs(const CompiledModel& model, std::span<const Datum> inputs, int runs, ThreadPool& pool);

}  // namespace tenon::cli
