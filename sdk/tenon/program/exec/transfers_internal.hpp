// Inside the room: transfers that run concurrently with the program.
//
// Each worker has a queue. Its jobs are taken in order: by the thread of the engine, or by the worker itself when it
// waits. Nobody therefore waits for a transfer that nobody has begun, and a machine with one core loses only the cost
// of handing jobs over.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

// The transfers of one worker, which calls everything except run_next().
class TransferQueue {
 public:
  TransferQueue(const std::vector<Site>& sites, size_t tokens);

  // The transfer was done synchronously, or there was nothing to do.
  void done_at_once(TokenId token) { ++tokens_[static_cast<size_t>(token)].started; }
  // Enqueues the job with the current views of the frame; false when there is no room, and nothing has been done.
  bool push(const Site& site, Frame& frame);
  // Waits for the oldest transfer of the token; returns the result of its copy.
  Result<void> wait(TokenId token);
  // At the end of a run: drops jobs that nobody has begun, and waits for the rest.
  void reset();

  // Runs the first job that nobody has taken; false when there is none. Thread-safe.
  bool run_next();
  bool has_work() const { return taken_.load() < pushed_.load(); }

 private:
  static constexpr uint64_t kJobs = 16;
  struct Job {
    const Site* site = nullptr;
    std::array<BufferView, 3> views;
    std::array<DimView, 3 * kMaxRank> dims;
    std::vector<int64_t> parameters;
    std::optional<Error> error;
    bool free = true;               // its wait is over
    std::atomic<uint64_t> done{0};  // one plus the number of the last job that finished in this slot
  };
  // Transfers of a token are counted; jobs[k mod kJobs] is the job of the k-th, if it is one.
  struct Token {
    uint64_t started = 0, ended = 0;
    struct Entry {
      uint64_t transfer = UINT64_MAX, job = 0;
    };
    std::array<Entry, kJobs> jobs;
  };
  Job& job(uint64_t number) { return (*jobs_)[number % kJobs]; }
  void run(uint64_t number);

  std::unique_ptr<std::array<Job, kJobs>> jobs_;  // some 27 KB; null without tokens, as most programs are
  std::vector<Token> tokens_;
  std::atomic<uint64_t> pushed_{0}, taken_{0};
};

// One thread for the queues of all workers. It sleeps when there has been no work for a while.
class TransferEngine {
 public:
  explicit TransferEngine(std::vector<TransferQueue*> queues);
  ~TransferEngine();
  // Announces a job. Cheap while the thread is awake.
  void wake();

 private:
  void work();
  bool has_work() const;

  std::vector<TransferQueue*> queues_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> sleeps_{false}, stop_{false};
  std::thread thread_;
};

}  // namespace tenon::program::detail
