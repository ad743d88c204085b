#include "measure.hpp"

#include <algorithm>

#include <sys/resource.h>

namespace tenon::cli {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double RunTimes::rank(double share) const {
  const auto at = static_cast<size_t>(share * static_cast<double>(milliseconds.size()));
  return milliseconds[std::min(milliseconds.size() - 1, at)];
}

Result<RunTimes> time_runs(const CompiledModel& model, std::span<const Datum> inputs, int runs, ThreadPool& pool) {
  std::vector<Datum> outputs(model.outputs().size());
  TENON_OK(model.run_into(inputs, outputs, {&pool, nullptr}));
  RunTimes times;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TENON_OK(model.run_into(inputs, outputs, {&pool, nullptr}));
    times.milliseconds.push_back(milliseconds_since(start));
  }
  std::sort(times.milliseconds.begin(), times.milliseconds.end());
  return times;
}

}  // namespace tenon::cli
