#include <tenon/program/pipeline/index_range_internal.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

namespace tenon::program {

namespace {

// Larger periods are not considered: the bound would be a maximum of as many expressions.
constexpr int64_t kMaxPeriod = 64;

template <class Visit>
void walk(const Expr& root, const Visit& visit) {
  std::vector<Expr> stack{root};
  std::unordered_set<Expr> seen;
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e.is_constant()) continue;
    if (!e.operands().empty() && !seen.insert(e).second) continue;
    visit(e);
    for (const Expr& operand : e.operands()) stack.push_back(operand);
  }
}

const Window* find(const SymbolWindows& symbols, std::string_view name) {
  for (const auto& [symbol, window] : symbols)
    if (symbol == name) return &window;
  return nullptr;
}

// Counts occurrences of the symbols in `e`, a shared subexpression once for each of its uses; at most 2 for each
// symbol.
void count(const Expr& e, const SymbolWindows& symbols, std::vector<int>& occurrences, int& budget) {
  if (--budget < 0) return;
  if (e.is_symbol())
    for (size_t i = 0; i < symbols.size(); ++i) occurrences[i] += symbols[i].first == e.name();
  for (const Expr& operand : e.operands()) count(operand, symbols, occurrences, budget);
}

Window scaled(const Window& w, int64_t by) {
  return by >= 0 ? Window(by * w.first, by * w.last) : Window(by * w.last, by * w.first);
}

Window times(const Window& a, const Window& b) {
  if (a.first == a.last && a.first.is_constant()) return scaled(b, a.first.constant());
  if (b.first == b.last) {
    const Interval sign = bounds(b.first, {});
    if (sign.lower && *sign.lower >= 0) return {a.first * b.first, a.last * b.first};
    const Expr p = a.first * b.first, q = a.last * b.first;
    return {min(p, q), max(p, q)};
  }
  if (a.first == a.last) return times(b, a);
  const std::vector<Expr> corners{a.first * b.first, a.first * b.last, a.last * b.first, a.last * b.last};
  return {min(corners), max(corners)};
}

Window divided(const Window& a, const Window& b) {
  if (b.first == b.last) {
    const Interval sign = bounds(b.first, {});
    const Expr p = floordiv(a.first, b.first), q = floordiv(a.last, b.first);
    if (sign.lower && *sign.lower >= 0) return {p, q};
    return {min(p, q), max(p, q)};
  }
  // a floordiv b| is at most |a| for b of either sign.
  const Expr most = max(max(a.first, -a.first), max(a.last, -a.last));
  return {-most - 1, most};
}

Window remainder(const Window& a, const Window& b) {
  if (a.first == a.last && b.first == b.last) return mod(a.first, b.first);
  if (b.first != b.last) return {min(b.first + 1, Expr(0)), max(b.last - 1, Expr(0))};
  // Within one period the remainder increases with the index.
  const Expr same = equal(floordiv(a.first, b.first), floordiv(a.last, b.first));
  return {select(same, mod(a.first, b.first), min(b.first + 1, Expr(0))),
          select(same, mod(a.last, b.first), max(b.first - 1, Expr(0)))};
}

Window structural(const Expr& e, const SymbolWindows& symbols);

Window of_sum(const Expr& e, const SymbolWindows& symbols) {
  const std::span<const int64_t> numbers = e.numbers();
  if (e.operands().size() == 1) {
    const Window w = scaled(structural(e.operands()[0], symbols), numbers[0]);
    return {w.first + numbers[1], w.last + numbers[1]};
  }
  std::vector<Expr> first{numbers.back()}, last{numbers.back()};
  for (size_t i = 0; i < e.operands().size(); ++i) {
    const Window w = scaled(structural(e.operands()[i], symbols), numbers[i]);
    first.push_back(w.first);
    last.push_back(w.last);
  }
  return {sum(first), sum(last)};
}

Window of_product(const Expr& e, const SymbolWindows& symbols) {
  Window out(Expr(1));
  for (size_t i = 0; i < e.operands().size(); ++i) {
    const Window w = structural(e.operands()[i], symbols);
    const int64_t power = e.kind() == ExprKind::product ? e.numbers()[i] : 1;
    for (int64_t k = 0; k < power; ++k) out = times(out, w);
  }
  return out;
}

Window of_select(const Expr& e, const SymbolWindows& symbols) {
  const Window c = structural(e.operands()[0], symbols);
  const Window a = structural(e.operands()[1], symbols), b = structural(e.operands()[2], symbols);
  if (c.first == c.last) return {select(c.first, a.first, b.first), select(c.first, a.last, b.last)};
  return united(a, b);
}

Window structural(const Expr& e, const SymbolWindows& symbols) {
  const auto operand = [&](size_t i) { return structural(e.operands()[i], symbols); };
  switch (e.kind()) {
    case ExprKind::constant: return e;
    case ExprKind::symbol: {
      const Window* w = find(symbols, e.name());
      return w ? *w : Window(e);
    }
    case ExprKind::sum: return of_sum(e, symbols);
    case ExprKind::product:
    case ExprKind::unfolded_product: return of_product(e, symbols);
    case ExprKind::floordiv: return divided(operand(0), operand(1));
    case ExprKind::mod: return remainder(operand(0), operand(1));
    case ExprKind::select: return of_select(e, symbols);
    case ExprKind::at_least_0: {
      const Window w = operand(0);
      return {less_equal(0, w.first), less_equal(0, w.last)};
    }
    case ExprKind::is_0: {
      const Window w = operand(0);
      return w.first == w.last ? Window(equal(w.first, 0)) : Window(0, 1);
    }
    case ExprKind::min:
    case ExprKind::max: {
      std::vector<Expr> first, last;
      for (size_t i = 0; i < e.operands().size(); ++i) {
        const Window w = operand(i);
        first.push_back(w.first);
        last.push_back(w.last);
      }
      const bool least = e.kind() == ExprKind::min;
      return {least ? min(first) : max(first), least ? min(last) : max(last)};
    }
    case ExprKind::unfolded_sum: {
      Window out(Expr(0));
      for (size_t i = 0; i < e.operands().size(); ++i) {
        const Window w = operand(i);
        out = {out.first + w.first, out.last + w.last};
      }
      return out;
    }
  }
  return e;
}

enum class End : uint8_t { first, last };

// One end of structural(e), at half of the cost.
Expr structural_end(const Expr& e, const SymbolWindows& symbols, End end) {
  if (e.kind() != ExprKind::sum) {
    const Window w = structural(e, symbols);
    return end == End::first ? w.first : w.last;
  }
  const std::span<const int64_t> numbers = e.numbers();
  Expr total = numbers.back();
  for (size_t i = 0; i < e.operands().size(); ++i) {
    const End there = (end == End::first) == (numbers[i] > 0) ? End::first : End::last;
    total += numbers[i] * structural_end(e.operands()[i], symbols, there);
  }
  return total;
}

}  // namespace

namespace {

// Works without a set of visited nodes, which would cost more than most expressions have nodes; empty when the budget
// is exceeded.
std::optional<bool> depends_on_within(const Expr& e, std::string_view symbol, int& budget) {
  if (e.is_constant()) return false;
  if (e.is_symbol()) return e.name() == symbol;
  if (--budget < 0) return {};
  for (const Expr& operand : e.operands()) {
    const auto found = depends_on_within(operand, symbol, budget);
    if (!found || *found) return found;
  }
  return false;
}

}  // namespace

bool depends_on(const Expr& e, std::string_view symbol) {
  int budget = 100;
  if (const auto quick = depends_on_within(e, symbol, budget)) return *quick;
  bool found = false;
  walk(e, [&](const Expr& node) { found = found || (node.is_symbol() && node.name() == symbol); });
  return found;
}

namespace {

bool each_occurs_once(const Expr& e, const SymbolWindows& symbols) {
  std::vector<int> occurrences(symbols.size());
  int budget = 256;
  count(e, symbols, occurrences, budget);
  return budget >= 0 && std::ranges::all_of(occurrences, [](int n) { return n <= 1; });
}

// Where a symbol occurs more than once, the extreme values of `e` are at the ends of its window if it is monotonic in
// between.
struct Extremes {
  Substitution low, high;
  SymbolWindows rest;
  Extremes(const Expr& e, const SymbolWindows& symbols) {
    for (const auto& [name, window] : symbols) {
      if (is_non_decreasing_in(e, name)) {
        low[name] = window.first;
        high[name] = window.last;
      } else if (is_non_increasing_in(e, name)) {
        low[name] = window.last;
        high[name] = window.first;
      } else {
        rest.emplace_back(name, window);
      }
    }
  }
};

Expr image_end(const Expr& e, const SymbolWindows& symbols, End end) {
  if (each_occurs_once(e, symbols)) return structural_end(e, symbols, end);
  const Extremes extremes(e, symbols);
  return structural_end(e.substitute(end == End::first ? extremes.low : extremes.high), extremes.rest, end);
}

}  // namespace

Window image(const Expr& e, const SymbolWindows& symbols) {
  if (each_occurs_once(e, symbols)) return structural(e, symbols);
  const Extremes extremes(e, symbols);
  return {structural_end(e.substitute(extremes.low), extremes.rest, End::first),
          structural_end(e.substitute(extremes.high), extremes.rest, End::last)};
}

Window image(const Window& w, const SymbolWindows& symbols) {
  if (w.first == w.last) return image(w.first, symbols);
  return {image_end(w.first, symbols, End::first), image_end(w.last, symbols, End::last)};
}

Expr first_of_image(const Window& w, const SymbolWindows& symbols) { return image_end(w.first, symbols, End::first); }

Window united(const Window& a, const Window& b) { return {min(a.first, b.first), max(a.last, b.last)}; }
Window intersected(const Window& a, const Window& b) { return {max(a.first, b.first), min(a.last, b.last)}; }
Window substituted(const Window& w, const Substitution& map) {
  return {w.first.substitute(map), w.last.substitute(map)};
}

// --- the largest difference ---

namespace {

// e as min or max of parts: offsets, positive factors and divisions by positive constants are distributed to the parts.
struct Extremum {
  ExprKind kind;
  std::vector<Expr> parts;
};

std::optional<Extremum> as_extremum(const Expr& e) {
  switch (e.kind()) {
    case ExprKind::min:
    case ExprKind::max: return Extremum{e.kind(), {e.operands().begin(), e.operands().end()}};
    case ExprKind::floordiv: {
      if (!e.operands()[1].is_constant()) return {};
      auto inner = as_extremum(e.operands()[0]);
      if (!inner) return {};
      for (Expr& part : inner->parts) part = floordiv(part, e.operands()[1]);
      return inner;
    }
    case ExprKind::sum: {
      for (size_t i = 0; i < e.operands().size(); ++i) {
        auto inner = as_extremum(e.operands()[i]);
        const int64_t factor = e.numbers()[i];
        if (!inner) continue;
        const Expr rest = e - factor * e.operands()[i];
        if (factor < 0) inner->kind = inner->kind == ExprKind::min ? ExprKind::max : ExprKind::min;
        for (Expr& part : inner->parts) part = factor * part + rest;
        return inner;
      }
      return {};
    }
    default: return {};
  }
}

// The least common multiple of all constant divisors of terms with the symbol; 0 when there is another divisor, or the
// multiple exceeds kMaxPeriod.
int64_t period_of(const Expr& e, const std::string& symbol) {
  int64_t period = 1;
  walk(e, [&](const Expr& node) {
    if (period == 0 || (node.kind() != ExprKind::floordiv && node.kind() != ExprKind::mod)) return;
    if (!depends_on(node, symbol)) return;
    const Expr& by = node.operands()[1];
    period = by.is_constant() && by.constant() <= kMaxPeriod ? std::lcm(period, by.constant()) : 0;
    if (period > kMaxPeriod) period = 0;
  });
  return period;
}

// u floordiv n - v floordiv n <= (u - v + n - 1) floordiv n, for every pair of such terms.
Expr joined_quotients(const Expr& e, const std::string& symbol) {
  if (e.kind() != ExprKind::sum) return e;
  const auto is_quotient = [&](const Expr& t) {
    return t.kind() == ExprKind::floordiv && t.operands()[1].is_constant() && depends_on(t, symbol);
  };
  for (size_t i = 0; i < e.operands().size(); ++i)
    for (size_t j = 0; j < e.operands().size(); ++j) {
      const Expr &u = e.operands()[i], &v = e.operands()[j];
      const int64_t k = e.numbers()[i];
      if (k <= 0 || e.numbers()[j] != -k || !is_quotient(u) || !is_quotient(v) || u.operands()[1] != v.operands()[1])
        continue;
      const Expr n = u.operands()[1];
      return joined_quotients(e - k * u + k * v + k * floordiv(u.operands()[0] - v.operands()[0] + n - 1, n), symbol);
    }
  return e;
}

Expr supremum_of(const Expr& e, const LoopRange& loop) {
  if (!depends_on(e, loop.symbol)) return e;
  // In terms of the iteration number i: the symbol is first + i * step.
  if (loop.step.is_constant()) {
    const Expr i = Expr::symbol("program.iteration");
    const Expr by_iteration = e.substitute({{loop.symbol, loop.first + loop.step * i}});
    if (!depends_on(by_iteration, i.name())) return by_iteration;
    const int64_t period = period_of(by_iteration, std::string(i.name()));
    if (period > 0 && by_iteration.substitute({{std::string(i.name()), i + period}}) == by_iteration) {
      std::vector<Expr> values;
      for (int64_t k = 0; k < period; ++k) values.push_back(by_iteration.substitute({{std::string(i.name()), k}}));
      return max(values);
    }
  }
  const Expr joined = joined_quotients(e, loop.symbol);
  if (!depends_on(joined, loop.symbol)) return joined;
  return image(joined, {{loop.symbol, Window(loop.first, loop.last)}}).last;
}

}  // namespace

namespace {

// The number of pairs of parts grows with the product of nested extrema: above this, each side is bounded separately.
constexpr int kMaxPairs = 48;

Expr supremum_of_pairs(const Expr& upper, const Expr& lower, const LoopRange& loop, int& budget) {
  const bool upper_depends = depends_on(upper, loop.symbol), lower_depends = depends_on(lower, loop.symbol);
  if (!upper_depends && !lower_depends) return upper - lower;
  if (--budget < 0) {
    const SymbolWindows all{{loop.symbol, Window(loop.first, loop.last)}};
    return image(upper, all).last - image(lower, all).first;
  }
  const auto parts = upper_depends ? as_extremum(upper) : std::nullopt;
  const auto lower_parts = !parts && lower_depends ? as_extremum(lower) : std::nullopt;
  if (!parts && !lower_parts) return supremum_of(upper - lower, loop);
  std::vector<Expr> values;
  if (parts) {
    for (const Expr& part : parts->parts) values.push_back(supremum_of_pairs(part, lower, loop, budget));
    return parts->kind == ExprKind::min ? min(values) : max(values);
  }
  for (const Expr& part : lower_parts->parts) values.push_back(supremum_of_pairs(upper, part, loop, budget));
  return lower_parts->kind == ExprKind::max ? min(values) : max(values);
}

}  // namespace

Expr supremum_of_difference(const Expr& upper, const Expr& lower, const LoopRange& loop) {
  int budget = kMaxPairs;
  return supremum_of_pairs(upper, lower, loop, budget);
}

Slope slope_of(const Expr& e, const std::string& symbol) {
  if (const auto parts = as_extremum(e); parts && depends_on(e, symbol)) {
    // Constant limits do not affect how fast the rest moves.
    Slope slope;
    for (const Expr& part : parts->parts) {
      if (!depends_on(part, symbol)) continue;
      const Slope s = slope_of(part, symbol);
      if (s.period == 0) return {};
      if (slope.period == 0 || s.rise * slope.period < slope.rise * s.period) slope = s;
    }
    return slope;
  }
  const int64_t period = period_of(e, symbol);
  if (period == 0) return {};
  const Expr rise = e.substitute({{symbol, Expr::symbol(symbol) + period}}) - e;
  return rise.is_constant() ? Slope{rise.constant(), period} : Slope{};
}

}  // namespace tenon::program
