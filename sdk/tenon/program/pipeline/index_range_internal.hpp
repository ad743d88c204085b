// Inside the room: the range of indices of an expression, and its largest value over the iterations of a loop.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/pipeline/pipeline.hpp>

namespace tenon::program {

// Windows of symbols; few, so a list.
using SymbolWindows = std::vector<std::pair<std::string, Window>>;

bool depends_on(const Expr& e, std::string_view symbol);

// A window that holds every value of `e` while the symbols lie in theirs: exact when each occurs once, or `e` never
// falls (never rises) in it. With empty windows the result is of no meaning, but that more indices never give fewer.
Window image(const Expr& e, const SymbolWindows& symbols);
// The same for a window of expressions.
Window image(const Window& w, const SymbolWindows& symbols);
// image(w, symbols).first, at half of the cost.
Expr first_of_image(const Window& w, const SymbolWindows& symbols);

Window united(const Window& a, const Window& b);
Window intersected(const Window& a, const Window& b);
Window substituted(const Window& w, const Substitution& map);

// What is known of a loop while bounds over its iterations are sought: its symbol is first, first + step ... and <=
// last.
struct LoopRange {
  std::string symbol;
  Expr first, last, step;
};

// At least every value of upper - lower in the iterations of the loop; free of its symbol. Exact where the difference
// is constant or repeats with the iterations.
Expr supremum_of_difference(const Expr& upper, const Expr& lower, const LoopRange& loop);

// By how much `e` grows when the symbol grows by `period`: a number for any value of the symbol; period 0: none is
// known.
struct Slope {
  int64_t rise = 0;
  int64_t period = 0;
};
Slope slope_of(const Expr& e, const std::string& symbol);

}  // namespace tenon::program
