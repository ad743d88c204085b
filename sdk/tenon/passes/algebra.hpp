// The rules of simplify-algebra as data: one term is replaced by another, for some element types. The pass turns each
// rule into a rewrite; one test checks the whole table with random values.
//
//   {"Add(x, 0)", "x", ints, "floats: -0 + 0 is 0"}
//
// Terms: `Name(a, b)` an operator; a number, `true` or `false`: a constant with all elements equal to it, bit for bit
// (0 is not -0); `_` an absent operand; `Name(a) as b` an operator with a name for conditions; a word that begins with
// `k`: any constant; any other word: any value. A word that occurs twice is the same value. Commutative operators match
// in both orders.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/passes/rewrite.hpp>
#include <tenon/support/export.hpp>

namespace tenon::algebra {

struct Term {
  enum class Kind : uint8_t { value, constant, number, truth, absent, op };
  Kind kind = Kind::value;
  std::string text;   // word, operator or number as written
  std::string name;   // of a value or constant, or of an operator after "as"
  double number = 0;  // of a number or truth
  std::vector<Term> operands;
};
TENON_API Result<Term> parse_term(std::string_view text);

struct Rule {
  std::string_view from, to;
  bool (*types)(ElementType);  // tests the element type of the root's first operand that is not a condition
  // Why the rule holds, unless obvious, and why it does not apply to more types.
  std::string_view why;
  // A further condition; null: none.
  bool (*when)(const Match&) = nullptr;
};

// In the order in which they are tried on an operator. Every rule preserves values bit for bit, NaN and the sign of
// zero included, except for the payload of a NaN and whether it signals.
TENON_API std::span<const Rule> rules();
// The rewrite applies only where it keeps the type of the result: in x + 0 the zero must not broadcast x.
TENON_API Result<Rewrite> to_rewrite(const Rule& rule);

}  // namespace tenon::algebra
