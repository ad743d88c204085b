#include <tenon/program/exec/steady_internal.hpp>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/walk.hpp>

namespace tenon::program::detail {
namespace {

// Code for a period is made for so many iterations and calls at most, and for kernels that do little: with more
// elements than these in a call, what is saved is not seen.
constexpr int64_t kLongestPeriod = 16;
constexpr int64_t kMostCalls = 128;
constexpr int64_t kFewElements = 8192;
// Conditions within conditions: each round knows the outcome of those that the last one found.
constexpr int kMostRounds = 4;

const std::string kNumber = "steady.iteration";

// Loops of more iterations are not written out.
constexpr int64_t kMostWrittenOut = 16;

bool has_one_iteration(const Loop& loop) {
  return loop.kind == LoopKind::serial && loop.begin.is_constant() && loop.end == loop.begin + 1 &&
         loop.step.is_constant(1);
}

// Nothing that must not be made several times: no memory, transfers or workers of its own.
template <class MayHold>
bool is_plain(const Statement& s, const MayHold& may_hold) {
  bool simple = true;
  for_each_statement(s, [&](const Statement& inner) {
    const auto* loop = inner.as<Loop>();
    const bool known = (loop && may_hold(*loop)) || inner.as<Block>() || inner.as<Let>() || inner.as<Crop>() ||
                       inner.as<Slice>() || inner.as<Transpose>() || inner.as<View>() || inner.as<Call>() ||
                       inner.as<Copy>() || inner.as<Prefetch>() || inner.as<Check>();
    simple = simple && (inner.empty() || known);
  });
  return simple;
}
bool is_simple(const Statement& s) { return is_plain(s, has_one_iteration); }
bool has_simple_loops(const Statement& s) {
  return is_plain(s, [](const Loop& loop) { return loop.kind == LoopKind::serial; });
}

// A box in a ring: its first index, and the places of the ring.
struct RingBox {
  Expr min;
  int64_t places = 0;
};

// The numbers that code for a body computes.
class Numbers {
 public:
  explicit Numbers(Scope& scope) : scope_(scope) {}
  // The names that the body is about are in the scope.
  void collect(const Statement& s) {
    if (s.empty()) return;
    s.visit([this](const auto& statement) { visit(statement); });
  }
  // Calls that may have something to do, by what is known of the loop.
  int64_t calls() const {
    return std::ranges::count_if(calls_, [this](const std::vector<Expr>& extents) {
      return std::ranges::none_of(extents, [this](const Expr& e) { return prove_le(e, 0, scope_.assumptions()); });
    });
  }

  std::vector<Expr> found;
  std::vector<RingBox> rings;
  std::vector<std::string> within;  // numbers of loops in the body, which the scope has assumptions about
  int64_t most_elements = 0;  // that a call writes, as far as they are constant
  bool has_hints = false;

 private:
  void visit(const Block& s) {
    for (const Statement& inner : s.statements) collect(inner);
  }
  void visit(const Let& s) {
    const Expr value = scope_.simplified(scope_.resolve(s.value));
    add(value);
    scope_.define(s.symbol, value);
    collect(s.body);
    scope_.erase(s.symbol);
  }
  void visit(const Crop& s) { show(s, scope_.crop(s)); }
  void visit(const Slice& s) { show(s, scope_.slice(s)); }
  void visit(const Transpose& s) { show(s, scope_.transpose(s)); }
  void visit(const View& s) { show(s, scope_.view(s)); }
  void visit(const Call& s) {
    calls_.emplace_back();
    for (const Operand& o : s.operands) region(o.region, o.access != Access::in);
    for (const Expr& e : s.scalars) add(scope_.resolve(e));
    add(scope_.resolve(s.predicate));
  }
  void visit(const Copy& s) {
    calls_.emplace_back();
    region(s.destination, true);
    region(s.source, false);
    if (const auto* padding = std::get_if<Region>(&s.padding)) region(*padding, false);
    add(scope_.resolve(s.predicate));
  }
  void visit(const Check& s) { add(scope_.resolve(s.condition)); }
  void visit(const Loop& s) {
    const Expr begin = scope_.simplified(scope_.resolve(s.begin)), end = scope_.simplified(scope_.resolve(s.end));
    add(begin);
    add(end);
    if (!has_one_iteration(s)) {
      const std::string number = str(kNumber, ".", s.symbol);
      scope_.assumptions()[number] = {bounds(begin, scope_.assumptions()).lower,
                                      bounds(end - 1, scope_.assumptions()).upper};
      within.push_back(number);
      scope_.define(s.symbol, Expr::symbol(number));
    } else {
      scope_.define(s.symbol, s.begin);
    }
    collect(s.body);
    scope_.erase(s.symbol);
  }
  void visit(const Prefetch& s) {
    has_hints = true;
    for (const Range& r : scope_.cropped(s.region)) {
      add(r.min);
      add(r.extent);
    }
  }
  template <class Other>
  void visit(const Other&) {}  // is_simple: there are none

  template <class Made>
  void show(const Made& s, SymbolicBuffer made) {
    add(made);
    auto before = scope_.exchange(s.buffer, std::move(made));
    collect(s.body);
    scope_.exchange(s.buffer, std::move(before));
  }
  void region(const Region& r, bool written) {
    const SymbolicBuffer box = scope_.region(r);
    add(box);
    int64_t elements = 1;
    for (const SymbolicDim& d : box.dims) {
      if (written) calls_.back().push_back(d.extent);
      if (!is_unfolded(d) && d.fold.is_constant()) rings.push_back({d.min, d.fold.constant()});
      if (d.extent.is_constant()) elements *= d.extent.constant();
    }
    if (written) most_elements = std::max(most_elements, elements);
  }
  void add(const SymbolicBuffer& buffer) {
    for (const SymbolicDim& d : buffer.dims) {
      add(d.min);
      add(d.extent);
    }
  }
  void add(const Expr& e) {
    if (!e.operands().empty()) found.push_back(e);
  }

  Scope& scope_;
  std::vector<std::vector<Expr>> calls_;  // extents of what each call writes
};

// After how many iterations all that is divided has the same rest again; 0: after more than kLongestPeriod, or never.
class Phases {
 public:
  int64_t of(const std::vector<Expr>& numbers) {
    for (const Expr& e : numbers) visit(e);
    return phases_;
  }

 private:
  void visit(const Expr& e) {
    if (phases_ == 0 || e.operands().empty() || !seen_.insert(e).second) return;
    const auto operands = e.operands();
    for (const Expr& operand : operands) visit(operand);
    if (e.kind() != ExprKind::floordiv && e.kind() != ExprKind::mod) return;
    const Expr by = operands[0].substitute({{kNumber, Expr::symbol(kNumber) + 1}}) - operands[0];
    if (by.is_constant(0)) return;
    const int64_t divisor = operands[1].is_constant() ? std::abs(operands[1].constant()) : 0;
    phases_ =
        divisor == 0 ? 0 : std::lcm(phases_, by.is_constant() ? divisor / std::gcd(divisor, by.constant()) : divisor);
    if (phases_ > kLongestPeriod) phases_ = 0;
  }

  std::unordered_set<Expr> seen_;
  int64_t phases_ = 1;
};

// Numbers of iterations at which an outcome is another one than before.
class Turns {
 public:
  std::vector<int64_t> of(const std::vector<Expr>& numbers) {
    for (const Expr& e : numbers) visit(e);
    return std::move(found_);
  }

 private:
  void visit(const Expr& e) {
    if (e.operands().empty() || !seen_.insert(e).second) return;
    const auto operands = e.operands();
    switch (e.kind()) {
      case ExprKind::at_least_0: sign_of(operands[0]); break;
      case ExprKind::is_0:
        sign_of(operands[0]);
        sign_of(-operands[0]);
        break;
      case ExprKind::min:
      case ExprKind::max:
        for (size_t i = 0; i < operands.size(); ++i)
          for (size_t j = i + 1; j < operands.size(); ++j) sign_of(operands[i] - operands[j]);
        break;
      default: break;
    }
    for (const Expr& operand : operands) visit(operand);
  }

  // Where `e` = at_0 + slope * number begins or ceases to be at least 0.
  void sign_of(const Expr& e) {
    const Expr number = Expr::symbol(kNumber);
    const Expr slope = e.substitute({{kNumber, number + 1}}) - e, at_0 = e.substitute({{kNumber, 0}});
    if (!slope.is_constant() || !at_0.is_constant() || slope.is_constant(0)) return;
    const bool rises = slope.constant() > 0;
    const Expr turn = rises ? ceildiv(-at_0, slope) : floordiv(at_0, -slope) + 1;
    if (turn.is_constant()) found_.push_back(turn.constant());
  }

  std::unordered_set<Expr> seen_;
  std::vector<int64_t> found_;
};

// The longest part of `part` without a turn but at its begin.
SteadyPart longest(SteadyPart part, std::vector<int64_t> turns) {
  turns.push_back(part.last);
  std::ranges::sort(turns);
  SteadyPart best{part.first, part.first};
  int64_t from = part.first;
  for (const int64_t turn : turns) {
    if (turn <= from || turn > part.last) continue;
    if (turn - from > best.last - best.first) best = {from, turn};
    from = turn;
  }
  return best;
}

// After how many iterations of `phases` each all boxes are at the same places again.
int64_t period_of(const Numbers& numbers, const SteadyPart& part, int64_t phases, Scope& scope) {
  if (numbers.most_elements > kFewElements) return 1;
  int64_t period = 1;
  for (const RingBox& ring : numbers.rings) {
    const Expr min = scope.simplified(ring.min);
    const Expr by = min.substitute({{kNumber, Expr::symbol(kNumber) + 1}}) - min;
    if (!by.is_constant()) return 1;
    period = std::lcm(period, ring.places / std::gcd(ring.places, by.constant()));
    if (period * phases > kLongestPeriod) return 1;
  }
  return 2 * period <= part.last - part.first && period * numbers.calls() <= kMostCalls ? period : 1;
}

// The steady part of the loop, whose iterations are taken `phases` at a time, and how often that many.
struct Steady {
  SteadyPart part;
  int64_t phases = 1;  // that another look at the loop is to take at a time
  int64_t calls = 0;
};
Steady look_at(const Loop& loop, int64_t first, int64_t step, int64_t iterations, int64_t phases, Scope& scope) {
  SteadyPart part{0, iterations / phases};
  scope.assumptions()[kNumber] = {0, part.last - 1};
  Numbers numbers(scope);
  for (int64_t phase = 0; phase < phases; ++phase) {
    scope.define(loop.symbol, first + step * (phases * Expr::symbol(kNumber) + phase));
    numbers.collect(loop.body);
  }
  for (int round = 0; round < kMostRounds; ++round) {
    const SteadyPart next = longest(part, Turns().of(numbers.found));
    if (next.first == part.first && next.last == part.last) break;
    part = next;
    scope.assumptions()[kNumber] = {part.first, part.last - 1};
    for (Expr& e : numbers.found) e = scope.simplified(e);
  }
  Steady found{part};
  found.part.period = period_of(numbers, part, phases, scope);
  found.phases = Phases().of(numbers.found);
  // Hints cost much where their boxes are found in each run.
  found.part.is_short =
      (numbers.most_elements <= kFewElements || numbers.has_hints) && numbers.calls() <= kMostCalls;
  scope.assumptions().erase(kNumber);
  scope.erase(loop.symbol);
  return found;
}

// As one loop for each iteration.
std::optional<Statement> written_out(const Loop& loop, const Scope& scope) {
  const Expr begin = scope.simplified(scope.resolve(loop.begin)), end = scope.simplified(scope.resolve(loop.end)),
             step = scope.simplified(scope.resolve(loop.step));
  if (loop.kind != LoopKind::serial || !begin.is_constant() || !end.is_constant() || !step.is_constant()) return {};
  if (step.constant() < 1 || begin.constant() >= end.constant()) return {};
  const int64_t iterations = iteration_count(begin.constant(), end.constant(), step.constant());
  if (iterations > kMostWrittenOut) return {};
  Block block;
  for (int64_t i = 0; i < iterations; ++i) {
    const Expr number = begin + i * step;
    block.statements.push_back(Loop{.symbol = loop.symbol, .begin = number, .end = number + 1, .body = loop.body});
  }
  return Statement(std::move(block));
}

Statement with_loops_written_out(const Statement& s, const Scope& scope) {
  const Statement made = with_children(s, [&](const Statement& inner) { return with_loops_written_out(inner, scope); });
  const auto* loop = made.as<Loop>();
  if (!loop || has_one_iteration(*loop)) return made;
  return written_out(*loop, scope).value_or(made);
}

}  // namespace

bool may_be_repeated(const Statement& body, bool in_loop) {
  return has_simple_loops(body) && (in_loop || !is_simple(body));
}

bool is_once(const Loop& loop) { return has_one_iteration(loop) && is_simple(loop.body); }

std::optional<Loop> with_loops_written_out(const Loop& loop, const Scope& scope) {
  Loop made = loop;
  made.body = with_loops_written_out(loop.body, scope);
  if (made.body == loop.body || !is_simple(made.body)) return {};
  return made;
}

std::optional<SteadyPart> steady_part(const Loop& loop, int64_t first, int64_t step, int64_t iterations, Scope& scope) {
  if (iterations < kFewestIterations || !has_simple_loops(loop.body)) return {};
  const Steady one = look_at(loop, first, step, iterations, 1, scope);
  SteadyPart part = one.part;
  if (!is_simple(loop.body)) {
    part.period = 1;
    if (one.calls > kMostCalls) return {};
  } else if (one.phases > 1 && one.part.is_short && iterations / one.phases >= kFewestIterations) {
    const Steady several = look_at(loop, first, step, iterations, one.phases, scope);
    const SteadyPart& p = several.part;
    if (p.is_short) part = {p.first * one.phases, p.last * one.phases, p.period * one.phases};
  }
  const int64_t length = part.last - part.first;
  if ((length == iterations && part.period == 1) || 2 * length < iterations) return {};
  return part;
}

}  // namespace tenon::program::detail
