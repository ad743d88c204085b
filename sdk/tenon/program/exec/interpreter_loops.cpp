// Loops of the interpreter: iterations of several workers run one after another.
#include <algorithm>
#include <numeric>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/interpreter_internal.hpp>

namespace tenon::program::detail {

Result<void> Interpreter::run(const Loop& loop) {
  TENON_TRY(begin, evaluate(loop.begin), "the begin of loop ", loop.symbol);
  TENON_TRY(end, evaluate(loop.end), "the end of loop ", loop.symbol);
  TENON_TRY(step, evaluate(loop.step), "the step of loop ", loop.symbol);
  TENON_TRY(limit, evaluate(loop.workers), "the workers of loop ", loop.symbol);
  if (step < 1)
    return error(Code::invalid_argument, "loop ", loop.symbol, " has step ", step, ", at least 1 is needed");
  if (begin >= end) return {};
  const int64_t iterations = iteration_count(begin, end, step);
  const int64_t workers = workers_of(loop, limit, options_.threads, iterations, of_workers_ != nullptr);
  if (loop.kind != LoopKind::serial && limit > 1) counts_.enter_parallel();
  const Loop* const around = pipelined_;
  if (loop.kind == LoopKind::pipelined) pipelined_ = &loop;
  auto result = workers == 1 ? run_in_order(loop, begin, step, iterations)
                             : run_by_workers(loop, begin, step, iterations, workers);
  pipelined_ = around;
  return result;
}

Result<void> Interpreter::run_in_order(const Loop& loop, int64_t begin, int64_t step, int64_t iterations) {
  for (int64_t i = 0; i < iterations; ++i) TENON_OK(run_iteration(loop, begin + i * step));
  return {};
}

Result<void> Interpreter::run_by_workers(const Loop& loop, int64_t begin, int64_t step, int64_t iterations,
                                         int64_t workers) {
  std::vector<int64_t> order(static_cast<size_t>(iterations));
  std::iota(order.begin(), order.end(), 0);
  // Each worker takes iterations in ascending order; how many each takes is random.
  std::vector<int64_t> worker_of(order.size());
  for (size_t i = 0; i < order.size(); ++i) worker_of[i] = static_cast<int64_t>(i) % workers;
  if (options_.seed != 0 && loop.kind == LoopKind::parallel)
    std::stable_sort(order.begin(), order.end(), [&, rank = worker_ranks(workers)](int64_t a, int64_t b) {
      return rank[static_cast<size_t>(a % workers)] < rank[static_cast<size_t>(b % workers)];
    });
  of_workers_ = &loop;
  if (tracer_) tracer_->enter(loop, workers);
  Result<void> result;
  for (size_t i = 0; i < order.size() && result.ok(); ++i) {
    worker_ = worker_of[static_cast<size_t>(order[i])];
    auto outer_queues = std::exchange(queues_, std::vector<std::deque<PendingTransfer>>(queues_.size()));
    if (tracer_) result = tracer_->begin(order[i], begin + order[i] * step);
    if (result.ok()) result = run_iteration(loop, begin + order[i] * step);
    if (result.ok() && tracer_) result = tracer_->end();
    if (result.ok()) result = check_queues_empty(str("the iteration ", loop.symbol, " = ", begin + order[i] * step));
    queues_ = std::move(outer_queues);
  }
  of_workers_ = nullptr;
  worker_ = 0;
  if (tracer_) tracer_->leave();
  return result;
}

std::vector<int64_t> Interpreter::worker_ranks(int64_t workers) {
  std::vector<int64_t> ranks(static_cast<size_t>(workers));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random_);
  return ranks;
}

Result<void> Interpreter::run_iteration(const Loop& loop, int64_t value) {
  counts_.iteration();
  symbols_[loop.symbol] = value;
  auto result = run(loop.body);
  symbols_.erase(loop.symbol);
  TENON_OK(std::move(result), "loop ", loop.symbol, " = ", value);
  return {};
}

Result<void> Interpreter::run(const Signal& s) {
  if (tracer_ && speaks_to_workers()) tracer_->signal(s.stage);
  return {};
}

Result<void> Interpreter::run(const Await& s) {
  if (tracer_ && speaks_to_workers()) tracer_->await(s.stage);
  return {};
}

}  // namespace tenon::program::detail
