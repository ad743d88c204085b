// A clock that runs only while this process runs. While the process is stopped, by a signal or together with its
// machine, the processes that it waits for are mostly stopped, too, so that time must not count against them.
#pragma once
#include <algorithm>
#include <chrono>

namespace tenon {

class RunningTime {
 public:
  using Span = std::chrono::milliseconds;
  // A waiting caller must read the time at least this often; a gap between two readings counts as at most twice this.
  static constexpr Span kMostStep{100};

  // Running time since construction.
  Span now() {
    const auto real = std::chrono::steady_clock::now();
    const Span step = std::chrono::duration_cast<Span>(real - last_);
    // The remainder of a millisecond counts towards the next reading.
    last_ += step;
    return counted_ += std::min(step, 2 * kMostStep);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  Span counted_{0};
};

}  // namespace tenon
