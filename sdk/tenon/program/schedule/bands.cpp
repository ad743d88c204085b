// Groups of stages whose slowest index is cut into bands, one for each worker.
#include <cmath>
#include <ranges>

#include <tenon/program/schedule/scheduler_internal.hpp>

namespace tenon::program::detail {

Bands Scheduler::bands_of(size_t first, size_t last, const Strips& strips) const {
  if (model_.workers < 2) return {};
  const auto indices = numbers_.stages[last].indices | std::views::reverse;
  const auto slowest = std::ranges::find_if(indices, [](const StageNumbers::Index& i) { return i.extent > 1; });
  if (slowest == indices.end()) return {};
  const int dim = slowest->dim;
  for (size_t at = first; at <= last; ++at) {
    const StageNumbers& n = numbers_.stages[at];
    if (index_of(dim, at) == n.indices.end()) return {};
    // In bands, windows are ring buffers, and a buffer accessed by a kernel without support for them keeps all of its
    // indices.
    const auto in_one_piece = [&](const WriteSpec& write) { return !takes_rings(plan_, write.buffer); };
    if (at < last && !strips.loops.empty() && share_of(numbers_, strips, at).kept &&
        std::ranges::any_of(plan_.spec(plan_.order[at]).writes, in_one_piece))
      return {};
  }
  double step = 1;
  for (const Strips::Loop& loop : strips.loops)
    if (loop.dim == dim) step = static_cast<double>(step_of(loop, last));
  const double steps = std::ceil(slowest->extent / static_cast<double>(model_.workers) / step);
  if (steps * step >= slowest->extent) return {};
  return {dim, steps * step};
}

Bands Scheduler::stated_bands(const StageSpec& spec, size_t at) const {
  if (model_.workers < 2) return {};
  for (const LoopOver& loop : spec.loops) {
    if (loop.workers.is_constant(1)) continue;
    const StageNumbers::Index& index =
        numbers_.stages[at].indices[static_cast<size_t>(plan_.stage(plan_.order[at]).index_of(loop.index.name()))];
    return {index.dim, std::ceil(index.extent / static_cast<double>(model_.workers))};
  }
  return {};
}

PredictedCost Scheduler::shared(PredictedCost cost, size_t first, size_t last, const Bands& bands) const {
  if (bands.dim < 0) return cost;
  const double extent = index_of(bands.dim, last)->extent, borders = std::ceil(extent / bands.indices) - 1;
  // The indices beyond the border that readers need, accumulated from the last stage backwards.
  double seen = 0;
  for (size_t at = last; at-- > first;) {
    const Index index = index_of(bands.dim, at);
    if (index == numbers_.stages[at].indices.end()) continue;
    seen += index->overlap;
    cost.redundant_seconds +=
        borders * seen * numbers_.stages[at].elements / std::max(index->extent, 1.0) * model_.seconds_per_element;
  }
  const double part = bands.indices / extent;
  return {cost.memory_seconds * part, cost.dispatch_seconds * part + model_.seconds_to_share,
          cost.redundant_seconds * part};
}

}  // namespace tenon::program::detail
