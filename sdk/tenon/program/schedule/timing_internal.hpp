// Inside the room: helpers shared by measurements of this machine.
#pragma once
#include <time.h>

#include <algorithm>
#include <vector>

#include <tenon/support/median.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program::detail {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The steady-state time of run() in seconds. After another schedule has run, the caches hold its data, or have lost
// data to results that were streamed past them; the next runs on the same memory recover, each perhaps only a little
// faster than the one before. run() is therefore repeated until so many runs in a row are no faster than the fastest so
// far. With a single warm-up run, which is enough for a look, the same two schedules compared 1.03 among five and 1.28
// as two. run() returns seconds, or an error.
constexpr int kLook = 1, kSettled = 3;
template <class Run>
Result<double> settled_seconds(const Run& run, int enough = kSettled) {
  constexpr int kMostRuns = 12;
  constexpr double kFaster = 0.99;
  TENON_TRY(least, run());
  for (int i = 1, as_slow = 0; i < kMostRuns && as_slow < enough; ++i) {
    TENON_TRY(seconds, run());
    as_slow = seconds < kFaster * least ? 0 : as_slow + 1;
    least = std::min(least, seconds);
  }
  return least;
}

// For times of several candidates in the same rounds, seconds[which][round]: the median share of a round for each. A
// disturbance of a whole round, such as by other guests of the machine, changes no share, but would change the order of
// median times.
inline std::vector<double> parts_of_rounds(const std::vector<std::vector<double>>& seconds) {
  std::vector<std::vector<double>> parts(seconds.size());
  for (size_t round = 0; round < seconds.front().size(); ++round) {
    double all = 0;
    for (const std::vector<double>& of_one : seconds) all += of_one[round];
    for (size_t i = 0; i < seconds.size(); ++i) parts[i].push_back(all > 0 ? seconds[i][round] / all : 0);
  }
  std::vector<double> out;
  for (std::vector<double>& of_one : parts) out.push_back(median(std::move(of_one)));
  return out;
}

}  // namespace tenon::program::detail
