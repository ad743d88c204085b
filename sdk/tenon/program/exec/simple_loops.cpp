#include <tenon/program/exec/simple_loops_internal.hpp>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program::detail {
namespace {

// Loops with more iterations are not unrolled.
constexpr int64_t kMostWrittenOut = 16;

bool is_nothing_else(const Statement&) { return false; }

// Contains nothing that must not be duplicated: no allocations, transfers or workers, apart from loops that satisfy
// `may_hold` and statements that are `allowed`.
template <class MayHold, class Allowed = bool(const Statement&)>
bool is_plain(const Statement& s, const MayHold& may_hold, const Allowed& allowed = is_nothing_else) {
  bool simple = true;
  for_each_statement(s, [&](const Statement& inner) {
    const auto* loop = inner.as<Loop>();
    const bool known = (loop && may_hold(*loop)) || inner.as<Block>() || inner.as<Let>() || inner.as<Crop>() ||
                       inner.as<Slice>() || inner.as<Transpose>() || inner.as<View>() || inner.as<Call>() ||
                       inner.as<Copy>() || inner.as<Prefetch>() || inner.as<Check>() || allowed(inner);
    simple = simple && (inner.empty() || known);
  });
  return simple;
}

// One loop of one iteration for each iteration.
std::optional<Statement> written_out(const Loop& loop, const Scope& scope) {
  const Expr begin = scope.simplified(scope.resolve(loop.begin)), end = scope.simplified(scope.resolve(loop.end)),
             step = scope.simplified(scope.resolve(loop.step));
  if (loop.kind != LoopKind::serial || !begin.is_constant() || !end.is_constant() || !step.is_constant()) return {};
  if (step.constant() < 1 || begin.constant() >= end.constant()) return {};
  const int64_t iterations = iteration_count(begin.constant(), end.constant(), step.constant());
  if (iterations > kMostWrittenOut) return {};
  Block block;
  for (int64_t i = 0; i < iterations; ++i) {
    const Expr number = begin + i * step;
    block.statements.push_back(Loop{.symbol = loop.symbol, .begin = number, .end = number + 1, .body = loop.body});
  }
  return Statement(std::move(block));
}

Statement with_loops_written_out(const Statement& s, const Scope& scope) {
  const Statement made = with_children(s, [&](const Statement& inner) { return with_loops_written_out(inner, scope); });
  const auto* loop = made.as<Loop>();
  if (!loop || has_one_iteration(*loop)) return made;
  return written_out(*loop, scope).value_or(made);
}

}  // namespace

bool has_one_iteration(const Loop& loop) {
  return loop.kind == LoopKind::serial && loop.end == loop.begin + 1 && loop.step.is_constant(1);
}

bool is_simple(const Statement& s) { return is_plain(s, has_one_iteration); }

bool has_simple_loops(const Statement& s) {
  return is_plain(s, [](const Loop& loop) { return loop.kind == LoopKind::serial; });
}

bool may_be_repeated(const Statement& body, bool in_loop) {
  return has_simple_loops(body) && (in_loop || !is_simple(body));
}

bool may_be_split(const Statement& body) {
  bool holds = false;
  const auto is_serial = [&](const Loop& loop) { return holds = true, loop.kind == LoopKind::serial; };
  return is_plain(body, is_serial, [](const Statement& s) { return s.as<Allocate>() != nullptr; }) && holds;
}

bool is_once(const Loop& loop) { return has_one_iteration(loop) && is_simple(loop.body); }

std::optional<Loop> with_loops_written_out(const Loop& loop, const Scope& scope) {
  Loop made = loop;
  made.body = with_loops_written_out(loop.body, scope);
  if (made.body == loop.body || !is_simple(made.body)) return {};
  return made;
}

}  // namespace tenon::program::detail
