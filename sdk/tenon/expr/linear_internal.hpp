// Internal to the room: sums as lists of scaled terms, products as lists of powers.
#pragma once
#include <numeric>
#include <optional>

#include <tenon/expr/node_internal.hpp>

namespace tenon::detail {

// nullopt only where a number exceeds int64.
using MaybeExpr = std::optional<Expr>;

inline uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }

// Terms must be sorted and distinct, with coefficients that fit.
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
// Adds up scaled expressions; finish() fails if an intermediate number exceeded 128 bits.
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
    // The usual case: two expressions are added, each with sorted terms.
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
  // k*x - k*M -> k*c*F. True when terms were added or removed (zero coefficients may remain).
  bool join_divisions();

  std::vector<std::pair<Expr, Wide>> terms_;
  Wide constant_ = 0;
  bool overflow_ = false;
};
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
  // Sorted, distinct atoms; those with power 0 are left out.
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
// term / divisor if the division is exact; both are products of atoms.
MaybeExpr divide_term(const Expr& term, const Expr& divisor);
MaybeExpr multiply_out(const Expr& a, const Expr& b);
// e + c; a sum of joined terms stays joined. Nothing where the constant exceeds int64.
MaybeExpr shifted(const Expr& e, int64_t c);
Expr scaled(const Expr& e, int64_t c);
// The greatest common divisor of all coefficients and, with `with_constant`, of the constant. 0 for the constant 0.
uint64_t content_of(const Linear& linear, bool with_constant);
// Every number of `linear` / divisor, rounded down.
Expr divide_numbers(const Linear& linear, int64_t divisor);
bool has_minimum(const Linear& linear);
// The divisor after which the numbers have no common divisor and the first coefficient is positive; 1 if that fails.
int64_t signed_content(const Linear& linear);
// For a product that is too large to multiply out; operands must be sorted.
Expr keep_product(std::vector<Expr> operands);

}  // namespace tenon::detail
