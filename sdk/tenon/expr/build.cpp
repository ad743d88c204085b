// The rules by which expressions are simplified during construction.
#include <tenon/expr/linear_internal.hpp>

namespace tenon::detail {
namespace {

// The whole multiples of a constant c > 1 in `a`, and the reduced remainder: a = c * whole + gcd * rest + low,
// 0 <= low < gcd, divisor = c / gcd. `done` when `a` equals its remainder.
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
    // Built again, because fewer terms may simplify further.
    whole = sum(std::span(&whole, 1));
    rest = sum(std::span(&rest, 1));
    done = rest == a && divisor == c;
  }
};

// One step of a division by something that is never 0: a = whole * b + rest; nullopt when no whole part can be split
// off.
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
  // Only if the remainder is simpler, so that the steps terminate.
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
    // k * (x mod d) is k * x up to multiples of k * d.
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
  // Of operands that differ by a constant, only one is kept. Nested ones are flattened: k * min(a, b) + d is
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
  // Operands that the ranges prove to be never below (above) another one.
  const auto high = [&](const Expr& e) { return is_min ? range_of_(e).hi : -range_of_(e).lo; };
  const auto low = [&](const Expr& e) { return is_min ? range_of_(e).lo : -range_of_(e).hi; };
  const Expr winner = *std::min_element(kept.begin(), kept.end(), [&](const Expr& a, const Expr& b) {
    return std::pair(high(a), low(a)) < std::pair(high(b), low(b));
  });
  if (const Wide limit = high(winner); limit < Range::kInfinity)
    std::erase_if(kept, [&](const Expr& e) { return e != winner && low(e) >= limit; });
  if (kept.size() == 1) return kept[0];

  // Move the offset of a leading operand, then the common factor, out of it. For the steps to terminate, the choice of
  // the leading operand must not depend on the sign of the whole: it is the one with the least terms when their first
  // coefficient is made positive.
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

}  // namespace tenon::detail
