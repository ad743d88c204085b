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
  // The caller takes the first range. Each thread begins with ranges that lie side by side, the same ones in each loop
  // of as many, so that caches serve it again, and goes on with what others have left. Nested calls run serially on
  // their thread; calls from several threads share the workers. Takes no heap memory.
  void run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  // Threads go on looking for work for 100 us. To share a loop with those takes less than a microsecond, to wake one 10
  // to 100. Where a caller keeps having short loops, threads are woken for those that follow.
  void run_short(int64_t count, int64_t grain, int64_t waking_grain,
                 const std::function<void(int64_t, int64_t)>& body) override;
  int threads() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The pool of the process, made at first use: TENON_THREADS threads, else all that the process may use.
TENON_API ParallelFor& default_pool();

}  // namespace tenon
