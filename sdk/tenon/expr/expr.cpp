#include <tenon/expr/expr.hpp>

#include <tenon/expr/linear_internal.hpp>
#include <tenon/support/hash.hpp>

namespace tenon {

using detail::Builder;
using detail::ExprNode;

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
  // Equal nodes are the same node, so the first pair of different operands decides: one path down, no recursion.
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
  if (is_constant()) return names;
  if (is_symbol()) {
    names.emplace_back(name());
    return names;
  }
  // A sum or product of symbols, the usual case.
  if (std::ranges::all_of(operands(), &Expr::is_symbol)) {
    for (const Expr& operand : operands()) names.emplace_back(operand.name());
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
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
    if (const auto result = a.is_constant() ? detail::shifted(b, a.constant()) : detail::shifted(a, b.constant()))
      return *result;
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
  if (a.is_constant() && b.is_constant()) return std::min(a.constant(), b.constant());
  const Expr both[] = {a, b};
  return min(both);
}
Expr max(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant(), b.constant());
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
