// Internal to the room: nodes, exact ranges, and the traversal of shared nodes.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <unordered_map>

#include <tenon/expr/expr.hpp>

namespace tenon::detail {

__extension__ typedef __int128 Wide;

inline bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }
template <class T>
T floor_div(T a, T b) {
  const T q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T>
T floor_mod(T a, T b) {
  const T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// lo <= value <= hi, where -kInfinity and kInfinity (also for anything beyond) mean "unbounded".
struct Range {
  static constexpr Wide kInfinity = Wide{1} << 126;
  Wide lo = -kInfinity, hi = kInfinity;

  bool within(Wide low, Wide high) const { return lo >= low && hi <= high; }
  bool has_zero() const { return lo <= 0 && hi >= 0; }
  static Range intersect(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }
  static Range join(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }
};
Range operator+(Range a, Range b);
Range operator*(Range a, Range b);

struct ExprNode {
  mutable std::atomic<uint64_t> references{1};
  ExprKind kind;
  uint64_t hash = 0;
  std::string name;
  std::vector<Expr> operands;
  std::vector<int64_t> numbers;
  Range range;  // valid for all values of the symbols

  // The unique node with this content; thread-safe.
  static Expr make(ExprKind kind, std::vector<Expr> operands, std::vector<int64_t> numbers = {},
                   std::string_view name = {});
  // Null for a constant.
  static const ExprNode* of(const Expr& e) { return e.node_; }
  // Drops one reference.
  static void release(const ExprNode* node);
};

// The range of a node from the ranges of its operands (and of theirs, for sums).
Range range_of_node(const ExprNode& node, const std::function<Range(const Expr&)>& range_of);
// Valid for all values of the symbols; O(1).
Range range_of(const Expr& e);

// A map from expressions: a list while it is short, as it usually is, and an index beyond that.
template <class T>
class ExprMap {
 public:
  const T* find(const Expr& e) const {
    if (entries_.size() > kMaxList) {
      const auto it = index_.find(e);
      return it == index_.end() ? nullptr : &entries_[it->second].second;
    }
    for (const auto& [known, value] : entries_)
      if (known == e) return &value;
    return nullptr;
  }
  // `e` must not be in the map yet.
  void insert(const Expr& e, T value) {
    entries_.emplace_back(e, std::move(value));
    if (entries_.size() <= kMaxList) return;
    for (size_t i = index_.size(); i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  }

 private:
  static constexpr size_t kMaxList = 16;
  std::vector<std::pair<Expr, T>> entries_;
  std::unordered_map<Expr, size_t> index_;
};

// Computes a T for every distinct node below an expression, operands first, without recursion. Results are memoised.
template <class T>
class Walk {
 public:
  // `of_constant` may be called more than once for the same constant.
  Walk(std::function<T(int64_t)> of_constant, std::function<T(const Expr&, const Walk&)> of_node)
      : of_constant_(std::move(of_constant)), of_node_(std::move(of_node)) {}

  T operator()(const Expr& root) {
    if (root.is_constant()) return of_constant_(root.constant());
    struct Visit {
      const Expr* e;  // the root, or an operand of a visited node
      bool operands_done;
    };
    std::vector<Visit> stack{{&root, root.is_symbol()}};
    while (!stack.empty()) {
      const auto [e, operands_done] = stack.back();
      if (done_.find(*e)) {
        stack.pop_back();
      } else if (operands_done) {
        stack.pop_back();
        done_.insert(*e, of_node_(*e, *this));
      } else {
        stack.back().operands_done = true;
        for (const Expr& operand : e->operands())
          if (!operand.is_constant()) stack.push_back({&operand, operand.is_symbol()});
      }
    }
    return at(root);
  }
  // `e` must be a subexpression of one that was given to operator().
  T at(const Expr& e) const { return e.is_constant() ? of_constant_(e.constant()) : *done_.find(e); }

 private:
  std::function<T(int64_t)> of_constant_;
  std::function<T(const Expr&, const Walk&)> of_node_;
  ExprMap<T> done_;
};

// Builds expressions; `range_of` gives the ranges that it may assume for operands.
class Builder {
 public:
  explicit Builder(std::function<Range(const Expr&)> range_of = &detail::range_of) : range_of_(std::move(range_of)) {}

  Expr floordiv(const Expr& a, const Expr& b) const;
  Expr mod(const Expr& a, const Expr& b) const;
  Expr extremum(ExprKind kind, std::span<const Expr> operands) const;  // min or max
  Expr at_least_0(const Expr& e) const;
  Expr is_0(const Expr& e) const;
  Expr select(const Expr& condition, const Expr& a, const Expr& b) const;
  // An expression of the kind and numbers of `like` with other operands. `like` is neither a constant nor a symbol.
  Expr rebuild(const Expr& like, std::span<const Expr> operands) const;

 private:
  bool is_quotient_0(const Expr& a, const Expr& b) const;
  std::function<Range(const Expr&)> range_of_;
};

// A sum as coefficients of terms; any expression can be seen as one.
struct Linear {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;
  explicit Linear(const Expr& e);
  // The coefficient of `term`, 0 when it is not there.
  int64_t coefficient(const Expr& term) const;
};

}  // namespace tenon::detail
