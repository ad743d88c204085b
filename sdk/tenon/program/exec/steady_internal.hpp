// Inside of the room: the iterations of a loop in which nothing but affine numbers changes, and how they repeat.
//
// The first iterations of a loop over a window fill it, the last one may cover less: min, max and select in the loop's
// numbers see to that, and would be computed in every iteration. In most iterations each of them has one outcome. Code
// that is made for these alone only steps registers, and proves boxes that are not certain elsewhere.
//
// Where buffers are rings, places in them come back after so many iterations. Code that is made for each iteration of
// such a period has constant places, and knows which boxes wrap around.
#pragma once
#include <optional>

#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

// Fewer are no run of iterations that is looked for.
inline constexpr int64_t kFewestIterations = 4;

// Iterations first ... last - 1.
struct SteadyPart {
  int64_t first = 0;
  int64_t last = 0;
  int64_t period = 1;    // of places in rings; 1 as well where code for each of them is not worth it
  bool is_short = true;  // few calls that do little: code for several iterations is worth it
};

// Of a serial loop of `iterations`, whose symbol is first + step * number of the iteration: the longest run of
// iterations in which no condition of the body turns. Where it begins may be known in a run only, as in a band of a
// worker: then periods are for iterations that are aligned to them. Nothing when that is all of them, with a period of
// 1, or less than half, or where the body is not simple but for serial loops in it: with those the period is 1. Names
// of the body are not in `scope`, whose state is as before.
std::optional<SteadyPart> steady_part(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                      Scope& scope);
// Of a loop whose iterations workers take: all but the first and the last, where numbers of the body follow other rules
// in these. Conditions in the numbers of loops within count as well, which turn at no one iteration. Without code of
// their own, bounds of the loops within would be made in each run, and so would their calls' views. Nothing when that
// is all of them, or where the body is not to be split.
std::optional<SteadyPart> steady_members(const Loop& loop, const Expr& first, int64_t step, int64_t iterations,
                                         Scope& scope);
// The numbers of iterations that are aligned to periods of so many, wherever the loop begins: their symbols are as many
// steps apart. In it is a symbol that may be any integer, and that no text can name.
Expr aligned_iteration(const Expr& first, int64_t step, int64_t period, const Scope& scope);

}  // namespace tenon::program::detail
