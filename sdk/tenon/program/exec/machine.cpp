#include <tenon/program/exec/machine_internal.hpp>

#include <algorithm>
#include <utility>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/arithmetic_internal.hpp>
#include <tenon/program/exec/compute_internal.hpp>
#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

Machine::Machine(const Program& program, const BoundCode& bound, const BindOptions& options)
    : program_(program), code_(bound.code), options_(options), main_(code_) {
  if (code_.has_hints && options.hints == HintPolicy::tried) trials_.emplace(2, RunTrials::Blocks{});
}

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
  for (const PlannedBlock& b : bound.blocks) machine->aligns_[b.space] = std::max(machine->aligns_[b.space], b.align);
  machine->lendable_bytes_ = machine->most_lendable();
  if (!options.arena_of_runs) TENON_OK(machine->take_arenas());
  return machine;
}

int64_t Machine::most_lendable() const {
  if (code_.arenas.size() != 1) return 0;
  const std::string& space = code_.arenas[0].second;
  return aligns_.at(space) <= static_cast<int64_t>(kAlignBytes) ? code_.arena_bytes.at(space) : 0;
}

Result<void> Machine::take_arenas() {
  for (const auto& [place, space] : code_.arenas) {
    const int64_t bytes = code_.arena_bytes.at(space);
    TENON_TRY(arena, allocate_aligned(static_cast<size_t>(bytes), static_cast<size_t>(aligns_[space])), "the arena of ",
              space);
    main_.frame.at(place) = address_of(arena.get());
    arenas_.push_back(std::move(arena));
  }
  set_arena_roots();
  return {};
}

void Machine::set_arena_roots() {
  set_roots(main_.frame, code_.roots);
  set_roots(main_.frame, code_.planned_bases);
}

Result<void> Machine::place_arenas(std::span<std::byte> lent) {
  std::byte* const at =
      lendable_bytes_ > 0 && static_cast<int64_t>(lent.size()) >= lendable_bytes_ ? lent.data() : nullptr;
  if (at ? at == lent_ : arenas_.size() == code_.arenas.size()) return {};
  lent_ = at;
  arenas_.clear();
  if (!at) return take_arenas();
  main_.frame.at(code_.arenas[0].first) = address_of(at);
  set_arena_roots();
  return {};
}

Result<void> Machine::set_memory(std::span<std::byte* const> buffers, const RunWith& with) {
  pool_ = with.pool ? with.pool : options_.pool;
  TENON_OK(place_arenas(with.arena));
  Frame& frame = main_.frame;
  frame.set_parallel(pool_);
  for (size_t i = 0; i < buffers.size(); ++i) frame.at(code_.arguments[i]) = address_of(buffers[i]);
  set_roots(frame, code_.argument_bases);
  return {};
}

Result<void> Machine::run(std::span<std::byte* const> buffers, const RunWith& with) {
  TENON_OK(set_memory(buffers, with), "program '", program_.name, "'");
  std::optional<StatisticsRecorder> counts;
  if (options_.statistics) counts.emplace(with.statistics);
  counts_ = counts ? &*counts : nullptr;
  observer_ = with.observer;
  for (const Place token : code_.tokens) main_.frame.at(token) = 0;
  main_.error.reset();
  // Observed runs take longer.
  const bool may_be_on_trial = trials_ && !counts_ && !observer_;
  if (trials_) hints_ = (may_be_on_trial ? trials_->begin_run() : trials_->chosen()) == kFollowsHints;
  const bool ok = execute(main_, 0) && tokens_are_done(main_, -1, "the program");
  main_.transfers.reset();
  for (const auto& worker : workers_) worker->transfers.reset();
  counts_ = nullptr;
  if (!ok) return std::move(*main_.error).with_frame(str("program '", program_.name, "'"));
  if (may_be_on_trial) trials_->end_run();
  return {};
}

// Adds a frame to the error for each enclosing loop of the program.
bool Machine::fail(Worker& worker, Error e, int32_t loop, int64_t ahead) {
  for (; loop >= 0; loop = code_.loops[static_cast<size_t>(loop)].outer) {
    const LoopCode& l = code_.loops[static_cast<size_t>(loop)];
    const int64_t value = worker.frame.at(l.value) + std::exchange(ahead, l.outer_ahead);
    if (!l.symbol.empty()) e = std::move(e).with_frame(str("loop ", l.symbol, " = ", value));
  }
  worker.error = std::move(e);
  return false;
}

// Instructions --------------------------------------------------------------------------------------------------

inline bool Machine::call_plain(Worker& worker, const Instr& i) {
  if (observer_) [[unlikely]]
    return observed(worker, i);
  const Result<void> result = i.plain(worker.frame.as<CallContext>(i.to));
  if (result.ok()) [[likely]]
    return true;
  return fail_call(worker, code_.sites[static_cast<size_t>(i.index)], result.error());
}

inline bool Machine::call_function(Worker& worker, const Instr& i) {
  if (observer_) [[unlikely]]
    return observed(worker, i);
  const Site& site = code_.sites[static_cast<size_t>(i.index)];
  const Result<void> result = site.call->kernel->run(worker.frame.as<CallContext>(i.to));
  if (result.ok()) [[likely]]
    return true;
  return fail_call(worker, site, result.error());
}

inline bool Machine::call_or_copy(Worker& worker, const Instr& i) {
  if (observer_) return observed(worker, i);
  const Site& site = code_.sites[static_cast<size_t>(i.index)];
  return i.op == Op::call ? call(worker, site) : copy(worker, site);
}

bool Machine::execute_rare(Worker& worker, const Instr& i) {
  Frame& f = worker.frame;
  const auto index = static_cast<size_t>(i.index);
  switch (i.op) {
    case Op::grow: return grow(worker, i);
    case Op::check:
      if (f.get(i.a) != 0) return true;
      return fail(worker, error(Code::invalid_argument, code_.checks[index].message), code_.checks[index].loop);
    case Op::start: return start(worker, code_.sites[index]);
    case Op::wait: return wait(worker, i);
    case Op::signal:
      if (is_pipelined(worker, i)) worker.progress->signal(worker.iteration, static_cast<int>(i.number));
      return true;
    case Op::await:  // false: another worker has failed and reports it
      return !is_pipelined(worker, i) ||
             worker.progress->await(worker.iteration, static_cast<int>(i.number), *worker.loop);
    case Op::allocate:
    case Op::free: {
      const std::lock_guard lock(counts_mutex_);
      i.op == Op::allocate ? counts_->allocate(f.get(i.a), f.get(i.b) != 0)
                           : counts_->free(f.get(i.a), f.get(i.b) != 0);
      return true;
    }
    default: TENON_CHECK(false, "instruction ", static_cast<int>(i.op), " is none that is rare");
  }
}

bool Machine::execute(Worker& worker, int32_t from) {
  Frame& f = worker.frame;
  for (const Instr* at = code_.instrs.data() + from;; ++at) {
    const Instr& i = *at;
    if (computes(i.op)) {
      compute(f, code_, i);
      continue;
    }
    switch (i.op) {
      case Op::loop: {
        const LoopCode& loop = code_.loops[static_cast<size_t>(i.index)];
        const bool runs = enter_loop(worker, loop);
        if (runs && (!loop.is_plain() || observer_ != nullptr)) break;
        if (runs && !run_plain(worker, loop)) return false;
        at = code_.instrs.data() + loop.exit - 1;
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
      case Op::call_plain:
        if (!call_plain(worker, i)) return false;
        break;
      case Op::call_function:
        if (!call_function(worker, i)) return false;
        break;
      case Op::call:
      case Op::copy:
        if (!call_or_copy(worker, i)) return false;
        break;
      case Op::read_soon:
        if (hints_)
          read_lines_soon(static_cast<uint64_t>(add(f.get(i.a), i.number)), i.last, i.first, i.b.number);
        break;
      case Op::write_soon:
        if (hints_)
          write_lines_soon(static_cast<uint64_t>(add(f.get(i.a), i.number)), i.last, i.first, i.b.number);
        break;
      case Op::prefetch:
        if (hints_) prefetch(f, code_.prefetches[static_cast<size_t>(i.index)]);
        break;
      case Op::finish: i.finish(); break;
      case Op::body_end:
      case Op::end: return true;
      case Op::grow:
      case Op::check:
      case Op::start:
      case Op::wait:
      case Op::signal:
      case Op::await:
      case Op::allocate:
      case Op::free:
        if (!execute_rare(worker, i)) return false;
        break;
      default: break;  // it computes
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
  if (loop.has_turns()) {
    f.at(loop.to_turn) = loop.to_first_turn;
    f.at(loop.turn) = loop.first_turn;
  }
  return true;
}

bool Machine::next_iteration(Frame& f, const ByteCode& code, const LoopCode& loop) {
  if (--f.at(loop.left) == 0) return false;
  f.at(loop.value) += f.get(loop.step);
  ++f.at(loop.counter);
  step_registers(f, code, loop);
  return true;
}

void Machine::step_registers(Frame& f, const ByteCode& code, const LoopCode& loop) {
  std::byte* const frame = f.data();
  add_each(frame, code.steps.data() + loop.first_step, code.steps.data() + loop.last_step);
  if (loop.has_turns() && --f.at(loop.to_turn) == 0) {
    int64_t& number = f.at(loop.turn);
    f.at(loop.to_turn) = code.turns[static_cast<size_t>(number)].next;
    number = turn(frame, code, loop, number);
  }
  const RingStep* const last_ring = code.ring_steps.data() + loop.last_ring_step;
  for (const RingStep* s = code.ring_steps.data() + loop.first_ring_step; s != last_ring; ++s) {
    auto& to = *reinterpret_cast<int64_t*>(frame + s->place);
    const int64_t next = to + s->by, anew = next - s->modulus;
    to = anew >= 0 ? anew : next;
  }
  const BesideStep* const last_beside = code.beside_steps.data() + loop.last_beside;
  for (const BesideStep* s = code.beside_steps.data() + loop.first_beside; s != last_beside; ++s) {
    auto& to = *reinterpret_cast<int64_t*>(frame + s->place);
    const bool anew = *reinterpret_cast<const int64_t*>(frame + s->ring) < s->ring_by;
    to = add(to, anew ? s->by - s->back : s->by);
  }
  const Increment* const end = code.increments.data() + loop.last_increment;
  for (const Increment* i = code.increments.data() + loop.first_increment; i != end; ++i)
    f.at(i->place) = add(f.at(i->place), f.get(i->by));
}

}  // namespace tenon::program::detail
