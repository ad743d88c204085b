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
  // Calls body(begin, end) on disjoint ranges that cover [0, count), each of at least `grain` except the last. Returns
  // when all calls have returned; their writes happen before the return. Bodies must not throw. May be called from
  // several threads at once, and from inside a body, where it runs serially.
  virtual void run(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body) = 0;
  // The same for loops of a few microseconds: ranges of at least `grain` are shared with threads that are awake, ranges
  // of at least `waking_grain` (>= grain) with sleeping threads as well. Anything smaller is one range.
  virtual void run_short(int64_t count, int64_t grain, int64_t waking_grain,
                         const std::function<void(int64_t begin, int64_t end)>& body) {
    run(count, std::max(grain, waking_grain), body);
  }
  virtual int threads() const = 0;
};

// Runs on the calling thread.
TENON_API ParallelFor& serial();

}  // namespace tenon
