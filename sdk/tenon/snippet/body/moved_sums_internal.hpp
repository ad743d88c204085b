// Inside the room: sums that depend on the result of another reduction, and how they are rescaled from one value of
// that result to another. Both reductions can then be computed group by group, or part by part, before the first is
// complete.
//
//   greatest g: s = sum of e^(x - g)    by g':  s * e^(g - g')
//   mean m:     q = sum of (x - m)^2    by m':  q + e * (2 * d + n * e),  e = m - m'
//               d = sum of (x - m)              d + n * e
//
// with n the number of x. d is not 0 where m is rounded: with it the square is exact for any m, however far from 0, and
// digits are lost only as in any sum.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::snippet {

// A sum of e^(x - by), or of (x - by)^2. `by` is the reduction of x: its maximum, the same but 0 where it is infinite,
// or its mean.
struct MovedSum {
  const BodyNode *fold = nullptr, *term = nullptr, *difference = nullptr;
  ValueId by = -1;
  bool squares = false;
};
// The kind of such a sum that `fold` is, relative to one of the reductions `firsts`; none: no rule is known. `makers`:
// the node of each value of `body`, null for inputs.
std::optional<MovedSum> moved_sum(const Body& body, std::span<const BodyNode* const> makers, const BodyNode& fold,
                                  std::span<const BodyNode* const> firsts);

// Appends nodes to a body.
class Appender {
 public:
  // `varies`: for values that no node computes.
  Appender(Body& body, DimSet varies, std::string label) : body_(body), varies_(varies), label_(std::move(label)) {}

  ElementType of(ValueId id) const { return body_.values[static_cast<size_t>(id)].element; }
  ValueId value(ElementType element) { return body_.add_value({element, varies_}); }
  ValueId scalar(ElementType element, double number);
  // The result has the type of the last operand, except for comparisons.
  ValueId node(Name op, std::vector<ValueId> operands, Attributes attributes = {});
  // The values added since.
  std::vector<ValueId> take() { return std::exchange(made_, {}); }

 private:
  Body& body_;
  const DimSet varies_;
  const std::string label_;
  std::vector<ValueId> made_;
};

// `sum` of e^(x - from), rescaled to `to`.
ValueId move_powers(Appender& a, ValueId sum, ValueId from, ValueId to);

struct Moments {
  ValueId count, first, second;  // of x, of their differences from a value, of the squares of these
};
// The moments relative to `to` instead of `from`. With `squares_alone`, `first` is not computed (-1).
Moments move_moments(Appender& a, const Moments& sums, ValueId from, ValueId to, bool squares_alone = false);

}  // namespace tenon::snippet
