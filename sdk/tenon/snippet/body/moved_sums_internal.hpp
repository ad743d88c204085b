// Inside of the room: sums that go by what another fold comes to, and how they are moved from one value of that to
// another: so that both folds may be taken group by group, or part by part, before the other is known for all.
//
//   greatest g: s = sum of e^(x - g)    by g':  s * e^(g - g')
//   mean m:     q = sum of (x - m)^2    by m':  q + e * (2 * d + n * e),  e = m - m'
//               d = sum of (x - m)              d + n * e
//
// with n the number of x. d is not 0 where m is rounded: the square is exact for any m, however far from 0, and digits
// are lost only as in any sum.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::snippet {

// A sum of e^(x - by), or of (x - by)^2, `by` being what x folds to: its greatest, that or 0 where it is infinite, or
// its mean.
struct MovedSum {
  const BodyNode *fold = nullptr, *term = nullptr, *difference = nullptr;
  ValueId by = -1;
  bool squares = false;
};
// What `fold` is such a sum of, by one of the folds `firsts`; none: no rule is known. `makers`: the node of each value
// of `body`, null of inputs.
std::optional<MovedSum> moved_sum(const Body& body, std::span<const BodyNode* const> makers, const BodyNode& fold,
                                  std::span<const BodyNode* const> firsts);

// Appends nodes to a body.
class Appender {
 public:
  // `varies`: of values that no node makes.
  Appender(Body& body, DimSet varies, std::string label) : body_(body), varies_(varies), label_(std::move(label)) {}

  ElementType of(ValueId id) const { return body_.values[static_cast<size_t>(id)].element; }
  ValueId value(ElementType element) { return body_.add_value({element, varies_}); }
  ValueId scalar(ElementType element, double number);
  // Of the type of its last operand, but for comparisons.
  ValueId node(Name op, std::vector<ValueId> operands, Attributes attributes = {});
  // What has been made since.
  std::vector<ValueId> take() { return std::exchange(made_, {}); }

 private:
  Body& body_;
  const DimSet varies_;
  const std::string label_;
  std::vector<ValueId> made_;
};

// `sum` of e^(x - from), by `to`.
ValueId move_powers(Appender& a, ValueId sum, ValueId from, ValueId to);

struct Moments {
  ValueId count, first, second;  // of x, of their differences from a value, of the squares of these
};
// By `to` instead of `from`. With `squares_alone`, `first` is not made (-1).
Moments move_moments(Appender& a, const Moments& sums, ValueId from, ValueId to, bool squares_alone = false);

}  // namespace tenon::snippet
