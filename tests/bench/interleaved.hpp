// Competitors of a benchmark in one process: each runs several times in a row, often enough for the clock's resolution,
// and all take turns.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tenon/support/result.hpp>


namespace tenon::bench {

[[noreturn, gnu::noinline, gnu::cold]] inline void give_up(const Error& error, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.to_string().c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result, const std::string& what) {
  if (!result.ok()) give_up(result.error(), what);
  return std::move(result).value();
}

// Used by calls of a few nanoseconds: only the test is inlined there.
inline void must(const Result<void>& result, const std::string& what) {
  if (!result.ok()) [[unlikely]]
    give_up(result.error(), what);
}

// One competitor, and the microseconds per call in each round.
struct Runner {
  std::string name;
  std::function<void()> run;
  std::vector<double> us = {};
  int repeats = 1;
};

// For a single thread, processor time counts, because others may use the machine meanwhile.
inline double now_us(bool processor_time) {
  timespec now{};
  clock_gettime(processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Runs once before timing, because competitors leave different data in the caches.
inline double time_us(const Runner& runner, bool processor_time) {
  runner.run();
  const double begin = now_us(processor_time);
  for (int i = 0; i < runner.repeats; ++i) runner.run();
  return (now_us(processor_time) - begin) / runner.repeats;
}

// The number of calls in half a millisecond. The first few calls say little about calls of a few nanoseconds, and
// neither does the clock, whose own time is that of a hundred of them.
inline int repeats_of(Runner runner, bool processor_time) {
  for (;;) {
    const double us = std::max(1e-4, time_us(runner, processor_time));
    if (us * runner.repeats >= 50.0 || runner.repeats >= 1000000)
      return static_cast<int>(std::clamp(500.0 / us, 1.0, 1e6));
    runner.repeats = static_cast<int>(std::clamp(100.0 / us, 2.0 * runner.repeats, 16.0 * runner.repeats));
  }
}

// `rounds` times each, at least half a millisecond at a time. In a different order in each round: one that runs after
// another that writes elsewhere finds less in the caches, by a third at 3 MB.
inline void measure(std::vector<Runner>& runners, int rounds, bool processor_time, std::mt19937& random) {
  for (Runner& runner : runners) runner.repeats = repeats_of(runner, processor_time);
  std::vector<Runner*> order;
  for (Runner& runner : runners) order.push_back(&runner);
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(order, random);
    for (Runner* runner : order) runner->us.push_back(time_us(*runner, processor_time));
  }
}

}  // namespace tenon::bench
