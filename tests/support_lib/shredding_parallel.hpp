// A worst-case parallel loop: ranges as small as allowed or smaller, in reverse order.
#pragma once
#include <algorithm>
#include <functional>

#include <tenon/support/parallel.hpp>

namespace tenon::testing {

// Ignores the grain, so that small tensors are divided, too: results must not depend on where a range begins.
class ShreddingParallel final : public ParallelFor {
 public:
  // `threads`: the number of threads that it reports.
  explicit ShreddingParallel(int64_t piece, int threads = 1) : piece_(piece), threads_(threads) {}
  void run(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    ++loops;
    for (int64_t end = count; end > 0; end -= piece_) body(std::max<int64_t>(0, end - piece_), end);
  }
  int threads() const override { return threads_; }

  int loops = 0;  // that ran

 private:
  int64_t piece_;
  int threads_;
};

}  // namespace tenon::testing
