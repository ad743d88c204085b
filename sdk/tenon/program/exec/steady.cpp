#include <tenon/program/exec/steady_internal.hpp>

#include <algorithm>
#include <unordered_set>

#include <tenon/program/walk.hpp>

namespace tenon::program::detail {
namespace {

// Fewer are not worth code of their own.
constexpr int64_t kFewestIterations = 4;
// Conditions within conditions: each round knows the outcome of those that the last one found.
constexpr int kMostRounds = 4;

const std::string kNumber = "steady.iteration";

bool is_simple(const Statement& s) {
  bool simple = true;
  for_each_statement(s, [&](const Statement& inner) {
    const bool known = inner.as<Block>() || inner.as<Let>() || inner.as<Crop>() || inner.as<Slice>() || inner.as<Transpose>() ||
                       inner.as<View>() || inner.as<Call>() || inner.as<Copy>() || inner.as<Check>();
    simple = simple && (inner.empty() || known);
  });
  return simple;
}

// The numbers that code for a body computes.
class Numbers {
 public:
  explicit Numbers(Scope& scope) : scope_(scope) {}
  std::vector<Expr> of(const Statement& body) {
    collect(body);
    return std::move(found_);
  }

 private:
  void collect(const Statement& s) {
    if (s.empty()) return;
    s.visit([this](const auto& statement) { visit(statement); });
  }
  void visit(const Block& s) {
    for (const Statement& inner : s.statements) collect(inner);
  }
  void visit(const Let& s) {
    const Expr value = scope_.simplified(scope_.resolve(s.value));
    add(value);
    scope_.define(s.symbol, value);
    collect(s.body);
    scope_.erase(s.symbol);
  }
  void visit(const Crop& s) { within(s, scope_.crop(s)); }
  void visit(const Slice& s) { within(s, scope_.slice(s)); }
  void visit(const Transpose& s) { within(s, scope_.transpose(s)); }
  void visit(const View& s) { within(s, scope_.view(s)); }
  void visit(const Call& s) {
    for (const Operand& o : s.operands) region(o.region);
    for (const Expr& e : s.scalars) add(scope_.resolve(e));
    add(scope_.resolve(s.predicate));
  }
  void visit(const Copy& s) {
    region(s.destination);
    region(s.source);
    if (const auto* padding = std::get_if<Region>(&s.padding)) region(*padding);
    add(scope_.resolve(s.predicate));
  }
  void visit(const Check& s) { add(scope_.resolve(s.condition)); }
  template <class Other>
  void visit(const Other&) {}  // is_simple: there are none

  template <class Made>
  void within(const Made& s, SymbolicBuffer made) {
    add(made);
    auto before = scope_.exchange(s.buffer, std::move(made));
    collect(s.body);
    scope_.exchange(s.buffer, std::move(before));
  }
  void region(const Region& r) { add(scope_.region(r)); }
  void add(const SymbolicBuffer& buffer) {
    for (const SymbolicDim& d : buffer.dims) {
      add(d.min);
      add(d.extent);
    }
  }
  void add(const Expr& e) {
    if (!e.operands().empty()) found_.push_back(e);
  }

  Scope& scope_;
  std::vector<Expr> found_;
};

// Numbers of iterations at which an outcome is another one than before.
class Turns {
 public:
  std::vector<int64_t> of(const std::vector<Expr>& numbers) {
    for (const Expr& e : numbers) visit(e);
    return std::move(found_);
  }

 private:
  void visit(const Expr& e) {
    if (e.operands().empty() || !seen_.insert(e).second) return;
    const auto operands = e.operands();
    switch (e.kind()) {
      case ExprKind::at_least_0: sign_of(operands[0]); break;
      case ExprKind::is_0:
        sign_of(operands[0]);
        sign_of(-operands[0]);
        break;
      case ExprKind::min:
      case ExprKind::max:
        for (size_t i = 0; i < operands.size(); ++i)
          for (size_t j = i + 1; j < operands.size(); ++j) sign_of(operands[i] - operands[j]);
        break;
      default: break;
    }
    for (const Expr& operand : operands) visit(operand);
  }

  // Where `e` = at_0 + slope * number begins or ceases to be at least 0.
  void sign_of(const Expr& e) {
    const Expr number = Expr::symbol(kNumber);
    const Expr slope = e.substitute({{kNumber, number + 1}}) - e, at_0 = e.substitute({{kNumber, 0}});
    if (!slope.is_constant() || !at_0.is_constant() || slope.is_constant(0)) return;
    const bool rises = slope.constant() > 0;
    const Expr turn = rises ? ceildiv(-at_0, slope) : floordiv(at_0, -slope) + 1;
    if (turn.is_constant()) found_.push_back(turn.constant());
  }

  std::unordered_set<Expr> seen_;
  std::vector<int64_t> found_;
};

// The longest part of `part` without a turn but at its begin.
SteadyPart longest(SteadyPart part, std::vector<int64_t> turns) {
  turns.push_back(part.last);
  std::ranges::sort(turns);
  SteadyPart best{part.first, part.first};
  int64_t from = part.first;
  for (const int64_t turn : turns) {
    if (turn <= from || turn > part.last) continue;
    if (turn - from > best.last - best.first) best = {from, turn};
    from = turn;
  }
  return best;
}

}  // namespace

std::optional<SteadyPart> steady_part(const Loop& loop, int64_t first, int64_t step, int64_t iterations, Scope& scope) {
  if (iterations < kFewestIterations || !is_simple(loop.body)) return {};
  scope.define(loop.symbol, first + step * Expr::symbol(kNumber));
  scope.assumptions()[kNumber] = {0, iterations - 1};
  std::vector<Expr> numbers = Numbers(scope).of(loop.body);
  SteadyPart part{0, iterations};
  for (int round = 0; round < kMostRounds; ++round) {
    const SteadyPart next = longest(part, Turns().of(numbers));
    if (next.first == part.first && next.last == part.last) break;
    part = next;
    scope.assumptions()[kNumber] = {part.first, part.last - 1};
    for (Expr& e : numbers) e = scope.simplified(e);
  }
  scope.assumptions().erase(kNumber);
  scope.erase(loop.symbol);
  const int64_t length = part.last - part.first;
  if (length == iterations || 2 * length < iterations) return {};
  return part;
}

}  // namespace tenon::program::detail
