// Time in which this process runs. While it is stopped, by a signal or with its machine, those it waits for mostly are,
// too: that is no time of theirs.
#pragma once
#include <algorithm>
#include <chrono>

namespace tenon {

class RunningTime {
 public:
  using Span = std::chrono::milliseconds;
  // Whoever waits asks for the time once in so long, at least: two of these are the most that counts between.
  static constexpr Span kMostStep{100};

  // Since this was made.
  Span now() {
    const auto real = std::chrono::steady_clock::now();
    const Span step = std::chrono::duration_cast<Span>(real - last_);
    // The rest of a millisecond counts with the next.
    last_ += step;
    return counted_ += std::min(step, 2 * kMostStep);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  Span counted_{0};
};

}  // namespace tenon
