// Reduced dims that are contiguous in memory are traversed as one. Only few sweeps read values that distinguish them,
// such as the factors of a group's channels; the others need no loop over the outer dims, and no tail in each iteration
// of it.
#include <algorithm>
#include <bit>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {

// The outermost of the folded dims that are innermost in the body, if there are several without gaps between them; -1:
// none.
int Planner::first_of_stretch() const {
  const auto rank = static_cast<int>(body_.rank()), first = static_cast<int>(body_.first_of_row());
  const auto is_apart = [&](const BodyPort& port) {
    return std::ranges::any_of(port.cuts, [&](const PortCut& cut) { return cut.dim > first; });
  };
  const bool gaps = std::ranges::any_of(body_.inputs, is_apart) || std::ranges::any_of(body_.outputs, is_apart);
  return rank - first < 2 || rank == kMaxDims || gaps ? -1 : first;
}

// Whether each value of it varies over all dims from `first` on, or over none.
bool Planner::walks_stretch(const Sweep& sweep, int first) const {
  const Body& body = plan_.body.values.empty() ? body_ : plan_.body;  // includes the values of merged sweeps
  const DimSet all = body_.all_dims() >> first << first;
  const auto fits = [&](ValueId id) {
    const DimSet dims = body.values[index(id)].varies & all;
    return dims == 0 || dims == all;
  };
  const auto access_fits = [&](const Access& access) { return fits(access.value); };
  return std::ranges::find(sweep.loops, first) != sweep.loops.end() &&
         sweep.loops.back() + 1 == static_cast<int>(body_.rank()) && std::ranges::all_of(sweep.values, fits) &&
         std::ranges::all_of(sweep.reads, access_fits) && std::ranges::all_of(sweep.stores, access_fits) &&
         std::ranges::all_of(sweep.folds, [&](const BodyNode* fold) { return fits(fold->operands[0]); });
}

std::vector<Sweep*> Planner::sweeps_of(Phase& phase) {
  std::vector<Sweep*> sweeps;
  if (phase.merges >= 0) sweeps.push_back(&plan_.mergings[index(phase.merges)].sweep);
  for (Sweep& sweep : phase.sweeps) sweeps.push_back(&sweep);
  return sweeps;
}

// The two sweeps of a row that run together have the same loops.
void Planner::walk_stretches() {
  const int first = first_of_stretch(), dim = static_cast<int>(body_.rank());
  if (first < 0) return;
  std::vector<Sweep*> pair;
  if (plan_.skewed_with) {
    std::vector<Phase>& phases = plan_.nests[0].scopes.back().phases;
    pair = {sweeps_of(phases[*plan_.skewed_with]).front(), &phases.back().sweeps.back()};
  }
  const bool apart = !std::ranges::all_of(pair, [&](const Sweep* sweep) { return walks_stretch(*sweep, first); });
  std::vector<Sweep*> found;
  for (Nest& nest : plan_.nests)
    for (Scope& scope : nest.scopes)
      for (Phase& phase : scope.phases)
        for (Sweep* sweep : sweeps_of(phase))
          if (walks_stretch(*sweep, first) && !(apart && std::ranges::find(pair, sweep) != pair.end()))
            found.push_back(sweep);
  if (found.empty()) return;
  for (Sweep* sweep : found) {
    std::erase_if(sweep->loops, [&](int loop) { return loop >= first; });
    sweep->loops.push_back(dim);
  }
  plan_.stretch = first;
  if (plan_.body.values.empty()) plan_.body = body_;
  Expr extent = 1;
  for (int d = first; d < dim; ++d) extent = extent * body_.dims[index(d)].extent;
  const DimSet all = body_.all_dims() >> first << first;
  plan_.body.dims.push_back({.extent = extent});
  for (BodyValue& value : plan_.body.values)
    if ((value.varies & all) == all) value.varies |= DimSet{1} << dim;
}

}  // namespace tenon::snippet
