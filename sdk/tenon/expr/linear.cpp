#include <tenon/expr/linear_internal.hpp>

#include <map>

namespace tenon::detail {
namespace {

bool is_division(const Expr& e) {
  return (e.kind() == ExprKind::floordiv || e.kind() == ExprKind::mod) && e.operands()[1].is_constant();
}

// For two terms that are neither sums nor constants.
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

}  // namespace

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
  // Whether the terms contain scale * x, apart from the constant of x.
  const auto has = [&](const Linear& x, Wide scale) {
    return !x.terms.empty() && std::all_of(x.terms.begin(), x.terms.end(),
                                           [&](const auto& t) { return coefficient_of(t.first) == t.second * scale; });
  };
  // Each step removes a division or several terms; the limit only guards against bugs.
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

uint64_t content_of(const Linear& linear, bool with_constant) {
  uint64_t content = with_constant ? magnitude(linear.constant) : 0;
  for (const auto& [term, coefficient] : linear.terms) content = std::gcd(content, magnitude(coefficient));
  return content;
}

Expr divide_numbers(const Linear& linear, int64_t divisor) {
  auto terms = linear.terms;
  for (auto& [term, coefficient] : terms) coefficient = floor_div(coefficient, divisor);
  return make_linear(terms, floor_div(linear.constant, divisor));
}

bool has_minimum(const Linear& linear) {
  return linear.constant == INT64_MIN ||
         std::any_of(linear.terms.begin(), linear.terms.end(), [](const auto& t) { return t.second == INT64_MIN; });
}

int64_t signed_content(const Linear& linear) {
  if (linear.terms.empty() || has_minimum(linear)) return 1;
  const auto content = static_cast<int64_t>(content_of(linear, true));
  return linear.terms[0].second < 0 ? -content : content;
}

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

}  // namespace tenon::detail
