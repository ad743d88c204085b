// Inside the room: the virtual machine that runs the code of a bound program.
#pragma once
#include <atomic>
#include <mutex>

#include <tenon/program/exec/bound_code_internal.hpp>
#include <tenon/program/exec/run_trials_internal.hpp>
#include <tenon/program/exec/statistics_internal.hpp>
#include <tenon/program/exec/transfers_internal.hpp>
#include <tenon/program/ir/settled.hpp>
#include <tenon/support/parallel.hpp>

namespace tenon::program::detail {

// State shared by the workers of a loop.
struct WorkerLoop {
  const LoopCode* code = nullptr;
  int64_t begin = 0, step = 1, iterations = 0, workers = 1;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  int64_t failed_iteration = INT64_MAX;
  std::optional<Error> error;

  void fail(int64_t iteration, Error e);
};

// The completed stages of the iterations in flight. Iteration i uses row i mod workers after all iterations up to i -
// workers have ended, so the numbers in a row only grow.
class Progress {
 public:
  Progress(int64_t workers, int stages);
  void reset();
  // Waits until all iterations up to `iteration` - workers have ended; false when the loop has failed meanwhile.
  bool enter(int64_t iteration, const WorkerLoop& loop) const;
  void signal(int64_t iteration, int stage) { cell(iteration, stage).store(iteration, std::memory_order_release); }
  void end(int64_t iteration) { cell(iteration, stages_).store(iteration, std::memory_order_release); }
  // Waits until all earlier iterations have signalled the stage or ended.
  bool await(int64_t iteration, int stage, const WorkerLoop& loop) const;

 private:
  struct alignas(64) Cell {
    std::atomic<int64_t> iteration = -1;
  };
  std::atomic<int64_t>& cell(int64_t iteration, int stage) {
    return cells_[static_cast<size_t>((iteration % workers_) * (stages_ + 1) + stage)].iteration;
  }
  int64_t seen(int64_t iteration, int stage) const {
    return cells_[static_cast<size_t>((iteration % workers_) * (stages_ + 1) + stage)].iteration.load(
        std::memory_order_acquire);
  }

  int64_t workers_;
  int stages_;
  std::vector<Cell> cells_;
};

class Machine {
 public:
  // `code` outlives the machine.
  static Result<std::unique_ptr<Machine>> make(const Program& program, const BoundCode& code,
                                               const BindOptions& options);
  Result<void> run(std::span<std::byte* const> buffers, const RunWith& with);
  // The calls of a run with these buffers, if it consists only of calls that can be settled (program/ir/settled.hpp);
  // valid until the machine runs or settles again. Otherwise empty.
  Result<std::vector<SettledCall>> settle(std::span<std::byte* const> buffers, const RunWith& with);
  int64_t lendable_bytes() const { return lendable_bytes_; }
  bool follows_hints() const { return code_.has_hints && (!trials_ || trials_->chosen() == kFollowsHints); }

 private:
  // An executing worker: a frame, and its position in the loop of several workers.
  struct Worker {
    explicit Worker(const ByteCode& code) : frame(code), transfers(code.sites, code.tokens.size()) {}
    Frame frame;
    TransferQueue transfers;
    WorkerLoop* loop = nullptr;  // with several workers; null outside of one
    Progress* progress = nullptr;
    int64_t iteration = 0;
    std::optional<Error> error;
  };

  Machine(const Program& program, const BoundCode& bound, const BindOptions& options);
  // Sets the memory and threads of the run.
  Result<void> set_memory(std::span<std::byte* const> buffers, const RunWith& with);
  Result<void> take_arenas();
  int64_t most_lendable() const;
  // Uses the memory of the run where it suffices; else arenas of the machine.
  Result<void> place_arenas(std::span<std::byte> lent);
  void set_arena_roots();
  // False after a failure: worker.error states it.
  bool execute(Worker& worker, int32_t from);
  // One instruction that does not occur in plain loops: false as for execute().
  bool execute_rare(Worker& worker, const Instr& instr);
  // `ahead`: see Site.
  bool fail(Worker& worker, Error e, int32_t loop, int64_t ahead = 0);

  bool enter_loop(Worker& worker, const LoopCode& loop);
  static bool next_iteration(Frame& frame, const ByteCode& code, const LoopCode& loop);
  static void step_registers(Frame& frame, const ByteCode& code, const LoopCode& loop);
  // All iterations of a loop that has been entered.
  bool run_plain(Worker& worker, const LoopCode& loop);
  template <int kCalls, int kSteps>
  bool run_few(Worker& worker, const LoopCode& loop);
  template <class Run>
  bool for_iterations(Worker& worker, const LoopCode& loop, const Run& run);
  bool run_many(Worker& worker, const LoopCode& loop);
  bool run_hinted(Worker& worker, const LoopCode& loop);
  // `left`: remaining iterations, including the one in which the call has failed.
  bool fail_plain(Worker& worker, const LoopCode& loop, int64_t left, const PlainCall& call, Error e);
  bool run_workers(Worker& worker, int32_t number);
  bool run_alone(Worker& worker, const LoopCode& loop, int64_t begin, int64_t step, int64_t iterations);
  void run_worker(Worker& worker, WorkerLoop& shared, Progress* progress, int64_t number);
  static void set_bases(Frame& frame, const LoopCode& loop, int64_t number);
  // Whether the worker is in the pipelined loop to which the instruction refers.
  bool is_pipelined(const Worker& worker, const Instr& instr) const {
    return worker.progress && worker.loop->code == &code_.loops[static_cast<size_t>(instr.index)];
  }
  static void set_roots(Frame& frame, std::span<const LoopCode::Root> roots);
  bool tokens_are_done(Worker& worker, int32_t loop, const char* where);

  bool call_plain(Worker& worker, const Instr& instr);
  bool call_function(Worker& worker, const Instr& instr);
  bool call_or_copy(Worker& worker, const Instr& instr);
  bool call(Worker& worker, const Site& site);
  // A call or copy, timed.
  bool observed(Worker& worker, const Instr& instr);
  bool fail_call(Worker& worker, const Site& site, Error e);
  bool copy(Worker& worker, const Site& site);
  bool copy_now(Worker& worker, const Site& site);
  // Checks predicate, empty boxes and guards; sets addresses of views. `skip`: nothing is to be done.
  bool prepare(Worker& worker, const Site& site, bool& skip);
  // For a kernel that takes no boxes that wrap around.
  bool place_unfolded(Worker& worker, const Site& site, const OperandCode& operand);
  void count(Worker& worker, const Site& site, bool skipped);
  bool grow(Worker& worker, const Instr& instr);
  // Starts a transfer, concurrently with the program where that pays.
  bool start(Worker& worker, const Site& site);
  bool wait(Worker& worker, const Instr& instr);

  const Program& program_;
  const ByteCode& code_;
  BindOptions options_;
  Worker main_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Progress>> progress_;  // by loop; null: not pipelined

  std::vector<AlignedBytes> arenas_;       // by code_.arenas; empty: those of the last run were lent
  std::byte* lent_ = nullptr;              // lent by the last run; the main frame has the addresses
  std::map<std::string, int64_t> aligns_;  // by space
  int64_t lendable_bytes_ = 0;
  std::unique_ptr<TransferEngine> engine_;  // null: transfers run synchronously
  std::mutex counts_mutex_;
  StatisticsRecorder* counts_ = nullptr;
  StageObserver* observer_ = nullptr;
  ParallelFor* pool_ = nullptr;  // of the run
  bool hints_ = true;            // whether the run follows them
  // The ways of trials: 0 follows the hints, 1 ignores them.
  static constexpr size_t kFollowsHints = 0;
  std::optional<RunTrials> trials_;  // where both are tried
};

}  // namespace tenon::program::detail
