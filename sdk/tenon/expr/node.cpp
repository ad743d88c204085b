#include <tenon/expr/node_internal.hpp>

#include <array>
#include <mutex>
#include <unordered_set>

#include <tenon/support/hash.hpp>

namespace tenon::detail {
namespace {

// The content of a node before it exists: most requested nodes exist already and need no memory.
struct Content {
  ExprKind kind;
  std::span<const Expr> operands;
  std::span<const int64_t> numbers;
  std::string_view name;
  uint64_t hash;
};

struct SameContent {
  using is_transparent = void;
  bool operator()(const ExprNode* a, const ExprNode* b) const { return a == b; }
  bool operator()(const Content& a, const ExprNode* b) const {
    return a.hash == b->hash && a.kind == b->kind && std::ranges::equal(a.operands, b->operands) &&
           std::ranges::equal(a.numbers, b->numbers) && a.name == b->name;
  }
};
struct HashOfNode {
  using is_transparent = void;
  size_t operator()(const ExprNode* node) const { return node->hash; }
  size_t operator()(const Content& content) const { return content.hash; }
};

// All live nodes. Divided into shards to reduce lock contention. Never destroyed: static Exprs may outlive main().
struct Shard {
  std::mutex mutex;
  std::unordered_set<const ExprNode*, HashOfNode, SameContent> nodes;
};
Shard& shard_of(uint64_t hash) {
  static auto& shards = *new std::array<Shard, 64>;
  return shards[hash >> 58];
}

uint64_t hash_content(const Content& content) {
  uint64_t hash = fnv1a(content.name, static_cast<uint64_t>(content.kind) + 1);
  for (const Expr& operand : content.operands) hash = hash_mix(hash, operand.hash());
  for (const int64_t number : content.numbers) hash = hash_mix(hash, static_cast<uint64_t>(number));
  return hash;
}

// Saturating arithmetic on range ends.
Wide clamp_end(Wide v) { return std::clamp(v, -Range::kInfinity, Range::kInfinity); }
bool is_infinite(Wide v) { return v <= -Range::kInfinity || v >= Range::kInfinity; }
Wide multiply_ends(Wide a, Wide b) {
  Wide result;
  if (!__builtin_mul_overflow(a, b, &result)) return clamp_end(result);
  return (a < 0) == (b < 0) ? Range::kInfinity : -Range::kInfinity;
}
Wide divide_ends(Wide a, Wide b) {
  if (!is_infinite(a)) return floor_div(a, b);  // an infinite divisor gives 0 or -1, which is correct
  return (a < 0) == (b < 0) ? Range::kInfinity : -Range::kInfinity;
}

Range divide_ranges(Range a, Range b) {
  if (b.lo == 0 && b.hi == 0) return {};
  Range result{Range::kInfinity, -Range::kInfinity};
  // Division by zero has no value, so zero is excluded from the divisor.
  for (const Wide divisor : {b.lo, Wide{-1}, Wide{1}, b.hi}) {
    if (divisor == 0 || divisor < b.lo || divisor > b.hi) continue;
    for (const Wide dividend : {a.lo, a.hi}) {
      const Wide quotient = divide_ends(dividend, divisor);
      result = Range::join(result, {quotient, quotient});
    }
  }
  return result;
}

Range mod_ranges(Range a, Range b) {
  Range result{b.lo < 0 ? std::min(b.lo + 1, Wide{0}) : Wide{0}, b.hi > 0 ? std::max(b.hi - 1, Wide{0}) : Wide{0}};
  if (b.lo <= -Range::kInfinity) result.lo = -Range::kInfinity;
  if (b.hi >= Range::kInfinity) result.hi = Range::kInfinity;
  if (b.lo > 0 && a.lo >= 0) result.hi = std::min(result.hi, a.hi);
  return result;
}

Range power_range(Range base, int64_t power) {
  Range result = base;
  for (int64_t i = 1; i < power; ++i) result = result * base;
  if (power % 2 == 0) result.lo = std::max(result.lo, Wide{0});
  return result;
}

// Whether it is a floordiv or mod by a constant above 1.
bool is_constant_division(const Expr& e, ExprKind kind) {
  return e.kind() == kind && e.operands()[1].is_constant() && e.operands()[1].constant() > 1;
}

// Bounds a sum together with the operands of its floordivs, which proves that n - 4 * (n floordiv 4) is in [0, 3]:
// x/c - (c-1)/c <= x floordiv c <= x/c turns scale * sum into a linear form over other terms, plus a slack.
Range relaxed_sum_range(const ExprNode& node, const std::function<Range(const Expr&)>& range_of) {
  static constexpr int kMaxRounds = 8;
  static constexpr Wide kMaxScale = Wide{1} << 31, kMaxCoefficient = Wide{1} << 62;
  if (std::ranges::none_of(node.operands, [](const Expr& e) { return is_constant_division(e, ExprKind::floordiv); }))
    return {};
  std::map<Expr, Wide> terms;
  for (size_t i = 0; i < node.operands.size(); ++i) terms[node.operands[i]] = node.numbers[i];
  Range slack{node.numbers.back(), node.numbers.back()};
  Wide scale = 1;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<std::pair<Expr, Wide>> divisions;
    for (const auto& [term, coefficient] : terms)
      if (coefficient != 0 && is_constant_division(term, ExprKind::floordiv)) divisions.emplace_back(term, coefficient);
    if (divisions.empty()) break;
    for (const auto& [division, unused] : divisions) {
      const Wide coefficient = terms[division];
      const Wide divisor = division.operands()[1].constant();
      // The smallest factor that makes coefficient / divisor whole.
      Wide a = coefficient < 0 ? -coefficient : coefficient, b = divisor;
      while (b != 0) a = std::exchange(b, a % b);
      const Wide factor = a == 0 ? Wide{1} : divisor / a;
      if (scale * factor > kMaxScale) return {};
      for (auto& [term, value] : terms) {
        if (value > kMaxCoefficient || value < -kMaxCoefficient) return {};
        value *= factor;
      }
      slack = slack * Range{factor, factor};
      scale *= factor;
      const Wide inner = terms[division] / divisor;
      terms.erase(division);
      const Linear inside(division.operands()[0]);
      for (const auto& [term, value] : inside.terms) {
        Wide added;
        if (__builtin_mul_overflow(inner, Wide{value}, &added)) return {};
        if (__builtin_add_overflow(terms[term], added, &terms[term])) return {};
      }
      const Range lost{0, divisor - 1};
      slack = slack + Range{inner, inner} * (Range{inside.constant, inside.constant} + lost * Range{-1, -1});
    }
  }
  if (scale == 1) return {};
  Range total = slack;
  for (const auto& [term, coefficient] : terms)
    if (coefficient != 0) total = total + range_of(term) * Range{coefficient, coefficient};
  Range result;
  if (!is_infinite(total.lo)) result.lo = -floor_div(-total.lo, scale);
  if (!is_infinite(total.hi)) result.hi = floor_div(total.hi, scale);
  return result;
}

}  // namespace

Range operator+(Range a, Range b) {
  return {is_infinite(a.lo) || is_infinite(b.lo) ? -Range::kInfinity : clamp_end(a.lo + b.lo),
          is_infinite(a.hi) || is_infinite(b.hi) ? Range::kInfinity : clamp_end(a.hi + b.hi)};
}

Range operator*(Range a, Range b) {
  const auto [lo, hi] = std::minmax(
      {multiply_ends(a.lo, b.lo), multiply_ends(a.lo, b.hi), multiply_ends(a.hi, b.lo), multiply_ends(a.hi, b.hi)});
  return {lo, hi};
}

Range range_of(const Expr& e) {
  const ExprNode* node = ExprNode::of(e);
  return node ? node->range : Range{e.constant(), e.constant()};
}

Range range_of_node(const ExprNode& node, const std::function<Range(const Expr&)>& range_of) {
  const auto& operands = node.operands;
  Range result;
  switch (node.kind) {
    case ExprKind::constant:
    case ExprKind::symbol: return {};
    case ExprKind::sum:
      result = {node.numbers.back(), node.numbers.back()};
      for (size_t i = 0; i < operands.size(); ++i)
        result = result + range_of(operands[i]) * Range{node.numbers[i], node.numbers[i]};
      return Range::intersect(result, relaxed_sum_range(node, range_of));
    case ExprKind::product:
      result = {1, 1};
      for (size_t i = 0; i < operands.size(); ++i)
        result = result * power_range(range_of(operands[i]), node.numbers[i]);
      return result;
    case ExprKind::unfolded_sum:
      result = {0, 0};
      for (const Expr& operand : operands) result = result + range_of(operand);
      return result;
    case ExprKind::unfolded_product:
      result = {1, 1};
      for (const Expr& operand : operands) result = result * range_of(operand);
      return result;
    case ExprKind::floordiv: return divide_ranges(range_of(operands[0]), range_of(operands[1]));
    case ExprKind::mod: return mod_ranges(range_of(operands[0]), range_of(operands[1]));
    case ExprKind::min:
    case ExprKind::max:
      result = range_of(operands[0]);
      for (const Expr& operand : operands) {
        const Range range = range_of(operand);
        result = node.kind == ExprKind::min ? Range{std::min(result.lo, range.lo), std::min(result.hi, range.hi)}
                                            : Range{std::max(result.lo, range.lo), std::max(result.hi, range.hi)};
      }
      return result;
    case ExprKind::select: {
      const Range condition = range_of(operands[0]);
      if (!condition.has_zero()) return range_of(operands[1]);
      if (condition.within(0, 0)) return range_of(operands[2]);
      return Range::join(range_of(operands[1]), range_of(operands[2]));
    }
    case ExprKind::at_least_0: {
      const Range range = range_of(operands[0]);
      return {range.lo >= 0, range.hi >= 0};
    }
    case ExprKind::is_0: {
      const Range range = range_of(operands[0]);
      return {range.within(0, 0), range.has_zero()};
    }
  }
  return {};
}

Expr ExprNode::make(ExprKind kind, std::vector<Expr> operands, std::vector<int64_t> numbers, std::string_view name) {
  Content content{kind, operands, numbers, name, 0};
  content.hash = hash_content(content);
  Shard& shard = shard_of(content.hash);
  const auto find = [&]() -> const ExprNode* {
    const auto it = shard.nodes.find(content);
    if (it == shard.nodes.end()) return nullptr;
    (*it)->references.fetch_add(1, std::memory_order_relaxed);
    return *it;
  };
  {
    const std::lock_guard lock(shard.mutex);
    if (const ExprNode* known = find()) return Expr(known);
  }
  auto node = std::make_unique<ExprNode>();
  node->kind = kind;
  node->hash = content.hash;
  node->name = name;
  node->operands = std::move(operands);
  node->numbers = std::move(numbers);
  content.operands = node->operands;
  content.numbers = node->numbers;
  node->range = range_of_node(*node, &detail::range_of);  // outside the lock, because it may build expressions
  const std::lock_guard lock(shard.mutex);
  if (const ExprNode* known = find()) return Expr(known);
  shard.nodes.insert(node.get());
  return Expr(node.release());
}

void ExprNode::release(const ExprNode* node) {
  // The last reference is dropped under the lock of make(), which therefore never finds a node that is being deleted.
  const auto drop = [](const ExprNode* n) {
    uint64_t count = n->references.load(std::memory_order_relaxed);
    while (count > 1)
      if (n->references.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return false;
    Shard& shard = shard_of(n->hash);
    const std::lock_guard lock(shard.mutex);
    if (n->references.fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
    shard.nodes.erase(n);
    return true;
  };
  if (!drop(node)) return;
  // A list instead of recursion, because expressions may be deep.
  std::vector<const ExprNode*> dead{node};
  while (!dead.empty()) {
    const std::unique_ptr<ExprNode> owned(const_cast<ExprNode*>(dead.back()));
    dead.pop_back();
    for (Expr& operand : owned->operands)
      if (const ExprNode* child = std::exchange(operand.node_, nullptr); child && drop(child)) dead.push_back(child);
  }
}

Linear::Linear(const Expr& e) {
  if (e.is_constant()) {
    constant = e.constant();
  } else if (e.kind() == ExprKind::sum) {
    const auto operands = e.operands();
    const auto numbers = e.numbers();
    terms.reserve(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) terms.emplace_back(operands[i], numbers[i]);
    constant = numbers.back();
  } else {
    terms.emplace_back(e, 1);
  }
}

int64_t Linear::coefficient(const Expr& term) const {
  const auto it = std::lower_bound(terms.begin(), terms.end(), term,
                                   [](const auto& entry, const Expr& wanted) { return entry.first < wanted; });
  return it != terms.end() && it->first == term ? it->second : 0;
}

}  // namespace tenon::detail
