// Inside of the room: what measurements of this machine share.
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

// Seconds of run() as it takes when it has run before. What another schedule leaves in the caches, or has taken out of
// them by results that went past, is waited for by the next runs on that memory, each of which may be but a little
// faster than the one before: run() is called until so many runs in a row are no faster than the fastest so far. With a
// first one alone, which is enough for a look, the same two schedules compared 1.03 among five and 1.28 as two. It
// returns seconds, or an error.
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

// Of what several took in the same rounds, seconds[which][round]: the median part of a round that each one has. What
// slows down a whole round, as other guests of a machine do, changes no part; of medians of times it changes the order.
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
