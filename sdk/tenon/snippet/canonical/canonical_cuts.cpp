#include <tenon/snippet/canonical/canonical_cuts_internal.hpp>

#include <tenon/ops/crop.hpp>

namespace tenon::snippet {

std::optional<std::vector<DimCut>> cuts_of(const Op& op, size_t result) {
  const auto begin = crop_begin(op, result);
  if (!begin) return std::nullopt;
  const Shape &whole = op.operand(0)->type().shape(), &part = op.result(result)->type().shape();
  if (!whole.ranked() || whole.rank() != part.rank()) return std::nullopt;
  std::vector<DimCut> cuts;
  for (size_t d = begin->size(); d-- > 0;) {
    if (whole[d].same_extent(part[d])) continue;
    if (!whole[d].is_static() || !part[d].is_static() || part[d].value() == 0 || !(*begin)[d].is_constant())
      return std::nullopt;
    cuts.push_back({d, (*begin)[d].constant(), part[d].value(), whole[d].value()});
  }
  return cuts;
}

AxisId axis_from(const ValueAxes& axes, size_t dim) {
  for (; dim < axes.size(); ++dim)
    if (!axes[dim].empty()) return axes[dim].front();
  return -1;
}

}  // namespace tenon::snippet
