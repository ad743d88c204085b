#include <tenon/program/exec/machine_internal.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/labels.hpp>

namespace tenon::program::detail {
namespace {

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// Addresses and what leads to them wrap around on the way.
int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t address_of(const std::byte* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)); }

template <class Done>
bool wait_until(const WorkerLoop& loop, const Done& done) {
  for (int spins = 0; !done(); ++spins) {
    if (loop.failed.load(std::memory_order_relaxed)) return false;
    if (spins > 200) std::this_thread::yield();
  }
  return true;
}

}  // namespace

void Frame::make_states() {
  for (const ContextFixup& c : code_->contexts)
    states_.push_back(c.kernel->make_state ? c.kernel->make_state() : nullptr);
}

void Frame::set_parallel(ParallelFor* parallel) {
  if (parallel == parallel_) return;
  parallel_ = parallel;
  for (const ContextFixup& c : code_->contexts) as<CallContext>(c.context).parallel = parallel;
}

void Frame::fix() {
  for (const ViewFixup& v : code_->views) {
    BufferView& view = as<BufferView>(v.view);
    view.dims = {&as<DimView>(v.dims), static_cast<size_t>(v.rank)};
    view.element = v.element;
  }
  for (size_t i = 0; i < code_->contexts.size(); ++i) {
    const ContextFixup& c = code_->contexts[i];
    CallContext& context = as<CallContext>(c.context);
    context.state = states_[i].get();
    context.operands = {&as<BufferView>(c.views), static_cast<size_t>(c.operands)};
    context.scalars = {words_.data() + c.scalars / static_cast<Place>(sizeof(int64_t)),
                       static_cast<size_t>(c.scalar_count)};
    context.stage = c.stage;
  }
}

void WorkerLoop::fail(int64_t iteration, Error e) {
  const std::lock_guard lock(mutex);
  failed = true;
  if (iteration >= failed_iteration) return;
  failed_iteration = iteration;
  error = std::move(e);
}

// Progress ------------------------------------------------------------------------------------------------------

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

// Machine -------------------------------------------------------------------------------------------------------

Machine::Machine(const Program& program, const BoundCode& bound, const BindOptions& options)
    : program_(program), code_(bound.code), options_(options), main_(code_) {}

Result<std::unique_ptr<Machine>> Machine::make(const Program& program, const BoundCode& bound,
                                               const BindOptions& options) {
  std::unique_ptr<Machine> machine(new Machine(program, bound, options));
  const ByteCode& code = bound.code;
  int64_t workers = 0;
  for (const LoopCode& loop : code.loops) {
    if (loop.workers > 1) workers = std::max(workers, loop.workers);
    const bool pipelined = loop.kind == LoopKind::pipelined && loop.workers > 1;
    machine->progress_.push_back(pipelined ? std::make_unique<Progress>(loop.workers, loop.stages) : nullptr);
  }
  for (int64_t w = 0; w < workers; ++w) machine->workers_.push_back(std::make_unique<Worker>(code));
  const int64_t threads = options.threads > 0 ? options.threads : options.pool->threads();
  const bool transfers = std::ranges::any_of(code.sites, [](const Site& site) { return site.token >= 0; });
  if (transfers && threads > 1 && options.beside_bytes < INT64_MAX) {
    std::vector<TransferQueue*> queues{&machine->main_.transfers};
    for (const auto& worker : machine->workers_) queues.push_back(&worker->transfers);
    machine->engine_ = std::make_unique<TransferEngine>(std::move(queues));
  }
  std::map<std::string, int64_t> aligns;
  for (const PlannedBlock& b : bound.blocks) aligns[b.space] = std::max(aligns[b.space], b.align);
  for (const auto& [place, space] : code.arenas) {
    const int64_t bytes = code.arena_bytes.at(space);
    TENON_TRY(arena, allocate_aligned(static_cast<size_t>(bytes), static_cast<size_t>(aligns[space])), "the arena of ",
              space);
    machine->arenas_.push_back(std::move(arena));
  }
  return machine;
}

Result<void> Machine::run(std::span<std::byte* const> buffers, const RunWith& with) {
  std::optional<StatisticsRecorder> counts;
  if (options_.statistics) counts.emplace(with.statistics);
  counts_ = counts ? &*counts : nullptr;
  observer_ = with.observer;
  pool_ = with.pool ? with.pool : options_.pool;
  Frame& frame = main_.frame;
  frame.set_parallel(pool_);
  for (size_t i = 0; i < buffers.size(); ++i) frame.at(code_.arguments[i]) = address_of(buffers[i]);
  for (size_t i = 0; i < arenas_.size(); ++i) frame.at(code_.arenas[i].first) = address_of(arenas_[i].get());
  for (const LoopCode::Root& r : code_.roots) frame.at(r.to) = frame.at(r.from) + r.offset;
  for (const Place token : code_.tokens) frame.at(token) = 0;
  main_.error.reset();
  const bool ok = execute(main_, 0) && tokens_are_done(main_, -1, "the program");
  main_.transfers.reset();
  for (const auto& worker : workers_) worker->transfers.reset();
  counts_ = nullptr;
  if (!ok) return std::move(*main_.error).with_frame(str("program '", program_.name, "'"));
  return {};
}

// Adds a frame for each loop around.
bool Machine::fail(Worker& worker, Error e, int32_t loop) {
  for (; loop >= 0; loop = code_.loops[static_cast<size_t>(loop)].outer) {
    const LoopCode& l = code_.loops[static_cast<size_t>(loop)];
    e = std::move(e).with_frame(str("loop ", l.symbol, " = ", worker.frame.at(l.value)));
  }
  worker.error = std::move(e);
  return false;
}

bool Machine::execute(Worker& worker, int32_t from) {
  Frame& f = worker.frame;
  for (const Instr* at = code_.instrs.data() + from;; ++at) {
    const Instr& i = *at;
    switch (i.op) {
      case Op::set: f.at(i.to) = i.number; break;
      case Op::move: f.at(i.to) = f.at(i.a.place); break;
      case Op::linear: {
        int64_t sum = i.number;
        for (int32_t t = i.first; t < i.last; ++t) {
          const Term& term = code_.terms[static_cast<size_t>(t)];
          sum = add(sum, multiply(term.factor, f.at(term.place)));
        }
        f.at(i.to) = sum;
        break;
      }
      case Op::product: f.at(i.to) = multiply(f.get(i.a), f.get(i.b)); break;
      case Op::floordiv: f.at(i.to) = floor_divide(f.get(i.a), f.get(i.b)); break;
      case Op::mod: f.at(i.to) = floor_modulo(f.get(i.a), f.get(i.b)); break;
      case Op::min: f.at(i.to) = std::min(f.get(i.a), f.get(i.b)); break;
      case Op::max: f.at(i.to) = std::max(f.get(i.a), f.get(i.b)); break;
      case Op::select: f.at(i.to) = f.get(i.a) != 0 ? f.get(i.b) : f.get(i.c); break;
      case Op::at_least_0: f.at(i.to) = f.get(i.a) >= 0; break;
      case Op::is_0: f.at(i.to) = f.get(i.a) == 0; break;
      case Op::grow:
        if (!grow(worker, i)) return false;
        break;
      case Op::check: {
        if (f.get(i.a) != 0) break;
        const CheckCode& check = code_.checks[static_cast<size_t>(i.index)];
        return fail(worker, error(Code::invalid_argument, check.message), check.loop);
      }
      case Op::loop: {
        const LoopCode& loop = code_.loops[static_cast<size_t>(i.index)];
        if (!enter_loop(worker, loop)) at = code_.instrs.data() + loop.exit - 1;
        break;
      }
      case Op::next: {
        const LoopCode& loop = code_.loops[static_cast<size_t>(i.index)];
        if (counts_) {
          const std::lock_guard lock(counts_mutex_);
          counts_->iteration();
        }
        if (next_iteration(f, code_, loop)) at = code_.instrs.data() + loop.body - 1;
        break;
      }
      case Op::workers:
        if (!run_workers(worker, i.index)) return false;
        at = code_.instrs.data() + code_.loops[static_cast<size_t>(i.index)].exit - 1;
        break;
      case Op::call_plain: {
        if (observer_) [[unlikely]] {
          if (!observed(worker, i)) return false;
          break;
        }
        const Result<void> result = i.plain(f.as<CallContext>(i.to));
        if (!result.ok()) [[unlikely]]
          return fail_call(worker, code_.sites[static_cast<size_t>(i.index)], result.error());
        break;
      }
      case Op::call_function: {
        if (observer_) [[unlikely]] {
          if (!observed(worker, i)) return false;
          break;
        }
        const Site& site = code_.sites[static_cast<size_t>(i.index)];
        const Result<void> result = site.run(f.as<CallContext>(i.to));
        if (!result.ok()) [[unlikely]]
          return fail_call(worker, site, result.error());
        break;
      }
      case Op::call:
        if (!(observer_ ? observed(worker, i) : call(worker, code_.sites[static_cast<size_t>(i.index)]))) return false;
        break;
      case Op::start:
        if (!start(worker, code_.sites[static_cast<size_t>(i.index)])) return false;
        break;
      case Op::copy:
        if (!(observer_ ? observed(worker, i) : copy(worker, code_.sites[static_cast<size_t>(i.index)]))) return false;
        break;
      case Op::wait:
        if (!wait(worker, i)) return false;
        break;
      case Op::signal:
        if (worker.progress && worker.loop->code == &code_.loops[static_cast<size_t>(i.index)])
          worker.progress->signal(worker.iteration, static_cast<int>(i.number));
        break;
      case Op::await:
        if (worker.progress && worker.loop->code == &code_.loops[static_cast<size_t>(i.index)] &&
            !worker.progress->await(worker.iteration, static_cast<int>(i.number), *worker.loop))
          return false;  // another worker has failed, and says so
        break;
      case Op::allocate: {
        const std::lock_guard lock(counts_mutex_);
        counts_->allocate(f.get(i.a), f.get(i.b) != 0);
        break;
      }
      case Op::free: {
        const std::lock_guard lock(counts_mutex_);
        counts_->free(f.get(i.a), f.get(i.b) != 0);
        break;
      }
      case Op::body_end:
      case Op::end: return true;
    }
  }
}

// Loops ---------------------------------------------------------------------------------------------------------

bool Machine::enter_loop(Worker& worker, const LoopCode& loop) {
  Frame& f = worker.frame;
  if (counts_ && loop.may_be_parallel && f.get(loop.limit) > 1 && f.get(loop.begin) < f.get(loop.end)) {
    const std::lock_guard lock(counts_mutex_);
    counts_->enter_parallel();
  }
  const int64_t begin = f.get(loop.begin), end = f.get(loop.end);
  if (begin >= end) return false;
  f.at(loop.value) = begin;
  f.at(loop.counter) = 0;
  f.at(loop.left) = iteration_count(begin, end, f.get(loop.step));
  return true;
}

bool Machine::next_iteration(Frame& f, const ByteCode& code, const LoopCode& loop) {
  if (--f.at(loop.left) == 0) return false;
  f.at(loop.value) += f.get(loop.step);
  ++f.at(loop.counter);
  std::byte* const frame = f.data();
  const Step* const last = code.steps.data() + loop.last_step;
  for (const Step* s = code.steps.data() + loop.first_step; s != last; ++s) {
    auto& to = *reinterpret_cast<int64_t*>(frame + s->place);
    to = add(to, s->by);
  }
  const Increment* const end = code.increments.data() + loop.last_increment;
  for (const Increment* i = code.increments.data() + loop.first_increment; i != end; ++i) {
    int64_t& to = f.at(i->place);
    to = add(to, f.get(i->by));
    if (i->modulus > 0 && to >= i->modulus) to -= i->modulus;
  }
  return true;
}

void Machine::set_bases(Frame& f, const LoopCode& loop, int64_t number) {
  for (const LoopCode::Base& b : loop.bases) f.at(b.to) = f.at(b.from) + b.offset + number * b.stride;
  for (const LoopCode::Root& r : loop.worker_roots) f.at(r.to) = f.at(r.from) + r.offset;
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
  // One reference, so that std::function takes no heap memory.
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

bool Machine::wait(Worker& worker, const Instr& instr) {
  int64_t& under_way = worker.frame.at(code_.tokens[static_cast<size_t>(instr.index)]);
  if (--under_way >= 0) {
    auto result = worker.transfers.wait(static_cast<TokenId>(instr.index));
    if (result.ok()) [[likely]]
      return true;
    return fail(worker,
                std::move(result).error().with_frame(
                    str("dma '", program_.tokens[static_cast<size_t>(instr.index)], "'")),
                static_cast<int32_t>(instr.number));
  }
  return fail(worker,
              error(Code::invalid_argument, "wait '", program_.tokens[static_cast<size_t>(instr.index)],
                    "': no transfer of this token is under way here"),
              static_cast<int32_t>(instr.number));
}

bool Machine::start(Worker& worker, const Site& site) {
  ++worker.frame.at(code_.tokens[static_cast<size_t>(site.token)]);
  bool skip = false;
  if (!site.plain_path && !prepare(worker, site, skip)) return false;
  const BufferView& to = worker.frame.as<BufferView>(site.operands[0].view);
  const bool beside = engine_ && !skip && to.elements() * to.element_bytes() >= options_.beside_bytes;
  if (beside && worker.transfers.push(site, worker.frame)) {
    engine_->wake();
    return true;
  }
  worker.transfers.done_at_once(site.token);
  return skip || copy_now(worker, site);
}

bool Machine::grow(Worker& worker, const Instr& instr) {
  Frame& f = worker.frame;
  const auto block = static_cast<size_t>(instr.index);
  const int64_t bytes = f.get(instr.a);
  if (f.grown().size() <= block) {
    f.grown().resize(code_.grow_align.size());
    f.grown_bytes().resize(code_.grow_align.size(), -1);
  }
  if (f.grown_bytes()[block] < bytes) {
    auto made =
        bytes <= static_cast<int64_t>(tensor_bytes_limit())
            ? allocate_aligned(static_cast<size_t>(bytes), code_.grow_align[block])
            : Result<AlignedBytes>(error(Code::resource_exhausted, "an allocation of ", bytes, " bytes, and at most ",
                                         tensor_bytes_limit(), " are allowed (TENON_TENSOR_LIMIT)"));
    if (!made.ok()) return fail(worker, std::move(made).error(), -1);
    f.grown()[block] = *std::move(made);
    f.grown_bytes()[block] = bytes;
  }
  f.at(instr.to) = address_of(f.grown()[block].get());
  return true;
}

// Calls and copies ----------------------------------------------------------------------------------------------

bool Machine::call(Worker& worker, const Site& site) {
  bool skip = false;
  if (!prepare(worker, site, skip) || skip) return skip;
  CallContext& context = worker.frame.as<CallContext>(site.context);
  Result<void> result = site.plain ? site.plain(context) : site.run(context);
  if (result.ok()) [[likely]]
    return true;
  return fail_call(worker, site, std::move(result).error());
}

bool Machine::observed(Worker& worker, const Instr& instr) {
  const Site& site = code_.sites[static_cast<size_t>(instr.index)];
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = site.call ? call(worker, site) : copy(worker, site);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(counts_mutex_);
  if (ok) observer_->ran(site.call ? stage_of(*site.call) : stage_of(*site.copy), taken.count(), site.loop >= 0);
  return ok;
}

bool Machine::fail_call(Worker& worker, const Site& site, Error e) {
  return fail(worker, std::move(e).with_frame(str("call '", stage_of(*site.call), "'")), site.loop);
}

bool Machine::copy(Worker& worker, const Site& site) {
  bool skip = false;
  if (!site.plain_path && (!prepare(worker, site, skip) || skip)) return skip;
  return copy_now(worker, site);
}

bool Machine::copy_now(Worker& worker, const Site& site) {
  Frame& f = worker.frame;
  const BufferView* padding = site.operands.size() > 2 ? &f.as<BufferView>(site.operands[2].view) : nullptr;
  const size_t parameters = site.plan->parameters().size();
  const std::span<const int64_t> values{parameters > 0 ? &f.at(site.parameters) : nullptr, parameters};
  Result<void> result =
      site.plan->run(f.as<BufferView>(site.operands[0].view), f.as<BufferView>(site.operands[1].view), padding, values);
  if (result.ok()) [[likely]]
    return true;
  return fail(worker, std::move(result).error().with_frame(str("copy '", stage_of(*site.copy), "'")), site.loop);
}

bool Machine::prepare(Worker& worker, const Site& site, bool& skip) {
  Frame& f = worker.frame;
  skip = f.get(site.predicate) == 0;
  for (const Value& extent : site.extents) skip |= f.get(extent) <= 0;
  if (counts_) count(worker, site, skip);
  if (skip) return true;
  for (const Guard& g : site.guards)
    if (f.get(g.value) < 0)
      return fail(worker, error(Code::invalid_argument, code_.messages[static_cast<size_t>(g.message)]), site.loop);
  for (const OperandCode& o : site.operands)
    if (o.first_fold != o.last_fold && !place_view(worker, site, o)) return false;
  return true;
}

// Dims whose box does not wrap around their ring are given without the fold.
bool Machine::place_view(Worker& worker, const Site& site, const OperandCode& operand) {
  Frame& f = worker.frame;
  int64_t base = f.get(operand.base);
  for (int32_t i = operand.first_fold; i < operand.last_fold; ++i) {
    const Fold& fold = site.folds[static_cast<size_t>(i)];
    DimView& dim = f.as<DimView>(fold.dim);
    const int64_t places = f.get(fold.fold), first = f.get(fold.place);
    dim.fold = places > 0 && first + dim.extent > places ? places : 0;
    if (places > 0 && dim.fold == 0) base = add(base, multiply(first, f.get(fold.stride)));
    if (dim.fold > 0 && site.call && !site.call->kernel->takes_folded)
      return fail(worker,
                  error(Code::unsupported, "indices ", dim.min, " .. ", dim.max(), " wrap around a ring of ", dim.fold,
                        ", and kernel '", site.call->kernel->name, "' takes no folded buffers")
                      .with_frame(operand.label),
                  site.loop);
  }
  f.at(operand.view) = base;
  return true;
}

void Machine::count(Worker& worker, const Site& site, bool skipped) {
  const std::lock_guard lock(counts_mutex_);
  StageStatistics& counts = site.call ? counts_->call(site.label) : counts_->copy(site.label);
  if (skipped) {
    ++counts.skipped;
    return;
  }
  int64_t elements = 1;
  for (const Value& extent : site.counted) elements *= worker.frame.get(extent);
  ++counts.calls;
  counts.elements += elements;
}

}  // namespace tenon::program::detail
