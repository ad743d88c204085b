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
  // Ranges are taken dynamically. Nested calls run serially on their thread; calls from several threads share the workers.
  void run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  int threads() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The pool of the process, made at first use: TENON_THREADS threads, else all that the process may use.
TENON_API ParallelFor& default_pool();

}  // namespace tenon
