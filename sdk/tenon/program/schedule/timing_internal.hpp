// Inside of the room: what measurements of this machine share.
#pragma once
#include <time.h>

#include <algorithm>

#include <tenon/support/result.hpp>

namespace tenon::program::detail {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Seconds of run() as it takes when it has run before. What goes past the caches takes its lines out of them, so that
// the next run of something else on that memory waits for each of them, up to 1.4 times as long, and the two runs after
// that for some: run() is called until it gets no faster. It returns seconds, or an error.
template <class Run>
Result<double> settled_seconds(const Run& run) {
  constexpr int kMostRuns = 5;
  constexpr double kFaster = 0.97;
  TENON_TRY(least, run());
  for (int i = 1; i < kMostRuns; ++i) {
    TENON_TRY(seconds, run());
    const bool faster = seconds < kFaster * least;
    least = std::min(least, seconds);
    if (!faster) break;
  }
  return least;
}

}  // namespace tenon::program::detail
