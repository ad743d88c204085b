#include <tenon/expr/bounds.hpp>

#include <numeric>

#include <tenon/expr/node_internal.hpp>

namespace tenon {
namespace {

using detail::Builder;
using detail::ExprNode;
using detail::Range;
using detail::Walk;
using detail::Wide;

// The ranges of expressions under assumptions, memoised.
class Ranges {
 public:
  explicit Ranges(const Assumptions& assumptions)
      : nothing_known_(assumptions.empty()),
        walk_(
            [](int64_t value) {
              return Range{value, value};
            },
            [&assumptions](const Expr& e, const Walk<Range>& done) {
              if (!e.is_symbol())
                return Range::intersect(
                    detail::range_of(e),
                    detail::range_of_node(*ExprNode::of(e), [&](const Expr& inner) { return done.at(inner); }));
              const auto it = assumptions.find(e.name());
              if (it == assumptions.end()) return Range{};
              const auto& [lower, upper] = it->second;
              return Range{lower ? Wide{*lower} : -Range::kInfinity, upper ? Wide{*upper} : Range::kInfinity};
            }) {}
  Ranges(const Ranges&) = delete;
  // Nodes store their ranges for all values of the symbols.
  Range operator()(const Expr& e) { return nothing_known_ ? detail::range_of(e) : walk_(e); }

 private:
  bool nothing_known_;
  Walk<Range> walk_;
};

Interval to_interval(Range range) {
  Interval result;
  // A bound outside int64 on the far side is widened to what an Interval can represent.
  if (range.lo >= INT64_MIN) result.lower = static_cast<int64_t>(std::min(range.lo, Wide{INT64_MAX}));
  if (range.hi <= INT64_MAX) result.upper = static_cast<int64_t>(std::max(range.hi, Wide{INT64_MIN}));
  return result;
}

// Writes every x mod m as x - m * (x floordiv m), so that ranges and cancellation apply to it.
Expr without_mod(const Expr& e, const Builder& builder) {
  Walk<Expr> walk([](int64_t value) { return Expr(value); },
                  [&](const Expr& node, const Walk<Expr>& done) {
                    if (node.is_symbol()) return node;
                    std::vector<Expr> operands;
                    for (const Expr& operand : node.operands()) operands.push_back(done.at(operand));
                    if (node.kind() != ExprKind::mod) return builder.rebuild(node, operands);
                    return operands[0] - operands[1] * builder.floordiv(operands[0], operands[1]);
                  });
  return walk(e);
}

// The range of a - b, computed from several forms of it until `enough` holds.
template <class Enough>
Range difference_range(const Expr& a, const Expr& b, const Assumptions& assumptions, const Enough& enough) {
  Ranges ranges(assumptions);
  Range result;
  // The forms in ascending order of cost; most claims need only the first.
  const Expr difference = a - b;
  for (int way = 0; way < 3; ++way) {
    const Expr form = way == 0   ? difference
                      : way == 1 ? simplify(difference, assumptions)
                                 : without_mod(a, Builder()) - without_mod(b, Builder());
    if (way > 0 && form == difference) continue;
    result = Range::intersect(result, ranges(form));
    if (result.lo == result.hi) return result;
    if (enough(result)) return result;
    // min(x, y) <= x and so on, for one extremum at a time.
    for (const auto& [term, k] : detail::Linear(form).terms) {
      if (term.kind() != ExprKind::min && term.kind() != ExprKind::max) continue;
      const bool from_above = (term.kind() == ExprKind::min) == (k > 0);
      for (const Expr& operand : term.operands()) {
        const Range range = ranges(form + (operand - term) * k);
        result = Range::intersect(result,
                                  from_above ? Range{-Range::kInfinity, range.hi} : Range{range.lo, Range::kInfinity});
        if (enough(result)) return result;
      }
    }
  }
  return result;
}

enum class Direction : uint8_t { constant, up, down, unknown };

Direction flip(Direction d) { return d == Direction::up ? Direction::down : d == Direction::down ? Direction::up : d; }
Direction both(Direction a, Direction b) {
  if (a == b || b == Direction::constant) return a;
  return a == Direction::constant ? b : Direction::unknown;
}
// The direction of a product of two values with these directions and ranges.
Direction product_direction(Direction a, Range x, Direction b, Range y) {
  if (a == Direction::constant && b == Direction::constant) return a;
  if (a == Direction::unknown || b == Direction::unknown) return Direction::unknown;
  // d(xy) = y dx + x dy: each part needs the sign of the other factor.
  const auto part = [](Direction d, Range factor) {
    if (d == Direction::constant) return d;
    return factor.lo >= 0 ? d : factor.hi <= 0 ? flip(d) : Direction::unknown;
  };
  const Direction dx = part(a, y), dy = part(b, x);
  return both(dx, dy);
}

Direction node_direction(const Expr& e, std::string_view symbol, Ranges& ranges, const Walk<Direction>& done) {
  if (e.is_symbol()) return e.name() == symbol ? Direction::up : Direction::constant;
  const auto operands = e.operands();
  const auto numbers = e.numbers();
  Direction all = Direction::constant;
  for (const Expr& operand : operands) all = both(all, done.at(operand));
  switch (e.kind()) {
    case ExprKind::sum:
      all = Direction::constant;
      for (size_t i = 0; i < operands.size(); ++i)
        all = both(all, numbers[i] > 0 ? done.at(operands[i]) : flip(done.at(operands[i])));
      return all;
    case ExprKind::product:
    case ExprKind::unfolded_product: {
      Range range{1, 1};
      all = Direction::constant;
      for (size_t i = 0; i < operands.size(); ++i)
        for (int64_t k = numbers.empty() ? 1 : numbers[i]; k > 0; --k) {
          const Range factor = ranges(operands[i]);
          all = product_direction(all, range, done.at(operands[i]), factor);
          range = range * factor;
        }
      return all;
    }
    case ExprKind::floordiv: {
      const Range divisor = ranges(operands[1]);
      if (done.at(operands[1]) != Direction::constant) return Direction::unknown;
      return divisor.lo > 0 ? all : divisor.hi < 0 ? flip(all) : all == Direction::constant ? all : Direction::unknown;
    }
    case ExprKind::select:
      return done.at(operands[0]) == Direction::constant ? both(done.at(operands[1]), done.at(operands[2]))
                                                         : Direction::unknown;
    case ExprKind::mod:
    case ExprKind::is_0: return all == Direction::constant ? all : Direction::unknown;
    default: return all;  // sums, min, max, at_least_0 follow their operands
  }
}

bool is_monotonic(const Expr& e, std::string_view symbol, const Assumptions& assumptions, Direction wanted) {
  Ranges ranges(assumptions);
  Walk<Direction> walk(
      [](int64_t) { return Direction::constant; },
      [&](const Expr& node, const Walk<Direction>& done) { return node_direction(node, symbol, ranges, done); });
  if (const Direction found = walk(e); found == wanted || found == Direction::constant) return true;
  // Symbols take all integers of an interval, so it suffices to consider a step of one. Where the divisor of a floordiv
  // can be 0, a step may cross a gap.
  bool gap = false;
  Walk<bool> find_gap([](int64_t) { return false; },
                      [&](const Expr& node, const Walk<bool>&) {
                        const bool divides = node.kind() == ExprKind::floordiv || node.kind() == ExprKind::mod;
                        return gap |= divides && ranges(node.operands()[1]).has_zero();
                      });
  find_gap(e);
  if (gap) return false;
  const Expr next = e.substitute({{std::string(symbol), Expr::symbol(symbol) + 1}});
  return wanted == Direction::up ? prove_le(e, next, assumptions) : prove_le(next, e, assumptions);
}

// Drops operands of a min (max) that another operand is never above (below), even if both are unbounded: n and n + i
// for i >= 0. The builder itself compares constants.
void drop_beaten(ExprKind kind, std::vector<Expr>& operands, Ranges& ranges) {
  for (size_t i = 0; i < operands.size(); ++i)
    std::erase_if(operands, [&, by = operands[i]](const Expr& e) {
      if (e == by || e.is_constant() || by.is_constant()) return false;
      return kind == ExprKind::min ? ranges(e - by).lo >= 0 : ranges(e - by).hi <= 0;
    });
}

}  // namespace

Interval bounds(const Expr& e, const Assumptions& assumptions) { return to_interval(Ranges(assumptions)(e)); }

bool prove_le(const Expr& a, const Expr& b, const Assumptions& assumptions) {
  const auto proved = [](Range r) { return r.hi <= 0; };
  return proved(difference_range(a, b, assumptions, proved));
}
bool prove_lt(const Expr& a, const Expr& b, const Assumptions& assumptions) {
  const auto proved = [](Range r) { return r.hi < 0; };
  return proved(difference_range(a, b, assumptions, proved));
}
bool prove_eq(const Expr& a, const Expr& b, const Assumptions& assumptions) {
  const auto proved = [](Range r) { return r.within(0, 0); };
  return a == b || proved(difference_range(a, b, assumptions, proved));
}

Expr simplify(const Expr& e, const Assumptions& assumptions) {
  if (assumptions.empty()) return e;
  Ranges ranges(assumptions);
  const Builder builder([&](const Expr& inner) { return ranges(inner); });
  Walk<Expr> walk([](int64_t value) { return Expr(value); },
                  [&](const Expr& node, const Walk<Expr>& done) {
                    const Range range = ranges(node);
                    if (range.lo == range.hi && detail::fits(range.lo)) return Expr(static_cast<int64_t>(range.lo));
                    if (node.is_symbol()) return node;
                    std::vector<Expr> operands;
                    for (const Expr& operand : node.operands()) operands.push_back(done.at(operand));
                    if (node.kind() == ExprKind::min || node.kind() == ExprKind::max)
                      drop_beaten(node.kind(), operands, ranges);
                    return builder.rebuild(node, operands);
                  });
  return walk(e);
}

bool is_non_decreasing_in(const Expr& e, std::string_view symbol, const Assumptions& assumptions) {
  return is_monotonic(e, symbol, assumptions, Direction::up);
}
bool is_non_increasing_in(const Expr& e, std::string_view symbol, const Assumptions& assumptions) {
  return is_monotonic(e, symbol, assumptions, Direction::down);
}

int64_t alignment_of(const Expr& e, const SymbolValues& symbol_alignments) {
  // Divisors stay within int64: a product that would exceed it is replaced by the larger factor, which still divides.
  const auto multiply = [](int64_t a, int64_t b) {
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? std::max(a, b) : result;
  };
  const auto absolute = [](int64_t v) { return v == INT64_MIN ? int64_t{1} << 62 : v < 0 ? -v : v; };
  Walk<int64_t> walk(absolute, [&](const Expr& node, const Walk<int64_t>& done) -> int64_t {
    const auto operands = node.operands();
    const auto numbers = node.numbers();
    int64_t result = 0;
    switch (node.kind()) {
      case ExprKind::symbol: {
        const auto it = symbol_alignments.find(node.name());
        return it == symbol_alignments.end() ? 1 : std::max<int64_t>(it->second, 1);
      }
      case ExprKind::sum:
        result = absolute(numbers.back());
        for (size_t i = 0; i < operands.size(); ++i)
          result = std::gcd(result, multiply(done.at(operands[i]), absolute(numbers[i])));
        return result;
      case ExprKind::product:
      case ExprKind::unfolded_product:
        result = 1;
        for (size_t i = 0; i < operands.size(); ++i)
          for (int64_t k = numbers.empty() ? 1 : numbers[i]; k > 0; --k)
            result = multiply(result, done.at(operands[i]));
        return result;
      case ExprKind::floordiv: {
        const int64_t dividend = done.at(operands[0]);
        if (!operands[1].is_constant() || operands[1].is_constant(0)) return 1;
        const int64_t divisor = absolute(operands[1].constant());
        return operands[1].constant() != INT64_MIN && dividend % divisor == 0 ? dividend / divisor : 1;
      }
      case ExprKind::select: return std::gcd(done.at(operands[1]), done.at(operands[2]));
      case ExprKind::unfolded_sum:
      case ExprKind::mod:  // x mod m is x minus a multiple of m
      case ExprKind::min:
      case ExprKind::max:
        for (const Expr& operand : operands) result = std::gcd(result, done.at(operand));
        return result;
      default: return 1;
    }
  });
  return walk(e);
}

}  // namespace tenon
