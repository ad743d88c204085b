// Expr: an immutable integer expression over named symbols, kept in a canonical form.
//
//   Expr n = Expr::symbol("N");
//   floordiv(4 * n + 8, 4) == n + 2                                       // built simplified, compared by value
//   (n + 1).evaluate({{"N", 7}})                                          // 8
//
// Meaning. An expression stands for an exact integer, without wrap-around; it has no value where it divides by zero.
// Simplification keeps the value wherever there is one (and may drop a division by zero, as in 0 * (a floordiv b)).
// floordiv rounds towards minus infinity; a mod b = a - b * (a floordiv b), so it has the sign of b.
//
// Canonical form. Operators and functions below only return these, so that equal forms are one and the same node:
//   constant   an int64, stored inline: no heap, no lock
//   symbol     a name
//   sum        constant + sum of coefficient * term; at least one term; terms distinct, sorted, none of them a sum
//   product    atom^power * ...; degree 2 to kMaxDegree; atoms sorted, none of them a sum or product. Products of sums
//              are multiplied out when at most kMaxExpandedTerms terms result or only one side has several terms
//   floordiv   a floordiv b. For a constant b: b > 1, coefficients and constant of `a` lie in [0, b) (whole multiples
//              have left the division) and have no divisor in common with b; (x floordiv p) floordiv q is merged
//   mod        a mod b, reduced in the same way; in a sum, x, b * (x floordiv b) and x mod b are joined where two of
//              them make the third
//   min, max   of two or more operands: flat, sorted, common factor and offset moved out, dominated operands dropped
//   select     (condition, a, b): a when the condition is not 0, else b (only the chosen one needs a value)
//   at_least_0 1 when the operand >= 0, else 0: what less, less_equal become, common factor divided out
//   is_0       1 when the operand == 0, else 0: what equal becomes
//   unfolded_sum, unfolded_product   of sorted operands: where a coefficient would exceed int64, or a product its
//              limits
// Expressions of equal form are equal everywhere; prove_eq (bounds.hpp) proves more equalities than the form shows.
//
// Cost. Copy: a pointer and, unless constant, an atomic increment. ==, hash: O(1). Order: O(depth * operands).
// a + b: O(terms of both), so a sum of n terms is better built by sum(), O(n log n). Every traversal visits a shared
// subexpression once, and its use of the call stack does not grow with the depth.
//
// Threads. All functions may be called from any thread; an Expr object itself is like an int: no concurrent writes.
#pragma once
#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

class Expr;
namespace detail {
struct ExprNode;
}

enum class ExprKind : uint8_t {
  constant,
  symbol,
  product,
  floordiv,
  mod,
  min,
  max,
  select,
  at_least_0,
  is_0,
  unfolded_sum,
  unfolded_product,
  sum,
};

// By symbol name.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;
using Substitution = std::map<std::string, Expr, std::less<>>;

class TENON_API Expr {
 public:
  static constexpr int64_t kMaxDegree = 64;
  static constexpr size_t kMaxExpandedTerms = 256;

  Expr() = default;  // 0
  template <std::integral T>
  requires(std::signed_integral<T> || sizeof(T) < sizeof(int64_t)) Expr(T value) : value_(value) {}
  // Two symbols of the same name are the same symbol. Any name is allowed.
  static Expr symbol(std::string_view name);

  Expr(const Expr& other) : node_(other.node_), value_(other.value_) {
    if (node_) retain();
  }
  Expr(Expr&& other) noexcept : node_(std::exchange(other.node_, nullptr)), value_(std::exchange(other.value_, 0)) {}
  Expr& operator=(Expr other) noexcept {
    std::swap(node_, other.node_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Expr() {
    if (node_) release();
  }

  bool is_constant() const { return !node_; }
  bool is_constant(int64_t value) const { return !node_ && value_ == value; }
  // Only for constants.
  int64_t constant() const {
    TENON_CHECK(!node_, "not a constant: ", to_string());
    return value_;
  }

  ExprKind kind() const;
  bool is_symbol() const { return kind() == ExprKind::symbol; }
  // The name of a symbol, "" for anything else.
  std::string_view name() const;
  // As listed for each kind above; empty for constants and symbols. Borrowed from this expression.
  std::span<const Expr> operands() const;
  // Of a sum: a coefficient for each operand, then the constant. Of a product: a power for each operand. Else empty.
  std::span<const int64_t> numbers() const;

  // The names of all symbols, sorted.
  std::vector<std::string> symbols() const;
  // Replaces every symbol that `map` names, all at once.
  Expr substitute(const Substitution& map) const;
  // Fails on a symbol without value, a division by zero, and a value outside int64. Intermediate values may be outside
  // int64: they are computed in 128 bits.
  Result<int64_t> evaluate(const SymbolValues& values) const;

  // Text that parse_expr (text.hpp) reads back if it is within kMaxExprTextBytes and kMaxExprTextDepth; beyond these,
  // an ellipsis replaces what is left out.
  std::string to_string() const;

  uint64_t hash() const;
  friend bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_ && a.value_ == b.value_; }
  // A total order by form, the same in every run: constants by value, then symbols by name, then the rest.
  friend std::strong_ordering operator<=>(const Expr& a, const Expr& b) { return compare(a, b); }

 private:
  friend struct detail::ExprNode;
  explicit Expr(const detail::ExprNode* adopted) : node_(adopted) {}
  void retain() const;
  void release();
  static std::strong_ordering compare(const Expr& a, const Expr& b);

  const detail::ExprNode* node_ = nullptr;  // null: the constant value_; else value_ is 0
  int64_t value_ = 0;
};

TENON_API Expr sum(std::span<const Expr> terms);
TENON_API Expr product(std::span<const Expr> factors);
TENON_API Expr operator+(const Expr& a, const Expr& b);
TENON_API Expr operator-(const Expr& a, const Expr& b);
TENON_API Expr operator-(const Expr& a);
TENON_API Expr operator*(const Expr& a, const Expr& b);
inline Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
inline Expr& operator-=(Expr& a, const Expr& b) { return a = a - b; }
inline Expr& operator*=(Expr& a, const Expr& b) { return a = a * b; }
TENON_API Expr floordiv(const Expr& a, const Expr& b);
// Rounds towards plus infinity: -(-a floordiv b), for a constant b > 0 built as (a + b - 1) floordiv b.
TENON_API Expr ceildiv(const Expr& a, const Expr& b);
TENON_API Expr mod(const Expr& a, const Expr& b);
// At least one operand.
TENON_API Expr min(std::span<const Expr> operands);
TENON_API Expr max(std::span<const Expr> operands);
TENON_API Expr min(const Expr& a, const Expr& b);
TENON_API Expr max(const Expr& a, const Expr& b);
// Comparisons have the value 1 (true) or 0.
TENON_API Expr less(const Expr& a, const Expr& b);
TENON_API Expr less_equal(const Expr& a, const Expr& b);
TENON_API Expr equal(const Expr& a, const Expr& b);
TENON_API Expr select(const Expr& condition, const Expr& a, const Expr& b);

}  // namespace tenon

template <>
struct std::hash<tenon::Expr> {
  size_t operator()(const tenon::Expr& e) const { return e.hash(); }
};
