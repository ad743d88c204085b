// Operators that present the same elements in the same order with another shape.
#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

// Traverses two shapes of the same elements in parallel: groups of dims on either side with equal products. Each group
// has one dim on one of the sides; those of the other are its axes.
class ViewWalk {
 public:
  ViewWalk(Space& space, const Shape& from, const Shape& to)
      : space_(space), from_{from, ValueAxes(from.dims().size())}, to_{to, ValueAxes(to.dims().size())} {}

  Result<void> run() {
    while (true) {
      from_.skip_ones();
      to_.skip_ones();
      if (from_.done() && to_.done()) return {};
      if (from_.done() || to_.done() || !(step(from_, to_) || step(to_, from_)))
        return error(Code::unsupported, from_.shape, " and ", to_.shape, " share no run of dims");
    }
  }
  const ValueAxes& from() const { return from_.axes; }
  const ValueAxes& to() const { return to_.axes; }

 private:
  struct Side {
    const Shape& shape;
    ValueAxes axes;
    size_t at = 0;
    bool done() const { return at == axes.size(); }
    void skip_ones() {
      while (!done() && shape[at].is_one()) ++at;
    }
  };

  // One dim of `whole` against one or more of `parts`.
  bool step(Side& whole, Side& parts) {
    const Dim& wanted = whole.shape[whole.at];
    Dim product = int64_t{1};
    size_t end = parts.at;
    while (end < parts.axes.size() && !product.same_extent(wanted)) product = product * parts.shape[end++];
    if (!product.same_extent(wanted)) return false;
    for (; parts.at < end; ++parts.at) {
      if (parts.shape[parts.at].is_one()) continue;
      const AxisId axis = space_.add_axis(parts.shape[parts.at].expr());
      parts.axes[parts.at] = {axis};
      whole.axes[whole.at].push_back(axis);
    }
    ++whole.at;
    return true;
  }

  Space& space_;
  Side from_, to_;
};

Result<Space> view_space(const Op& op) {
  const Shape &from = op.operand(0)->type().shape(), &to = op.result(0)->type().shape();
  if (!from.ranked() || !to.ranked()) return error(Code::unsupported, op.describe(), " has an unknown rank");
  Space space;
  ViewWalk walk(space, from, to);
  TENON_OK(walk.run(), op.describe());
  TENON_OK(space.set(*op.operand(0), walk.from()));
  TENON_OK(space.set(*op.result(0), walk.to()));
  return space;
}

Result<ValueId> same(Rebuild& r) { return r.in(0); }

}  // namespace

DecomposeRows view_rows() {
  DecomposeRows rows;
  for (const std::string_view name : {"Identity", "Squeeze", "Unsqueeze", "Flatten", "Reshape"})
    rows.push_back({.op = name, .space = view_space, .rebuild = same, .exact = true, .view = true});
  return rows;
}

}  // namespace tenon::snippet
