// A pool of threads with a parallel loop. The calling thread works too, so a pool of n has n - 1 threads of its own.
#pragma once
#include <memory>

#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>

namespace tenon {

class TENON_API ThreadPool final : public ParallelFor {
 public:
  explicit ThreadPool(int threads);  // at least 1; 0: as many as the process may use (affinity, cgroup quota)
  ~ThreadPool() override;
  // The caller takes the first range. Each thread begins with adjacent ranges, the same ones in each loop of the same
  // size, so that its caches are reused, and continues with ranges that others have left. Nested calls run serially on
  // their thread; calls from several threads share the workers. No heap allocation.
  void run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  // Threads spin for 100 us looking for work. Sharing a loop with spinning threads takes less than a microsecond,
  // waking one takes 10 to 100. Where a caller runs short loops repeatedly, threads are woken for those that follow.
  void run_short(int64_t count, int64_t grain, int64_t waking_grain,
                 const std::function<void(int64_t, int64_t)>& body) override;
  int threads() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The pool of the process, made at first use, with TENON_THREADS threads, else as many as the process may use.
TENON_API ParallelFor& default_pool();

}  // namespace tenon
