// Inside the room: the steady part of a loop, in which only affine numbers change, and the period in which they repeat.
//
// The first iterations of a loop over a window fill it, and the last one may cover less. The loop's numbers contain
// min, max and select for that, which would be evaluated in every iteration, although each of them has one outcome in
// most iterations. Code for these iterations alone only increments registers, and can prove boxes that are uncertain
// elsewhere.
//
// Where buffers are ring buffers, their positions repeat after a period of iterations. With code for each iteration of
// a period, positions are constant, and it is known which boxes wrap around.
#pragma once
#include <optional>

#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

// Shorter runs of iterations are not searched for.
inline constexpr int64_t kFewestIterations = 4;

// Iterations first ... last - 1.
struct SteadyPart {
  int64_t first = 0;
  int64_t last = 0;
  int64_t period = 1;    // of positions in rings; also 1 where code for each of them does not pay
  bool is_short = true;  // few calls that do little: code for several iterations pays
};

// For a serial loop of `iterations`, whose symbol is first + step * iteration number: the longest run of iterations in
// which no condition of the body changes its outcome. Its beginning may be known only to a run, as in a band of a
// worker; periods then start at aligned iterations. Nothing when the run is the whole loop with a period of 1, or less
// than half of it, or where the body is not simple except for serial loops in it; with such loops the period is 1.
// Names of the body are not in `scope`, whose state is unchanged.
std::optional<SteadyPart> steady_part(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                      Scope& scope);
// For a loop whose iterations workers take: all iterations but the first and the last, where these differ in the
// numbers of the body. Conditions in the numbers of inner loops count as well, although they do not change at one
// iteration: without code of their own, the bounds of inner loops, and the views of their calls, would be computed in
// each run. Nothing when that is the whole loop, or where the body must not be split.
std::optional<SteadyPart> steady_members(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                         Scope& scope);
// The numbers of iterations that are aligned to `period`, wherever the loop begins: their symbols differ by as many
// steps. The expression contains a symbol that may be any integer, and that no text can name.
Expr aligned_iteration(const Expr& first, int64_t step, int64_t period, const Scope& scope);

}  // namespace tenon::program::detail
