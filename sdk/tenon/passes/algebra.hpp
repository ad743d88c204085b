// The rules of simplify-algebra as data: one term becomes another, for some element types. The pass turns each into a
// rewrite; one test walks the table with random values.
//
//   {"Add(x, 0)", "x", ints, "floats: -0 + 0 is 0"}
//
// Terms: `Name(a, b)` an operator; a number, `true` or `false`: a constant with all elements equal to it, bit for bit
// (0 is not -0); `_` an absent operand; `Name(a) as b` an operator with a name for conditions; a word that begins with
// `k`: any constant; another word: any value. A word that stands twice is one value. Commutative operators fit in both
// orders.
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
  std::string name;   // of a value or constant; of an operator that stands "as" it
  double number = 0;  // of a number or truth
  std::vector<Term> operands;
};
TENON_API Result<Term> parse_term(std::string_view text);

struct Rule {
  std::string_view from, to;
  bool (*types)(ElementType);  // of the element type of the root's first operand that is no condition
  // Why it holds, where that is not plain; and why it is not given for more types.
  std::string_view why;
  // A further condition; null: none.
  bool (*when)(const Match&) = nullptr;
};

// In the order in which they are tried at one operator. Every rule gives bit for bit what was there before, NaN and the
// sign of zero included; the payload of a NaN and whether it signals are not counted.
TENON_API std::span<const Rule> rules();
// It fits only where the type of the result stays what it was: in x + 0 the zero may not stretch x.
TENON_API Result<Rewrite> to_rewrite(const Rule& rule);

}  // namespace tenon::algebra
