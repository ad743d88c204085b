// An abstract parallel loop, so that rooms below the runtime can use threads they do not own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

#include <tenon/support/export.hpp>

namespace tenon {

class TENON_API ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  // Calls body(begin, end) on disjoint ranges that cover [0, count), each at least `grain` long but for the last.
  // Returns when all have returned. Writes made by the body are visible to the caller afterwards. Bodies must not
  // throw. May be called from several threads at once and from inside a body (then it runs serially).
  virtual void run(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body) = 0;
  // The same for loops of a few microseconds: ranges of `grain` are worth sharing with threads that are awake, those of
  // `waking_grain`, as much or more, with threads that sleep as well. What is worth neither is one range.
  virtual void run_short(int64_t count, int64_t grain, int64_t waking_grain,
                         const std::function<void(int64_t begin, int64_t end)>& body) {
    run(count, std::max(grain, waking_grain), body);
  }
  virtual int threads() const = 0;
};

// Runs on the calling thread.
TENON_API ParallelFor& serial();

}  // namespace tenon
