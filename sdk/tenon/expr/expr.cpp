#include <tenon/expr/expr.hpp>

#include <numeric>
#include <optional>

#include <tenon/expr/node.hpp>
#include <tenon/support/hash.hpp>

namespace tenon {
namespace detail {
namespace {

// Fails (nullopt) only where a number leaves int64.
using MaybeExpr = std::optional<Expr>;

uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }

// Of sorted, distinct terms, whose coefficients fit.
template <class Number>
Expr make_linear(const std::vector<std::pair<Expr, Number>>& terms, int64_t constant) {
  if (terms.empty()) return constant;
  if (terms.size() == 1 && terms[0].second == 1 && constant == 0) return terms[0].first;
  std::vector<Expr> operands;
  std::vector<int64_t> numbers;
  operands.reserve(terms.size());
  numbers.reserve(terms.size() + 1);
  for (const auto& [term, coefficient] : terms) {
    operands.push_back(term);
    numbers.push_back(static_cast<int64_t>(coefficient));
  }
  numbers.push_back(constant);
  return ExprNode::make(ExprKind::sum, std::move(operands), std::move(numbers));
}

// Sums up scaled expressions; a number that leaves 128 bits on the way makes finish() fail.
class Accumulator {
 public:
  void add(const Expr& e, Wide scale) {
    if (e.is_constant()) return add_constant(multiply(e.constant(), scale));
    if (e.kind() != ExprKind::sum) return add_term(e, scale);
    const auto operands = e.operands();
    const auto numbers = e.numbers();
    for (size_t i = 0; i < operands.size(); ++i) add_term(operands[i], multiply(numbers[i], scale));
    add_constant(multiply(numbers.back(), scale));
  }
  void add_term(Expr term, Wide coefficient) { terms_.emplace_back(std::move(term), coefficient); }
  void add_constant(Wide value) { overflow_ |= __builtin_add_overflow(constant_, value, &constant_); }

  MaybeExpr finish() {
    merge();
    if (join_divisions()) merge();
    if (overflow_ || !fits(constant_)) return std::nullopt;
    if (std::ranges::any_of(terms_, [](const auto& t) { return !fits(t.second); })) return std::nullopt;
    return make_linear(terms_, static_cast<int64_t>(constant_));
  }

 private:
  Wide multiply(Wide a, Wide b) {
    Wide result;
    overflow_ |= __builtin_mul_overflow(a, b, &result);
    return result;
  }

  void merge() {
    const auto by_term = [](const auto& a, const auto& b) { return a.first < b.first; };
    // Mostly two expressions are added, and the terms of each are sorted.
    const auto middle = std::is_sorted_until(terms_.begin(), terms_.end(), by_term);
    if (std::is_sorted(middle, terms_.end(), by_term))
      std::inplace_merge(terms_.begin(), middle, terms_.end(), by_term);
    else
      std::sort(terms_.begin(), terms_.end(), by_term);
    size_t kept = 0;
    for (size_t i = 0; i < terms_.size();) {
      auto [term, total] = std::move(terms_[i]);
      for (++i; i < terms_.size() && terms_[i].first == term; ++i)
        overflow_ |= __builtin_add_overflow(total, terms_[i].second, &total);
      if (total != 0) terms_[kept++] = {std::move(term), total};
    }
    terms_.resize(kept);
  }

  // With x = c * F + M, F = x floordiv c, M = x mod c, c a constant: k*M + k*c*F -> k*x; k*x - k*c*F -> k*M;
  // k*x - k*M -> k*c*F. True when terms were added or taken (zero coefficients may be left).
  bool join_divisions();

  std::vector<std::pair<Expr, Wide>> terms_;
  Wide constant_ = 0;
  bool overflow_ = false;
};

bool is_division(const Expr& e) {
  return (e.kind() == ExprKind::floordiv || e.kind() == ExprKind::mod) && e.operands()[1].is_constant();
}

bool Accumulator::join_divisions() {
  if (overflow_ || std::none_of(terms_.begin(), terms_.end(), [&](const auto& t) { return is_division(t.first); }))
    return false;
  std::map<Expr, Wide> terms(terms_.begin(), terms_.end());
  const auto coefficient_of = [&](const Expr& term) {
    const auto it = terms.find(term);
    return it == terms.end() ? Wide{0} : it->second;
  };
  const auto change = [&](const Expr& e, Wide scale) {
    const Linear linear(e);
    for (const auto& [term, coefficient] : linear.terms) {
      Wide& total = terms[term];
      overflow_ |= __builtin_add_overflow(total, multiply(coefficient, scale), &total);
      if (total == 0) terms.erase(term);
    }
    add_constant(multiply(linear.constant, scale));
  };
  // Whether the terms hold scale * x, apart from the constant of x.
  const auto has = [&](const Linear& x, Wide scale) {
    return !x.terms.empty() && std::all_of(x.terms.begin(), x.terms.end(),
                                           [&](const auto& t) { return coefficient_of(t.first) == t.second * scale; });
  };
  // Each step takes away a division or several terms; the cap only guards against our own mistakes.
  bool changed = false;
  for (int round = 0; round < 16; ++round) {
    bool changed_now = false;
    for (const auto& [division, unused] : std::vector<std::pair<Expr, Wide>>(terms.begin(), terms.end())) {
      const Wide k = coefficient_of(division);
      if (k == 0 || !fits(k) || !is_division(division)) continue;
      const Expr x = division.operands()[0];
      const Wide c = division.operands()[1].constant();
      if (c == 0) continue;
      const Linear parts(x);
      if (division.kind() == ExprKind::floordiv) {
        if (k % c != 0 || !has(parts, -k / c)) continue;
        change(division, -k);
        change(x, k / c);
        change(Builder().mod(x, static_cast<int64_t>(c)), -k / c);
      } else {
        const bool x_taken = has(parts, -k);
        const Expr quotient = Builder().floordiv(x, static_cast<int64_t>(c));
        if (!x_taken && (quotient.kind() != ExprKind::floordiv || coefficient_of(quotient) != k * c)) continue;
        change(division, -k);
        change(x, k);
        change(quotient, -k * c);
      }
      changed_now = true;
    }
    if (!changed_now) break;
    changed = true;
  }
  if (changed) terms_.assign(terms.begin(), terms.end());
  return changed;
}

struct Factors {
  std::vector<std::pair<Expr, int64_t>> atoms;
  explicit Factors(const Expr& term) {
    if (term.kind() != ExprKind::product) {
      atoms.emplace_back(term, 1);
      return;
    }
    for (size_t i = 0; i < term.operands().size(); ++i) atoms.emplace_back(term.operands()[i], term.numbers()[i]);
  }
  int64_t degree() const {
    return std::accumulate(atoms.begin(), atoms.end(), int64_t{0},
                           [](int64_t n, const auto& a) { return n + a.second; });
  }
  // Sorted, distinct atoms; those of power 0 are left out.
  Expr make() const {
    std::vector<Expr> operands;
    std::vector<int64_t> powers;
    for (const auto& [atom, power] : atoms) {
      if (power == 0) continue;
      operands.push_back(atom);
      powers.push_back(power);
    }
    if (operands.empty()) return 1;
    if (operands.size() == 1 && powers[0] == 1) return operands[0];
    return ExprNode::make(ExprKind::product, std::move(operands), std::move(powers));
  }
};

// Of two terms that are no sums and no constants.
Expr multiply_terms(const Expr& a, const Expr& b) {
  Factors result(a);
  const Factors more(b);
  result.atoms.insert(result.atoms.end(), more.atoms.begin(), more.atoms.end());
  std::sort(result.atoms.begin(), result.atoms.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (size_t i = 0; i + 1 < result.atoms.size();) {
    if (result.atoms[i].first == result.atoms[i + 1].first) {
      result.atoms[i].second += result.atoms[i + 1].second;
      result.atoms.erase(result.atoms.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
  }
  return result.make();
}

// term / divisor where it divides, both as in multiply_terms.
MaybeExpr divide_term(const Expr& term, const Expr& divisor) {
  if (term == divisor) return Expr(1);
  Factors result(term);
  for (const auto& [atom, power] : Factors(divisor).atoms) {
    const auto it = std::find_if(result.atoms.begin(), result.atoms.end(),
                                 [&, wanted = atom](const auto& entry) { return entry.first == wanted; });
    if (it == result.atoms.end() || it->second < power) return std::nullopt;
    it->second -= power;
  }
  return result.make();
}

MaybeExpr multiply_out(const Expr& a, const Expr& b) {
  const Linear left(a), right(b);
  Accumulator total;
  for (const auto& [x, i] : left.terms) {
    for (const auto& [y, j] : right.terms) total.add_term(multiply_terms(x, y), Wide{i} * j);
    if (right.constant != 0) total.add_term(x, Wide{i} * right.constant);
  }
  if (left.constant != 0)
    for (const auto& [y, j] : right.terms) total.add_term(y, Wide{j} * left.constant);
  total.add_constant(Wide{left.constant} * right.constant);
  return total.finish();
}

// e + c: a sum of joined terms stays one. Nothing where the constant leaves int64.
MaybeExpr shifted(const Expr& e, int64_t c) {
  if (c == 0) return e;
  if (e.kind() != ExprKind::sum) return ExprNode::make(ExprKind::sum, {e}, {1, c});
  std::vector<int64_t> numbers(e.numbers().begin(), e.numbers().end());
  if (__builtin_add_overflow(numbers.back(), c, &numbers.back())) return std::nullopt;
  if (numbers.size() == 2 && numbers[0] == 1 && numbers[1] == 0) return e.operands()[0];
  return ExprNode::make(ExprKind::sum, {e.operands().begin(), e.operands().end()}, std::move(numbers));
}

Expr scaled(const Expr& e, int64_t c) {
  if (c == 0) return 0;
  if (c == 1) return e;
  Accumulator total;
  total.add(e, c);
  if (const MaybeExpr result = total.finish()) return *result;
  const Expr both[] = {c, e};
  return product(both);
}

// The greatest common divisor of all coefficients and, if asked for, of the constant. 0 for the constant 0.
uint64_t content_of(const Linear& linear, bool with_constant) {
  uint64_t content = with_constant ? magnitude(linear.constant) : 0;
  for (const auto& [term, coefficient] : linear.terms) content = std::gcd(content, magnitude(coefficient));
  return content;
}

// Every number of `linear` / divisor, rounded down.
Expr divide_numbers(const Linear& linear, int64_t divisor) {
  auto terms = linear.terms;
  for (auto& [term, coefficient] : terms) coefficient = floor_div(coefficient, divisor);
  return make_linear(terms, floor_div(linear.constant, divisor));
}

bool has_minimum(const Linear& linear) {
  return linear.constant == INT64_MIN ||
         std::any_of(linear.terms.begin(), linear.terms.end(), [](const auto& t) { return t.second == INT64_MIN; });
}

// What to divide by so that the numbers have no common divisor and the first coefficient is positive; 1 if that fails.
int64_t signed_content(const Linear& linear) {
  if (linear.terms.empty() || has_minimum(linear)) return 1;
  const auto content = static_cast<int64_t>(content_of(linear, true));
  return linear.terms[0].second < 0 ? -content : content;
}

// For a product that is too large to multiply out, of sorted operands.
Expr keep_product(std::vector<Expr> operands) {
  Wide coefficient = 1;
  std::vector<Expr> parts;
  for (const Expr& operand : operands) {
    const Linear linear(operand);
    const int64_t content = operand.is_constant() ? operand.constant() : signed_content(linear);
    coefficient *= content;
    if (!fits(coefficient)) return ExprNode::make(ExprKind::unfolded_product, std::move(operands));
    if (!operand.is_constant()) parts.push_back(content == 1 ? operand : divide_numbers(linear, content));
  }
  std::sort(parts.begin(), parts.end());
  const Expr atom = ExprNode::make(ExprKind::unfolded_product, std::move(parts));
  return make_linear(std::vector{std::pair(atom, static_cast<int64_t>(coefficient))}, 0);
}

// The whole multiples of a constant c > 1 in `a`, and the reduced rest: a = c * whole + gcd * rest + low,
// 0 <= low < gcd, divisor = c / gcd. `done` when `a` is its own rest.
struct Reduction {
  Expr whole, rest;
  int64_t gcd, divisor, low;
  bool done;
  Reduction(const Expr& a, int64_t c) {
    const Linear linear(a);
    Linear multiples(0), remainders(0);
    for (const auto& [term, coefficient] : linear.terms) {
      if (const int64_t q = floor_div(coefficient, c); q != 0) multiples.terms.emplace_back(term, q);
      if (const int64_t r = floor_mod(coefficient, c); r != 0) remainders.terms.emplace_back(term, r);
    }
    multiples.constant = floor_div(linear.constant, c);
    remainders.constant = floor_mod(linear.constant, c);
    gcd = static_cast<int64_t>(std::gcd(content_of(remainders, false), static_cast<uint64_t>(c)));
    divisor = c / gcd;
    low = remainders.constant % gcd;
    whole = make_linear(multiples.terms, multiples.constant);
    rest = gcd == 1 ? make_linear(remainders.terms, remainders.constant) : divide_numbers(remainders, gcd);
    // Built again: fewer terms may simplify further.
    whole = sum(std::span(&whole, 1));
    rest = sum(std::span(&rest, 1));
    done = rest == a && divisor == c;
  }
};

// One step of a division by what is never 0: a = whole * b + rest; nullopt when there is nothing whole to take.
std::optional<std::pair<Expr, Expr>> take_multiple(const Expr& a, const Expr& b) {
  const Linear dividend(a), divisor(b);
  if (divisor.terms.empty()) return std::nullopt;
  const auto& [lead, lead_coefficient] = divisor.terms[0];
  if (has_minimum(dividend)) return std::nullopt;
  Expr whole;
  if (divisor.terms.size() == 1 && divisor.constant == 0) {
    for (const auto& [term, coefficient] : dividend.terms)
      if (const MaybeExpr quotient = divide_term(term, lead); quotient && coefficient % lead_coefficient == 0)
        whole += *quotient * (coefficient / lead_coefficient);
  }
  const bool exact = !whole.is_constant(0);
  if (!exact) whole = floor_div(dividend.coefficient(lead), lead_coefficient);
  if (whole.is_constant(0)) return std::nullopt;
  // Only a rest that is simpler, so that the steps end.
  const Expr rest = a - whole * b;
  const Linear left(rest);
  if (exact ? left.terms.size() >= dividend.terms.size()
            : floor_div(left.coefficient(lead), lead_coefficient) != 0 || left.terms.size() > dividend.terms.size())
    return std::nullopt;
  return std::pair(whole, rest);
}

Expr neg(const Expr& e) { return -e; }

}  // namespace

bool Builder::is_quotient_0(const Expr& a, const Expr& b) const {
  const Range divisor = range_of_(b);
  return divisor.lo > 0 && range_of_(a).within(0, divisor.lo - 1);
}

Expr Builder::floordiv(const Expr& a, const Expr& b) const {
  const auto keep = [&] { return ExprNode::make(ExprKind::floordiv, {a, b}); };
  if (b.is_constant(1)) return a;
  if (b.is_constant() && b.constant() != 0) {
    const int64_t c = b.constant();
    if (a.is_constant() && c != -1) return floor_div(a.constant(), c);
    if (c == INT64_MIN) return keep();
    if (c < 0) return floordiv(neg(a), -c);
    const Reduction reduced(a, c);
    if (!reduced.done) return reduced.whole + floordiv(reduced.rest, reduced.divisor);
    const Range range = range_of_(a);
    if (floor_div(range.lo, Wide{c}) == floor_div(range.hi, Wide{c}) && fits(floor_div(range.lo, Wide{c})))
      return static_cast<int64_t>(floor_div(range.lo, Wide{c}));
    const Linear linear(a);
    if (linear.terms.size() == 1 && linear.terms[0].second == 1) {
      const Expr& inner = linear.terms[0].first;
      if (inner.kind() == ExprKind::floordiv && inner.operands()[1].is_constant()) {
        const int64_t p = inner.operands()[1].constant();
        if (p > 1 && fits(Wide{p} * c)) return floordiv(inner.operands()[0] + Expr(p) * linear.constant, p * c);
      }
    }
    return keep();
  }
  if (range_of_(b).has_zero()) return keep();
  if (a.is_constant(0) || is_quotient_0(a, b)) return 0;
  if (const auto step = take_multiple(a, b)) return step->first + floordiv(step->second, b);
  return keep();
}

Expr Builder::mod(const Expr& a, const Expr& b) const {
  const auto keep = [&] { return ExprNode::make(ExprKind::mod, {a, b}); };
  if (b.is_constant(1)) return 0;
  if (b.is_constant() && b.constant() != 0) {
    const int64_t c = b.constant();
    if (c == -1) return 0;
    if (a.is_constant()) return floor_mod(a.constant(), c);
    if (c == INT64_MIN) return keep();
    if (c < 0) return neg(mod(neg(a), -c));
    const Reduction reduced(a, c);
    if (!reduced.done) return Expr(reduced.gcd) * mod(reduced.rest, reduced.divisor) + reduced.low;
    // k * (x mod d) is k * x but for multiples of k * d.
    for (const auto& [term, k] : Linear(a).terms) {
      if (term.kind() != ExprKind::mod || !term.operands()[1].is_constant()) continue;
      if (term.operands()[1].is_constant(0) || Wide{k} * term.operands()[1].constant() % c != 0) continue;
      Accumulator total;
      total.add(a, 1);
      total.add_term(term, -Wide{k});
      total.add(term.operands()[0], k);
      const MaybeExpr without = total.finish();
      if (without && Linear(*without).coefficient(term) == 0) return mod(*without, c);
    }
    const Range range = range_of_(a);
    const Wide quotient = floor_div(range.lo, Wide{c});
    if (range.lo == range.hi) return static_cast<int64_t>(floor_mod(range.lo, Wide{c}));
    if (quotient == floor_div(range.hi, Wide{c}) && fits(-quotient * c)) return a + static_cast<int64_t>(-quotient * c);
    return keep();
  }
  if (range_of_(b).has_zero()) return keep();
  if (is_quotient_0(a, b)) return a;
  if (a.is_constant(0)) return 0;
  if (const auto step = take_multiple(a, b)) return mod(step->second, b);
  return keep();
}

Expr Builder::extremum(ExprKind kind, std::span<const Expr> operands) const {
  const bool is_min = kind == ExprKind::min;
  const ExprKind opposite = is_min ? ExprKind::max : ExprKind::min;
  // Of those that differ by a constant only one counts. Nested ones are taken in: k * min(a, b) + d is
  // min(k * a + d, k * b + d), or a max for k < 0.
  std::map<Expr, int64_t> best;
  const auto insert = [&](const Expr& e) {
    const Linear linear(e);
    const auto [it, added] = best.emplace(make_linear(linear.terms, 0), linear.constant);
    if (!added) it->second = is_min ? std::min(it->second, linear.constant) : std::max(it->second, linear.constant);
  };
  for (const Expr& operand : operands) {
    const Linear linear(operand);
    if (linear.terms.size() == 1 && linear.terms[0].first.kind() == (linear.terms[0].second > 0 ? kind : opposite)) {
      for (const Expr& inner : linear.terms[0].first.operands())
        insert(inner * linear.terms[0].second + linear.constant);
    } else {
      insert(operand);
    }
  }
  std::vector<Expr> kept;
  for (const auto& [key, offset] : best) kept.push_back(key + offset);
  // Those that the ranges show to be never below (above) another one.
  const auto high = [&](const Expr& e) { return is_min ? range_of_(e).hi : -range_of_(e).lo; };
  const auto low = [&](const Expr& e) { return is_min ? range_of_(e).lo : -range_of_(e).hi; };
  const Expr winner = *std::min_element(kept.begin(), kept.end(), [&](const Expr& a, const Expr& b) {
    return std::pair(high(a), low(a)) < std::pair(high(b), low(b));
  });
  if (const Wide limit = high(winner); limit < Range::kInfinity)
    std::erase_if(kept, [&](const Expr& e) { return e != winner && low(e) >= limit; });
  if (kept.size() == 1) return kept[0];

  // Move the offset of a leading operand, then the common factor, out of it. Which operand leads must not depend on the
  // sign of the whole, or the steps would not end: that of the least terms when their first coefficient is made
  // positive.
  std::map<Expr, Expr> by_unsigned_terms;
  bool ambiguous = false;
  for (const Expr& e : kept) {
    const Linear linear(e);
    if (linear.terms.empty()) continue;
    const Expr terms = make_linear(linear.terms, 0);
    const bool flipped = linear.terms[0].second < 0 && !has_minimum(linear);
    const auto [it, added] = by_unsigned_terms.emplace(flipped ? divide_numbers(Linear(terms), -1) : terms, e);
    ambiguous |= !added && it == by_unsigned_terms.begin();
    if (!added && !flipped) it->second = e;
  }
  const Linear first(by_unsigned_terms.begin()->second);
  std::vector<Expr> changed;
  if (first.constant != 0 && std::all_of(kept.begin(), kept.end(), [&](const Expr& e) {
        return fits(Wide{Linear(e).constant} - first.constant);
      })) {
    for (const Expr& e : kept) changed.push_back(e - first.constant);
    return extremum(kind, changed) + first.constant;
  }
  uint64_t content = 0;
  bool negatable = true;
  for (const Expr& e : kept) {
    content = std::gcd(content, content_of(Linear(e), true));
    negatable &= !has_minimum(Linear(e));
  }
  const bool negate = negatable && !ambiguous && first.terms[0].second < 0;
  if (content <= INT64_MAX && (content > 1 || negate)) {
    const int64_t factor = negate ? -static_cast<int64_t>(content) : static_cast<int64_t>(content);
    for (const Expr& e : kept) changed.push_back(divide_numbers(Linear(e), factor));
    return extremum(negate ? opposite : kind, changed) * factor;
  }
  std::sort(kept.begin(), kept.end());
  return ExprNode::make(kind, std::move(kept));
}

Expr Builder::at_least_0(const Expr& e) const {
  const Range range = range_of_(e);
  if (range.lo >= 0) return 1;
  if (range.hi < 0) return 0;
  const Linear linear(e);
  const uint64_t content = content_of(linear, false);
  if (content > 1 && content <= INT64_MAX) return at_least_0(divide_numbers(linear, static_cast<int64_t>(content)));
  return ExprNode::make(ExprKind::at_least_0, {e});
}

Expr Builder::is_0(const Expr& e) const {
  const Range range = range_of_(e);
  if (!range.has_zero()) return 0;
  if (range.within(0, 0)) return 1;
  const Linear linear(e);
  const uint64_t content = content_of(linear, false);
  if (magnitude(linear.constant) % content != 0) return 0;
  if (const int64_t factor = signed_content(linear); factor != 1) return is_0(divide_numbers(linear, factor));
  return ExprNode::make(ExprKind::is_0, {e});
}

Expr Builder::select(const Expr& condition, const Expr& a, const Expr& b) const {
  const Range range = range_of_(condition);
  if (!range.has_zero() || a == b) return a;
  if (range.within(0, 0)) return b;
  if (range.within(0, 1) && a.is_constant(1) && b.is_constant(0)) return condition;
  return ExprNode::make(ExprKind::select, {condition, a, b});
}

Expr Builder::rebuild(const Expr& like, std::span<const Expr> operands) const {
  std::vector<Expr> parts;
  switch (like.kind()) {
    case ExprKind::sum:
      for (size_t i = 0; i < operands.size(); ++i) parts.push_back(operands[i] * like.numbers()[i]);
      parts.emplace_back(like.numbers().back());
      return sum(parts);
    case ExprKind::product:
      for (size_t i = 0; i < operands.size(); ++i)
        parts.insert(parts.end(), static_cast<size_t>(like.numbers()[i]), operands[i]);
      return product(parts);
    case ExprKind::unfolded_sum: return sum(operands);
    case ExprKind::unfolded_product: return product(operands);
    case ExprKind::floordiv: return floordiv(operands[0], operands[1]);
    case ExprKind::mod: return mod(operands[0], operands[1]);
    case ExprKind::min:
    case ExprKind::max: return extremum(like.kind(), operands);
    case ExprKind::select: return select(operands[0], operands[1], operands[2]);
    case ExprKind::at_least_0: return at_least_0(operands[0]);
    case ExprKind::is_0: return is_0(operands[0]);
    case ExprKind::constant:
    case ExprKind::symbol: break;
  }
  return like;
}

}  // namespace detail

using detail::Builder;
using detail::ExprNode;
using detail::Wide;

Expr Expr::symbol(std::string_view name) { return ExprNode::make(ExprKind::symbol, {}, {}, name); }
void Expr::retain() const { node_->references.fetch_add(1, std::memory_order_relaxed); }
void Expr::release() { ExprNode::release(node_); }
ExprKind Expr::kind() const { return node_ ? node_->kind : ExprKind::constant; }
std::string_view Expr::name() const { return node_ ? std::string_view(node_->name) : std::string_view(); }
std::span<const Expr> Expr::operands() const { return node_ ? std::span(node_->operands) : std::span<const Expr>(); }
std::span<const int64_t> Expr::numbers() const {
  return node_ ? std::span(node_->numbers) : std::span<const int64_t>();
}
uint64_t Expr::hash() const { return node_ ? node_->hash : hash_mix(0, static_cast<uint64_t>(value_)); }

std::strong_ordering Expr::compare(const Expr& left, const Expr& right) {
  // Equal nodes are one node, so the first pair of operands that differs decides: one path down, no recursion.
  const Expr *a = &left, *b = &right;
  while (*a != *b) {
    if (a->kind() != b->kind()) return a->kind() <=> b->kind();
    if (a->is_constant()) return a->value_ <=> b->value_;
    if (const auto order = a->name() <=> b->name(); order != 0) return order;
    const auto x = a->operands(), y = b->operands();
    const auto differ = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    if (differ.first == x.end() || differ.second == y.end()) {
      if (x.size() != y.size()) return x.size() <=> y.size();
      return std::lexicographical_compare_three_way(a->numbers().begin(), a->numbers().end(), b->numbers().begin(),
                                                    b->numbers().end());
    }
    a = &*differ.first;
    b = &*differ.second;
  }
  return std::strong_ordering::equal;
}

std::vector<std::string> Expr::symbols() const {
  std::vector<std::string> names;
  detail::Walk<bool> walk([](int64_t) { return true; },
                          [&](const Expr& e, const auto&) {
                            if (e.is_symbol()) names.emplace_back(e.name());
                            return true;
                          });
  walk(*this);
  std::sort(names.begin(), names.end());
  return names;
}

Expr Expr::substitute(const Substitution& map) const {
  const Builder builder;
  detail::Walk<Expr> walk([](int64_t value) { return Expr(value); },
                          [&](const Expr& e, const auto& done) {
                            if (e.is_symbol()) {
                              const auto it = map.find(e.name());
                              return it == map.end() ? e : it->second;
                            }
                            std::vector<Expr> operands;
                            for (const Expr& operand : e.operands()) operands.push_back(done.at(operand));
                            return std::ranges::equal(operands, e.operands()) ? e : builder.rebuild(e, operands);
                          });
  return walk(*this);
}

namespace {

// A value, or the node that has none.
struct Evaluated {
  enum class Fault : uint8_t { none, unbound, division_by_zero, overflow };
  Wide value = 0;
  Fault fault = Fault::none;
  const ExprNode* at = nullptr;
};

Evaluated evaluate_node(const Expr& e, const SymbolValues& values, const detail::Walk<Evaluated>& done) {
  using Fault = Evaluated::Fault;
  const auto fault = [&](Fault f) { return Evaluated{0, f, ExprNode::of(e)}; };
  if (e.is_symbol()) {
    const auto it = values.find(e.name());
    return it == values.end() ? fault(Fault::unbound) : Evaluated{it->second};
  }
  const auto operands = e.operands();
  const auto numbers = e.numbers();
  if (e.kind() == ExprKind::select) {
    const Evaluated condition = done.at(operands[0]);
    return condition.fault != Fault::none ? condition : done.at(operands[condition.value != 0 ? 1 : 2]);
  }
  std::vector<Wide> v;
  for (const Expr& operand : operands) {
    const Evaluated value = done.at(operand);
    if (value.fault != Fault::none) return value;
    v.push_back(value.value);
  }
  Wide result = 0;
  bool overflow = false;
  switch (e.kind()) {
    case ExprKind::sum:
    case ExprKind::unfolded_sum:
      if (!numbers.empty()) result = numbers.back();
      for (size_t i = 0; i < v.size(); ++i) {
        Wide term = v[i];
        if (!numbers.empty()) overflow |= __builtin_mul_overflow(term, Wide{numbers[i]}, &term);
        overflow |= __builtin_add_overflow(result, term, &result);
      }
      break;
    case ExprKind::product:
    case ExprKind::unfolded_product:
      result = 1;
      for (size_t i = 0; i < v.size(); ++i)
        for (int64_t k = numbers.empty() ? 1 : numbers[i]; k > 0; --k)
          overflow |= __builtin_mul_overflow(result, v[i], &result);
      break;
    case ExprKind::floordiv:
    case ExprKind::mod:
      if (v[1] == 0) return fault(Fault::division_by_zero);
      if (v[1] == -1) {  // the one division that can overflow
        overflow = e.kind() == ExprKind::floordiv && __builtin_sub_overflow(Wide{0}, v[0], &result);
        break;
      }
      result = e.kind() == ExprKind::floordiv ? detail::floor_div(v[0], v[1]) : detail::floor_mod(v[0], v[1]);
      break;
    case ExprKind::min: result = *std::min_element(v.begin(), v.end()); break;
    case ExprKind::max: result = *std::max_element(v.begin(), v.end()); break;
    case ExprKind::at_least_0: result = v[0] >= 0; break;
    case ExprKind::is_0: result = v[0] == 0; break;
    case ExprKind::constant:
    case ExprKind::symbol:
    case ExprKind::select: break;
  }
  return overflow ? fault(Fault::overflow) : Evaluated{result};
}

}  // namespace

Result<int64_t> Expr::evaluate(const SymbolValues& values) const {
  if (!node_) return value_;
  detail::Walk<Evaluated> walk([](int64_t value) { return Evaluated{value}; },
                               [&](const Expr& e, const auto& done) { return evaluate_node(e, values, done); });
  Evaluated result = walk(*this);
  if (result.fault == Evaluated::Fault::none && !detail::fits(result.value))
    result = {0, Evaluated::Fault::overflow, node_};
  if (result.fault == Evaluated::Fault::none) return static_cast<int64_t>(result.value);
  result.at->references.fetch_add(1, std::memory_order_relaxed);
  const Expr at(result.at);
  switch (result.fault) {
    case Evaluated::Fault::unbound:
      return error(Code::not_found, "symbol '", at.name(), "' of ", *this, " has no value; give it one");
    case Evaluated::Fault::division_by_zero:
      return error(Code::invalid_argument, "division by zero: ", at.operands()[1], " is 0 in ", at);
    default:
      return error(Code::invalid_argument, "the value of ", at, " is outside the range of a 64-bit integer, [",
                   INT64_MIN, ", ", INT64_MAX, "]");
  }
}

Expr sum(std::span<const Expr> terms) {
  detail::Accumulator total;
  for (const Expr& term : terms) total.add(term, 1);
  if (const auto result = total.finish()) return *result;
  std::vector<Expr> operands(terms.begin(), terms.end());
  std::sort(operands.begin(), operands.end());
  return ExprNode::make(ExprKind::unfolded_sum, std::move(operands));
}

Expr product(std::span<const Expr> factors) {
  std::vector<Expr> operands(factors.begin(), factors.end());
  if (std::any_of(operands.begin(), operands.end(), [](const Expr& e) { return e.is_constant(0); })) return 0;
  std::erase_if(operands, [](const Expr& e) { return e.is_constant(1); });
  std::sort(operands.begin(), operands.end());
  int64_t degree = 0;
  size_t terms = 1, wide_operands = 0;
  for (const Expr& operand : operands) {
    const detail::Linear linear(operand);
    const size_t size = linear.terms.size() + (linear.constant != 0);
    wide_operands += size > 1;
    terms = std::min(terms * size, Expr::kMaxExpandedTerms + 1);
    int64_t highest = 0;
    for (const auto& [term, unused] : linear.terms) highest = std::max(highest, detail::Factors(term).degree());
    degree += highest;
  }
  if (degree > Expr::kMaxDegree || (terms > Expr::kMaxExpandedTerms && wide_operands > 1))
    return operands.size() == 1 ? operands[0] : detail::keep_product(std::move(operands));
  Expr result = 1;
  for (const Expr& operand : operands) {
    const auto next = detail::multiply_out(result, operand);
    if (!next) return ExprNode::make(ExprKind::unfolded_product, std::move(operands));
    result = *next;
  }
  return result;
}

Expr operator+(const Expr& a, const Expr& b) {
  if (int64_t total; a.is_constant() && b.is_constant() && !__builtin_add_overflow(a.constant(), b.constant(), &total))
    return total;
  if (a.is_constant() != b.is_constant())
    if (const auto result = a.is_constant() ? detail::shifted(b, a.constant()) : detail::shifted(a, b.constant())) return *result;
  const Expr both[] = {a, b};
  return sum(both);
}
Expr operator-(const Expr& a) { return a * -1; }
Expr operator-(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (b.is_constant() && b.constant() != INT64_MIN) return a + -b.constant();
  detail::Accumulator total;
  total.add(a, 1);
  total.add(b, -1);
  if (const auto result = total.finish()) return *result;
  return a + -b;
}
Expr operator*(const Expr& a, const Expr& b) {
  if (int64_t total; a.is_constant() && b.is_constant() && !__builtin_mul_overflow(a.constant(), b.constant(), &total))
    return total;
  if (a.is_constant()) return detail::scaled(b, a.constant());
  if (b.is_constant()) return detail::scaled(a, b.constant());
  const Expr both[] = {a, b};
  return product(both);
}

Expr floordiv(const Expr& a, const Expr& b) { return Builder().floordiv(a, b); }
Expr ceildiv(const Expr& a, const Expr& b) {
  if (b.is_constant() && b.constant() > 0) return floordiv(a + (b.constant() - 1), b);
  return -floordiv(-a, b);
}
Expr mod(const Expr& a, const Expr& b) { return Builder().mod(a, b); }
Expr min(std::span<const Expr> operands) { return Builder().extremum(ExprKind::min, operands); }
Expr max(std::span<const Expr> operands) { return Builder().extremum(ExprKind::max, operands); }
Expr min(const Expr& a, const Expr& b) {
  const Expr both[] = {a, b};
  return min(both);
}
Expr max(const Expr& a, const Expr& b) {
  const Expr both[] = {a, b};
  return max(both);
}
Expr less(const Expr& a, const Expr& b) {
  const Expr parts[] = {b, -a, -1};
  return Builder().at_least_0(sum(parts));
}
Expr less_equal(const Expr& a, const Expr& b) { return Builder().at_least_0(b - a); }
Expr equal(const Expr& a, const Expr& b) { return Builder().is_0(b - a); }
Expr select(const Expr& condition, const Expr& a, const Expr& b) { return Builder().select(condition, a, b); }

}  // namespace tenon
