// Inside the room: the range of indices of an expression, and its largest value over the iterations of a loop.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/pipeline/pipeline.hpp>

namespace tenon::program {

// Windows of symbols; a list, since they are few.
using SymbolWindows = std::vector<std::pair<std::string, Window>>;

bool depends_on(const Expr& e, std::string_view symbol);

// A window that contains every value of `e` for symbols in their windows: exact when each symbol occurs once, or `e` is
// monotonic in it. With empty windows the result has no meaning, except that more indices never give fewer.
Window image(const Expr& e, const SymbolWindows& symbols);
// The same for a window of expressions.
Window image(const Window& w, const SymbolWindows& symbols);
// image(w, symbols).first, at half of the cost.
Expr first_of_image(const Window& w, const SymbolWindows& symbols);

Window united(const Window& a, const Window& b);
Window intersected(const Window& a, const Window& b);
Window substituted(const Window& w, const Substitution& map);

// Assumptions about a loop while bounds over its iterations are computed: its symbol is first, first + step ... and <=
// last.
struct LoopRange {
  std::string symbol;
  Expr first, last, step;
};

// An upper bound of upper - lower over the iterations of the loop; free of its symbol. Exact where the difference is
// constant or periodic in the iterations.
Expr supremum_of_difference(const Expr& upper, const Expr& lower, const LoopRange& loop);

// The growth of `e` when the symbol grows by `period`: a number for any value of the symbol; period 0: not known.
struct Slope {
  int64_t rise = 0;
  int64_t period = 0;
};
Slope slope_of(const Expr& e, const std::string& symbol);

}  // namespace tenon::program
