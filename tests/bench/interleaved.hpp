// Competitors of a benchmark in one process: each runs often enough in a row for the clock to tell, all of them in
// turns.
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

// Calls of a few nanoseconds go through it: nothing but the test stands where they are.
inline void must(const Result<void>& result, const std::string& what) {
  if (!result.ok()) [[unlikely]]
    give_up(result.error(), what);
}

// One competitor, and the microseconds that one of its calls took in each round.
struct Runner {
  std::string name;
  std::function<void()> run;
  std::vector<double> us = {};
  int repeats = 1;
};

// Of one thread what counts is its processor time: others may hold the machine meanwhile.
inline double now_us(bool processor_time) {
  timespec now{};
  clock_gettime(processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Once before it counts: competitors leave each other different caches.
inline double time_us(const Runner& runner, bool processor_time) {
  runner.run();
  const double begin = now_us(processor_time);
  for (int i = 0; i < runner.repeats; ++i) runner.run();
  return (now_us(processor_time) - begin) / runner.repeats;
}

// How often it runs in half a millisecond. What it takes the first few times says little of calls of a few nanoseconds,
// and neither does the clock, whose own time is that of a hundred of them.
inline int repeats_of(Runner runner, bool processor_time) {
  for (;;) {
    const double us = std::max(1e-4, time_us(runner, processor_time));
    if (us * runner.repeats >= 50.0 || runner.repeats >= 1000000)
      return static_cast<int>(std::clamp(500.0 / us, 1.0, 1e6));
    runner.repeats = static_cast<int>(std::clamp(100.0 / us, 2.0 * runner.repeats, 16.0 * runner.repeats));
  }
}

// `rounds` times each, at least half a millisecond a time. In another order each round: who runs behind one that writes
// elsewhere finds less in the caches, by a third at 3 MB.
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
