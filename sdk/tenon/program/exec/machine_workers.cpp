// Loops that several workers run.
#include <algorithm>
#include <thread>

#include <tenon/program/exec/machine_internal.hpp>

namespace tenon::program::detail {

void WorkerLoop::fail(int64_t iteration, Error e) {
  const std::lock_guard lock(mutex);
  failed = true;
  if (iteration >= failed_iteration) return;
  failed_iteration = iteration;
  error = std::move(e);
}

// Progress ------------------------------------------------------------------------------------------------------

namespace {

template <class Done>
bool wait_until(const WorkerLoop& loop, const Done& done) {
  for (int spins = 0; !done(); ++spins) {
    if (loop.failed.load(std::memory_order_relaxed)) return false;
    if (spins > 200) std::this_thread::yield();
  }
  return true;
}

}  // namespace

Progress::Progress(int64_t workers, int stages)
    : workers_(workers), stages_(stages), cells_(static_cast<size_t>(workers * (stages + 1))) {}

void Progress::reset() {
  for (Cell& c : cells_) c.iteration.store(-1, std::memory_order_relaxed);
}

bool Progress::enter(int64_t iteration, const WorkerLoop& loop) const {
  for (int64_t i = std::max<int64_t>(0, iteration - 2 * workers_ + 1); i <= iteration - workers_; ++i)
    if (!wait_until(loop, [&] { return seen(i, stages_) >= i; })) return false;
  return true;
}

bool Progress::await(int64_t iteration, int stage, const WorkerLoop& loop) const {
  for (int64_t i = std::max<int64_t>(0, iteration - workers_ + 1); i < iteration; ++i)
    if (!wait_until(loop, [&] { return seen(i, stage) >= i || seen(i, stages_) >= i; })) return false;
  return true;
}

// Workers -------------------------------------------------------------------------------------------------------

void Machine::set_bases(Frame& f, const LoopCode& loop, int64_t number) {
  for (const LoopCode::Base& b : loop.bases) f.at(b.to) = f.at(b.from) + b.offset + number * b.stride;
  set_roots(f, loop.worker_roots);
}

void Machine::set_roots(Frame& f, std::span<const LoopCode::Root> roots) {
  for (const LoopCode::Root& r : roots) f.at(r.to) = f.at(r.from) + r.offset;
}

bool Machine::run_workers(Worker& worker, int32_t number) {
  const LoopCode& loop = code_.loops[static_cast<size_t>(number)];
  Frame& f = worker.frame;
  if (!enter_loop(worker, loop)) return true;
  const int64_t begin = f.at(loop.value), iterations = f.at(loop.left), step = f.get(loop.step);
  const int64_t workers =
      worker.loop ? 1 : std::max<int64_t>(1, std::min({f.get(loop.limit), loop.workers, iterations}));
  if (workers > loop.slots)
    return fail(worker,
                error(Code::invalid_argument, "worker ", loop.slots, " uses '", loop.slots_of, "', which has ",
                      loop.slots, " slots"),
                loop.outer);
  if (workers == 1) return run_alone(worker, loop, begin, step, iterations);
  WorkerLoop shared;
  shared.code = &loop;
  shared.begin = begin;
  shared.step = step;
  shared.iterations = iterations;
  shared.workers = workers;
  Progress* progress = progress_[static_cast<size_t>(number)].get();
  if (progress) progress->reset();
  // One reference, so that std::function allocates no heap memory.
  struct Start {
    Machine& machine;
    Worker& from;
    WorkerLoop& shared;
    Progress* progress;
  } start{*this, worker, shared, progress};
  const auto body = [&start](int64_t first, int64_t last) {
    for (int64_t w = first; w < last; ++w) {
      Worker& other = *start.machine.workers_[static_cast<size_t>(w)];
      other.frame.copy_from(start.from.frame);
      start.machine.run_worker(other, start.shared, start.progress, w);
    }
  };
  pool_->run(workers, 1, body);
  if (!shared.error) return true;
  worker.error = std::move(shared.error);
  return false;
}

bool Machine::run_alone(Worker& worker, const LoopCode& loop, int64_t begin, int64_t step, int64_t iterations) {
  Frame& f = worker.frame;
  f.at(loop.worker) = loop.outer_worker < 0 ? 0 : f.at(loop.outer_worker);
  set_bases(f, loop, 0);
  for (int64_t i = 0; i < iterations; ++i) {
    if (counts_) {
      const std::lock_guard lock(counts_mutex_);
      counts_->iteration();
    }
    f.at(loop.value) = begin + i * step;
    f.at(loop.counter) = i;
    if (!execute(worker, loop.body)) return false;
  }
  return true;
}

void Machine::run_worker(Worker& worker, WorkerLoop& shared, Progress* progress, int64_t number) {
  const LoopCode& loop = *shared.code;
  Frame& f = worker.frame;
  worker.loop = &shared;
  worker.progress = progress;
  f.at(loop.worker) = number;
  set_bases(f, loop, number);
  while (!shared.failed.load(std::memory_order_relaxed)) {
    const int64_t i = worker.iteration = shared.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= shared.iterations) break;
    if (progress && !progress->enter(i, shared)) break;
    if (counts_) {
      const std::lock_guard lock(counts_mutex_);
      counts_->iteration();
    }
    f.at(loop.value) = shared.begin + i * shared.step;
    f.at(loop.counter) = i;
    for (const Place token : code_.tokens) f.at(token) = 0;
    worker.error.reset();
    const auto loop_number = static_cast<int32_t>(&loop - code_.loops.data());
    if (!execute(worker, loop.body) || !tokens_are_done(worker, loop_number, "the iteration")) {
      if (worker.error) shared.fail(i, *std::move(worker.error));
      break;
    }
    if (progress) progress->end(i);
  }
  worker.loop = nullptr;
  worker.progress = nullptr;
}

bool Machine::tokens_are_done(Worker& worker, int32_t loop, const char* where) {
  for (size_t t = 0; t < code_.tokens.size(); ++t)
    if (const int64_t left = worker.frame.at(code_.tokens[t]); left != 0)
      return fail(worker,
                  error(Code::invalid_argument, "at the end of ", where, ", ", left, " transfers of token '",
                        program_.tokens[t], "' have not been waited for"),
                  loop);
  return true;
}

}  // namespace tenon::program::detail
