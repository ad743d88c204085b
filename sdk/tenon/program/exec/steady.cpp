#include <tenon/program/exec/steady_internal.hpp>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include <tenon/program/exec/simple_loops_internal.hpp>
#include <tenon/program/exec/steady_numbers_internal.hpp>

namespace tenon::program::detail {
namespace {

// Limits for code of a whole period: iterations and calls, and elements per call; with kernels that do more, the saving
// is not noticeable.
constexpr int64_t kLongestPeriod = 16;
constexpr int64_t kMostCalls = 128;
constexpr int64_t kFewElements = 8192;
// Nested conditions: each round knows the outcome of those that the previous one found.
constexpr int kMostRounds = 4;

// The number of iterations after which all dividends have the same remainders again; 0: more than kLongestPeriod, or
// never.
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
    const Expr by = operands[0].substitute({{kSteadyNumber, Expr::symbol(kSteadyNumber) + 1}}) - operands[0];
    if (by.is_constant(0)) return;
    const int64_t divisor = operands[1].is_constant() ? std::abs(operands[1].constant()) : 0;
    phases_ =
        divisor == 0 ? 0 : std::lcm(phases_, by.is_constant() ? divisor / std::gcd(divisor, by.constant()) : divisor);
    if (phases_ > kLongestPeriod) phases_ = 0;
  }

  std::unordered_set<Expr> seen_;
  int64_t phases_ = 1;
};

// Iteration numbers at which an outcome changes.
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

  // Where `e` = at_0 + slope * number starts or ceases to be non-negative.
  void sign_of(const Expr& e) {
    const Expr number = Expr::symbol(kSteadyNumber);
    const Expr slope = e.substitute({{kSteadyNumber, number + 1}}) - e, at_0 = e.substitute({{kSteadyNumber, 0}});
    if (!slope.is_constant() || !at_0.is_constant() || slope.is_constant(0)) return;
    const bool rises = slope.constant() > 0;
    const Expr turn = rises ? ceildiv(-at_0, slope) : floordiv(at_0, -slope) + 1;
    if (turn.is_constant()) found_.push_back(turn.constant());
  }

  std::unordered_set<Expr> seen_;
  std::vector<int64_t> found_;
};

// The longest part of `part` with a turn at most at its beginning.
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

// The number of iterations, in units of `phases`, after which all boxes are at the same positions again; also 1 where
// these positions are not known for iterations aligned to it.
int64_t period_of(const Numbers& numbers, const SteadyPart& part, const Expr& first, int64_t step, int64_t phases,
                  Scope& scope) {
  if (numbers.most_elements > kFewElements) return 1;
  int64_t period = 1;
  for (const RingBox& ring : numbers.rings) {
    const Expr min = scope.simplified(ring.min);
    const Expr by = min.substitute({{kSteadyNumber, Expr::symbol(kSteadyNumber) + 1}}) - min;
    if (!by.is_constant()) return 1;
    period = std::lcm(period, ring.places / std::gcd(ring.places, by.constant()));
    if (period * phases > kLongestPeriod) return 1;
  }
  if (!first.is_constant()) {
    const Substitution aligned{{kSteadyNumber, aligned_iteration(first, step * phases, period, scope)}};
    const auto is_known = [&](const RingBox& ring) {
      return scope.simplified(mod(ring.min.substitute(aligned), ring.places)).is_constant();
    };
    if (!std::ranges::all_of(numbers.rings, is_known)) return 1;
  }
  return 2 * period <= part.last - part.first && period * numbers.calls() <= kMostCalls ? period : 1;
}

// The numbers of a loop's body in some of its iterations, processed `phases` at a time; the scope has the corresponding
// assumptions during the lifetime of this object.
class LookAt {
 public:
  LookAt(const Loop& loop, const Expr& first, int64_t step, int64_t phases, const SteadyPart& part, Scope& scope)
      : numbers(scope), loop_(loop), scope_(scope) {
    among(part);
    for (int64_t phase = 0; phase < phases; ++phase) {
      scope.define(loop.symbol, first + step * (phases * Expr::symbol(kSteadyNumber) + phase));
      numbers.collect(loop.body);
    }
  }
  LookAt(const LookAt&) = delete;
  LookAt& operator=(const LookAt&) = delete;
  ~LookAt() {
    scope_.assumptions().erase(kSteadyNumber);
    for (const std::string& number : numbers.within) scope_.assumptions().erase(number);
    scope_.erase(loop_.symbol);
  }

  // Restricts the assumptions to these iterations.
  void among(const SteadyPart& part) { scope_.assumptions()[kSteadyNumber] = {part.first, part.last - 1}; }
  void simplify() {
    for (Expr& e : numbers.found) e = scope_.simplified(e);
  }

  Numbers numbers;

 private:
  const Loop& loop_;
  Scope& scope_;
};

// The steady part of the loop, whose iterations are processed `phases` at a time, and its period in that unit.
struct Steady {
  SteadyPart part;
  int64_t phases = 1;  // to be processed at a time by the next analysis
  int64_t calls = 0;
};
Steady look_at(const Loop& loop, const Expr& first, int64_t step, int64_t iterations, int64_t phases, Scope& scope) {
  SteadyPart part{0, iterations / phases};
  LookAt look(loop, first, step, phases, part, scope);
  Numbers& numbers = look.numbers;
  for (int round = 0; round < kMostRounds; ++round) {
    const SteadyPart next = longest(part, Turns().of(numbers.found));
    if (next.first == part.first && next.last == part.last) break;
    part = next;
    look.among(part);
    look.simplify();
  }
  Steady found{part};
  found.part.period = period_of(numbers, part, first, step, phases, scope);
  found.phases = Phases().of(numbers.found);
  // Hints are expensive where their boxes are evaluated in each run.
  found.part.is_short = (numbers.most_elements <= kFewElements || numbers.has_hints) && numbers.calls() <= kMostCalls;
  return found;
}

}  // namespace

Expr aligned_iteration(const Expr& first, int64_t step, int64_t period, const Scope& scope) {
  return period * Expr::symbol("steady.period") - scope.simplified(floordiv(first, step));
}

std::optional<SteadyPart> steady_part(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                      Scope& scope) {
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

std::optional<SteadyPart> steady_members(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                         Scope& scope) {
  if (iterations < 2 || !may_be_split(loop.body)) return {};
  const auto numbers_of = [&](const SteadyPart& members) {
    LookAt look(loop, first, step, 1, members, scope);
    look.simplify();
    return std::move(look.numbers.found);
  };
  SteadyPart part{0, iterations};
  const std::vector<Expr> all = numbers_of(part);
  if (all != numbers_of({1, iterations})) part.first = 1;
  if (all != numbers_of({0, iterations - 1})) part.last = iterations - 1;
  if (part.last - part.first == iterations) return {};
  return part;
}

}  // namespace tenon::program::detail
