// Inside the room. Iteration spaces: how the dims of an operator's operands and results correspond, and which operators
// can share one loop nest.
//
//   ReduceMean %x: f32[N,C,H,W] over (2, 3)    axes  a = N, b = C, c = H (folded), d = W (folded)
//                                              %x [a] [b] [c] [d]   result with kept dims [a] [b] [] []
//   Flatten of it                              [a] [b c d] for f32[N, C*H*W]
//
// A dim of a value is a list of axes, outermost first: none for extent 1, several where an operator splits a dim or
// joins some. An axis is one loop, with one extent.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

using AxisId = int;
struct Axis {
  Expr extent;
  bool folded = false;  // a reduction reduces it
};
using AxisList = std::vector<AxisId>;
using ValueAxes = std::vector<AxisList>;  // one for each dim of the value

class Space {
 public:
  // ---- Of one operator ----

  // The axes of a shape, one for each dim except those of extent 1; they become the innermost ones of the space. An
  // error names a dim whose extent is not known.
  Result<ValueAxes> add_shape(const Shape& shape);
  AxisId add_axis(Expr extent);
  void fold(AxisId axis) { axes_[static_cast<size_t>(axis)].folded = true; }
  // Its operators take much longer than loads and stores do, so they must not be repeated.
  void set_costly() { costly_ = true; }
  // Two shapes of one value are an error unless they agree.
  Result<void> set(const Value& value, ValueAxes axes);

  // ---- Reading ----

  // Null: not in the space.
  const ValueAxes* find(const Value& value) const;
  const std::unordered_map<const Value*, ValueAxes>& values() const { return values_; }
  const Axis& axis(AxisId id) const { return axes_[static_cast<size_t>(id)]; }
  const std::vector<AxisId>& order() const { return order_; }  // outermost first
  bool folds() const;
  void forget(const Value& value) { values_.erase(&value); }

  // ---- Of several ----

  // Merges `other` into this space, which then contains its values. False, with the reason and this space unchanged,
  // when the two have no common loop nest:
  //   - each has an axis that the other does not have: neither would be computed once,
  //   - they have the same axes in another order, or reduce different ones,
  //   - one reduces, and the other has axes over which the reduction would be repeated,
  //   - one is costly, and the other has axes around it over which it would be repeated.
  // The axes are matched through the values that both have. Time: linear in the values of the smaller one.
  bool merge(Space&& other, std::string* why = nullptr);

 private:
  struct Matching;
  bool match(const Space& other, Matching& matching) const;
  void refine(AxisId axis, std::span<const Expr> extents);
  bool fits(const Space& other, const Matching& matching) const;
  void take(Space&& other, const Matching& matching);

  std::vector<Axis> axes_;
  std::vector<AxisId> order_;
  bool costly_ = false;
  std::unordered_map<const Value*, ValueAxes> values_;
};

}  // namespace tenon::snippet
