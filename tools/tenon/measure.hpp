// Measurements for the commands: time and memory of this process.
#pragma once
#include <chrono>
#include <span>
#include <vector>

#include <tenon/model/compiled_model.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon::cli {

double milliseconds_since(std::chrono::steady_clock::time_point start);
// The peak memory of this process so far.
double peak_rss_mb();

struct RunTimes {
  std::vector<double> milliseconds;  // at least one, sorted
  // The time that this share of the runs, 0 to 1, did not exceed.
  double rank(double share) const;
};

// `runs` runs on the same inputs, after one that is not measured: it warms up caches, page faults, the arena, the
// outputs.
Result<RunTimes> time_runs(const CompiledModel& model, std::span<const Datum> inputs, int runs, ThreadPool& pool);

}  // namespace tenon::cli
