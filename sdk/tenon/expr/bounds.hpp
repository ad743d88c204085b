// What can be proved about an expression when its symbols lie in known intervals.
//
// Everything here is sound and incomplete: "true", a bound or a divisor is proved for all integer values of the symbols
// within the assumptions at which the expressions have a value; "false" or a missing bound means "not proved".
// Time: linear in the number of distinct subexpressions, times the terms of a sum that hold a floordiv.
#pragma once
#include <optional>

#include <tenon/expr/expr.hpp>

namespace tenon {

// lower <= value <= upper; a missing end is unbounded. An interval without any integer makes every claim true.
struct Interval {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;
  bool operator==(const Interval&) const = default;
};
// By symbol name; a missing symbol is unbounded.
using Assumptions = std::map<std::string, Interval, std::less<>>;

TENON_API Interval bounds(const Expr& e, const Assumptions& assumptions);

TENON_API bool prove_le(const Expr& a, const Expr& b, const Assumptions& assumptions = {});
TENON_API bool prove_lt(const Expr& a, const Expr& b, const Assumptions& assumptions = {});
TENON_API bool prove_eq(const Expr& a, const Expr& b, const Assumptions& assumptions = {});

// `e` simplified further under the assumptions: n * m floordiv m becomes n where m is never 0, and so on. Equal to `e`
// within the assumptions only.
TENON_API Expr simplify(const Expr& e, const Assumptions& assumptions);

// Whether increasing the symbol, with the others unchanged, never decreases (increases) the value of `e`.
TENON_API bool is_non_decreasing_in(const Expr& e, std::string_view symbol, const Assumptions& assumptions = {});
TENON_API bool is_non_increasing_in(const Expr& e, std::string_view symbol, const Assumptions& assumptions = {});

// The largest known divisor of every value of `e`, given a divisor of each symbol (1 where none is given; they must be
// positive). 0 when `e` is always 0.
TENON_API int64_t alignment_of(const Expr& e, const SymbolValues& symbol_alignments);

}  // namespace tenon
