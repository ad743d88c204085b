// The code of loops, serial and with workers.
#include <algorithm>
#include <utility>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/exec/ring_turns_internal.hpp>

namespace tenon::program::detail {

namespace {

// At most this many iterations before or after the steady ones are unrolled, each with known numbers.
constexpr int64_t kFewWithoutLoop = 2;

}  // namespace

Result<void> Binder::emit(const Loop& loop) {
  if (is_once(loop) && !options_.statistics) return emit_once(loop);
  const Expr begin = resolved(loop.begin), end = resolved(loop.end), step = resolved(loop.step);
  if (!options_.statistics)
    if (const std::optional<Loop> written_out = with_loops_written_out(loop, scope_))
      if (const auto steady = steady_part(*written_out, begin, end, step))
        return emit_parts(loop, *written_out, *steady);
  if (const std::optional<SteadyPart> steady = steady_part(loop, begin, end, step))
    return emit_parts(loop, loop, *steady);
  const std::optional<int64_t> few = iterations_of(loop, begin, end, step);
  if (few && *few > 1 && *few < kFewestIterations && !options_.statistics &&
      may_be_repeated(loop.body, innermost() >= 0))
    return emit_each(loop, begin, step.constant(), *few);
  return emit_loop(loop, begin, end, step);
}

Result<void> Binder::emit_parts(const Loop& loop, const Loop& written_out, const SteadyPart& steady) {
  const Expr begin = resolved(loop.begin), end = resolved(loop.end), step = resolved(loop.step);
  const bool in_periods = steady.period > 1 && !options_.statistics;
  const Expr before = in_periods ? iterations_to_periods(begin, step, steady) : Expr(0);
  const int64_t most_before = before.is_constant() ? 0 : steady.period - 1;
  const int64_t periods = in_periods ? (steady.last - steady.first - most_before) / steady.period : 0;
  const Expr from = begin + (steady.first + (periods > 0 ? before : 0)) * step;
  const Expr to = from + (periods > 0 ? periods * steady.period : steady.last - steady.first) * step;
  TENON_OK(emit_rest(loop, begin, from, step));
  TENON_OK(periods > 0 ? emit_periods(written_out, from, to, step, steady.period)
                       : emit_loop(written_out, from, scope_.simplified(min(to, end)), step));
  TENON_OK(emit_rest(loop, to, end, step));
  if (!before.is_constant()) {
    scope_.aligned().erase(std::string(before.name()));
    scope_.assumptions().erase(std::string(before.name()));
  }
  return {};
}

Expr Binder::iterations_to_periods(const Expr& begin, const Expr& step, const SteadyPart& steady) {
  if (begin.is_constant()) return 0;
  const std::string symbol = str("before.", code().loops.size());
  const Expr aligned = aligned_iteration(begin, step.constant(), steady.period, scope_);
  const Expr before = scope_.simplified(mod(aligned, steady.period));
  if (before.is_constant()) return 0;  // so are positions, wherever periods begin
  registers_.define(symbol, registers_.value(before).place, registers_.level_of(before));
  scope_.assumptions()[symbol] = {0, steady.period - 1};
  scope_.aligned()[symbol] = aligned;
  return Expr::symbol(symbol);
}

Result<void> Binder::emit_rest(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) {
  if (prove_le(end, begin, scope_.assumptions())) return {};
  const std::optional<int64_t> iterations = iterations_of(loop, begin, end, step);
  if (!iterations || *iterations > kFewWithoutLoop) return emit_loop(loop, begin, end, step);
  return emit_each(loop, begin, step.constant(), *iterations);
}

Result<void> Binder::emit_each(const Loop& loop, const Expr& first, int64_t step, int64_t iterations) {
  Loop once = loop;
  once.step = 1;
  for (int64_t i = 0; i < iterations; ++i) {
    once.begin = first + i * step;
    once.end = once.begin + 1;
    TENON_OK(emit(once));
  }
  return {};
}

Result<void> Binder::emit_once(const Loop& loop) {
  const auto number = static_cast<int32_t>(code().loops.size());
  LoopCode made{.symbol = loop.symbol, .value = registers_.new_word(), .outer = innermost()};
  made.outer_ahead = ahead_in_loop();
  const Expr begin = resolved(loop.begin);
  registers_.into(begin, made.value);
  code().loops.push_back(std::move(made));
  scope_.define(loop.symbol, begin);
  const int32_t around = std::exchange(once_, number);
  auto result = emit(loop.body);
  once_ = around;
  scope_.erase(loop.symbol);
  TENON_OK(std::move(result), "loop ", loop.symbol);
  return {};
}

// A loop over periods, with code for each iteration of one.
Result<void> Binder::emit_periods(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step,
                                  int64_t period) {
  Loop periods = loop;
  periods.symbol = str("period.", code().loops.size());
  Block body;
  for (int64_t i = 0; i < period; ++i)
    body.statements.push_back(Let{loop.symbol, Expr::symbol(periods.symbol) + i * step, loop.body});
  periods.body = std::move(body);
  return emit_loop(periods, begin, end, period * step, loop.symbol);
}

std::optional<SteadyPart> Binder::steady_part(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) {
  const std::optional<int64_t> iterations = iterations_of(loop, begin, end, step);
  if (!iterations) return {};
  return detail::steady_part(loop, begin, step.constant(), *iterations, scope_);
}

std::optional<int64_t> Binder::iterations_of(const Loop& loop, const Expr& begin, const Expr& end,
                                             const Expr& step) const {
  const Expr length = scope_.simplified(end - begin);
  if (loop.kind != LoopKind::serial || !length.is_constant() || !step.is_constant()) return {};
  if (length.constant() <= 0 || step.constant() < 1) return {};
  return iteration_count(0, length.constant(), step.constant());
}

Result<void> Binder::emit_loop(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step,
                               const std::string& shown, bool once) {
  const Interval range{bounds(begin, scope_.assumptions()).lower, bounds(end - 1, scope_.assumptions()).upper};
  if (!range.lower || !range.upper)
    return error(Code::resource_exhausted, "loop ", loop.symbol, ": its bounds ", begin, " and ", end,
                 " cannot be told to lie within int64");
  if (prove_le(end, begin, scope_.assumptions())) return {};
  if (!prove_le(1, step, scope_.assumptions()))
    TENON_OK(check_at_run(step - 1, str("loop ", loop.symbol, " has a step below 1")), "loop ", loop.symbol);
  TENON_TRY(workers, most_workers(loop, begin, end, step));

  const auto number = static_cast<int32_t>(code().loops.size());
  code().loops.push_back({.symbol = shown.empty() ? loop.symbol : shown,
                          .kind = workers > 1 ? loop.kind : LoopKind::serial,
                          .workers = workers});
  LoopCode made = code().loops.back();
  made.begin = registers_.value(begin);
  made.end = registers_.value(end);
  made.step = registers_.value(step);
  made.limit = registers_.value(resolved(loop.workers));
  made.value = registers_.new_word();
  made.left = registers_.new_word();
  made.counter = registers_.new_word();
  made.outer = innermost();
  made.may_be_parallel = loop.kind != LoopKind::serial;
  code().loops[static_cast<size_t>(number)] = made;

  // As begin + step * number of the iteration, where these are known: then x mod 8 in a loop of step 4 is 4 * (k mod
  // 2), and a fixed distance from a moving begin is the same in all iterations.
  const Expr length = scope_.simplified(end - begin);
  const bool counted = (begin.is_constant() || length.is_constant()) && step.is_constant() && step.constant() >= 1;
  const std::string symbol = counted ? str("iteration.", number) : loop.symbol;
  if (counted) {
    const int64_t most = (begin.is_constant() ? iteration_count(begin.constant(), *range.upper + 1, step.constant())
                                              : iteration_count(0, length.constant(), step.constant())) -
                         1;
    scope_.define(loop.symbol, most == 0 ? begin : begin + step * Expr::symbol(symbol));
    scope_.assumptions()[symbol] = {0, most};
    registers_.enter(symbol, made.counter, 0, 1, workers == 1 && !once);
  } else {
    scope_.define(loop.symbol, Expr::symbol(symbol));
    scope_.assumptions()[symbol] = range;
    registers_.enter(symbol, made.value, begin, step, workers == 1 && !once);
  }
  loops_.push_back({number, loop.kind == LoopKind::pipelined, step_, {}, loop.symbol, shown});
  dims_known_.emplace_back();
  auto result = workers > 1 ? emit_workers(loop, number) : emit(loop.body);
  leave_loop(loop, symbol, number, workers);
  TENON_OK(std::move(result), "loop ", loop.symbol);
  return registers_.status();
}

Result<int64_t> Binder::most_workers(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) const {
  if (loop.kind == LoopKind::serial) return int64_t{1};
  TENON_TRY(limit, most(resolved(loop.workers)), "the workers of loop ", loop.symbol);
  const Interval iterations = bounds(ceildiv(end - begin, max(step, 1)), scope_.assumptions());
  return workers_of(loop, limit, threads_, iterations.upper.value_or(INT64_MAX), inside_workers_);
}

Result<void> Binder::emit_workers(const Loop& loop, int32_t number) {
  const int32_t outer_region = std::exchange(region_, static_cast<int32_t>(result_.regions.size()));
  LoopCode& made = code().loops[static_cast<size_t>(number)];
  result_.regions.push_back({.outer = outer_region, .loop = number, .workers = made.workers});
  made.worker = registers_.new_word();
  made.outer_worker = worker_loops_.empty() ? -1 : code().loops[static_cast<size_t>(worker_loops_.back())].worker;
  const std::string symbol = str("worker.", number);
  registers_.define(symbol, made.worker, registers_.depth());
  scope_.assumptions()[symbol] = {0, threads_ - 1};
  worker_loops_.push_back(number);
  region_levels_.push_back(registers_.depth());
  // Inner loops are known to have one worker only where this loop certainly has several.
  const bool certain = loop.kind != LoopKind::serial && made.limit.known() && made.begin.known() && made.end.known() &&
                       made.step.known();
  const bool was_inside = std::exchange(inside_workers_, inside_workers_ || certain);
  const int64_t first = step_;
  auto result = emit_worker_body(loop, number);
  ArenaRegion& region = result_.regions[static_cast<size_t>(region_)];
  region.first = first;
  region.last = step_ + 1;  // leave_loop counts one
  inside_workers_ = was_inside;
  region_levels_.pop_back();
  worker_loops_.pop_back();
  region_ = outer_region;
  return result;
}

Result<void> Binder::emit_worker_body(const Loop& loop, int32_t number) {
  const LoopCode made = code().loops[static_cast<size_t>(number)];
  if (made.kind != LoopKind::parallel || options_.statistics || !made.begin.known() || !made.end.known() ||
      !made.step.known() || made.step.number < 1)
    return emit(loop.body);
  const int64_t iterations = iteration_count(made.begin.number, made.end.number, made.step.number);
  const Expr any = scope_.resolve(Expr::symbol(loop.symbol));
  const std::optional<SteadyPart> steady =
      steady_members(loop, made.begin.number, made.step.number, iterations, scope_);
  scope_.define(loop.symbol, any);
  if (!steady) return emit(loop.body);
  TENON_OK(emit_members(loop, number, 0, steady->first));
  TENON_OK(emit_members(loop, number, steady->first, steady->last));
  return emit_members(loop, number, steady->last, iterations);
}

Result<void> Binder::emit_members(const Loop& loop, int32_t number, int64_t first, int64_t last) {
  if (first == last) return {};
  const LoopCode made = code().loops[static_cast<size_t>(number)];
  const Expr any = scope_.resolve(Expr::symbol(loop.symbol)), at = Expr::symbol(str("iteration.", number));
  const Loop members{.symbol = str("split.", code().loops.size()), .body = loop.body};
  scope_.define(loop.symbol,
                made.begin.number + made.step.number * (last - first > 1 ? Expr::symbol(members.symbol) : first));
  const size_t around = code().loops.size();
  auto result =
      emit_loop(members, scope_.simplified(max(at, first)), scope_.simplified(min(at + 1, last)), 1, {}, true);
  code().loops[around].symbol.clear();
  scope_.define(loop.symbol, any);
  return result;
}

void Binder::leave_loop(const Loop& loop, const std::string& symbol, int32_t number, int64_t workers) {
  ++step_;
  const OpenLoop open = std::move(loops_.back());
  loops_.pop_back();
  dims_known_.pop_back();
  for (const int32_t block : open.touched) result_.blocks[static_cast<size_t>(block)].use(open.first, step_);
  Registers::LevelCode inner = registers_.leave();
  scope_.assumptions().erase(symbol);
  scope_.erase(loop.symbol);
  LoopCode& made = code().loops[static_cast<size_t>(number)];
  add_steps(inner, made);
  Instr instr{workers > 1 ? Op::workers : Op::loop};
  instr.index = number;
  auto& out = body();
  out.insert(out.end(), inner.entry.begin(), inner.entry.end());
  out.push_back(instr);
  out.insert(out.end(), inner.header.begin(), inner.header.end());
  out.insert(out.end(), inner.body.begin(), inner.body.end());
  instr.op = workers > 1 ? Op::body_end : Op::next;
  out.push_back(instr);
  for (void (*const finish)() : open.finishes) out.push_back({.op = Op::finish, .finish = finish});
}

void Binder::add_steps(Registers::LevelCode& level, LoopCode& loop) {
  const auto add = [](const auto& steps, auto& all, int32_t& first, int32_t& last) {
    first = static_cast<int32_t>(all.size());
    all.insert(all.end(), steps.begin(), steps.end());
    last = static_cast<int32_t>(all.size());
  };
  std::vector<Step> known;
  const bool counted =
      loop.begin.known() && loop.end.known() && loop.step.known() && loop.begin.number < loop.end.number;
  const int64_t iterations =
      counted ? iteration_count(loop.begin.number, loop.end.number, loop.step.number) : INT64_MAX;
  if (std::optional<RingTurns> turns = take_ring_turns(level, iterations, registers_, code())) {
    known = std::move(turns->steps);
    const auto jumps_before = static_cast<int32_t>(code().jumps.size());
    for (Turn& turn : turns->turns) turn.first += jumps_before, turn.last += jumps_before;
    code().jumps.insert(code().jumps.end(), turns->jumps.begin(), turns->jumps.end());
    add(turns->turns, code().turns, loop.first_turn, loop.last_turn);
    loop.to_first_turn = turns->first;
    loop.to_turn = registers_.new_word();
    loop.turn = registers_.new_word();
  }
  std::vector<Increment> others;
  for (const Increment& i : level.increments)
    if (i.by.known())
      known.push_back({i.place, i.by.number});
    else
      others.push_back(i);
  add(known, code().steps, loop.first_step, loop.last_step);
  add(level.ring_steps, code().ring_steps, loop.first_ring_step, loop.last_ring_step);
  add(level.beside_steps, code().beside_steps, loop.first_beside, loop.last_beside);
  add(others, code().increments, loop.first_increment, loop.last_increment);
}

}  // namespace tenon::program::detail
