#include <algorithm>
#include <cmath>

#include <tenon/program/schedule/scheduler_internal.hpp>

namespace tenon::program::detail {

namespace {

Far stated_far(const StageSpec& spec) {
  if (spec.loops.empty()) return Far::plain;
  const LoopOver& innermost = spec.loops.front();
  if (innermost.non_temporal) return Far::non_temporal;
  return innermost.ahead > 0 ? Far::fetched : Far::plain;
}

}  // namespace

std::vector<Group> Scheduler::stated(const PipelineData& data, const SymbolValues& sizes) const {
  std::vector<Group> out;
  for (size_t i = numbers_.stages.size(); i > 0;) {
    const StageSpec& spec = data.stages[static_cast<size_t>(plan_.order[i - 1])];
    size_t first = i - 1;
    if (!spec.loops.empty())
      while (first > 0 && stays_in(data, first - 1, i - 1)) --first;
    out.push_back(group(first, i - 1, stated_strips(spec, i - 1, sizes), stated_far(spec), &data));
    i = first;
  }
  return out;
}

int64_t Scheduler::step_of(const Strips::Loop& loop, size_t last) const {
  const double part = loop.step * index_of(loop.dim, last)->extent / numbers_.extents[static_cast<size_t>(loop.dim)];
  return std::max<int64_t>(1, int64_t{1} << std::max(0L, std::lround(std::log2(part))));
}

std::string Scheduler::index_name(int dim, size_t last) const {
  const auto& indices = numbers_.stages[last].indices;
  return plan_.stage(plan_.order[last]).indices[static_cast<size_t>(index_of(dim, last) - indices.begin())];
}

Group Scheduler::group(size_t first, size_t last, const Strips& strips, Far far, const PipelineData* data) const {
  GroupCost cost(first, numbers_, strips);
  Share before;
  for (size_t at = first; at <= last; ++at) {
    const Share share = share_of(numbers_, strips, at);
    cost.add(numbers_, at, share, at > first ? inside_of(numbers_.stages[at - 1], memories_, before, share) : Inside());
    if (data && at < last) cost.add_redundant(computed_twice(*data, at, plan_.order[last], strips));
    before = share;
  }
  const GroupTotal total = cost.total(numbers_, model_, memories_, last, far);
  const Bands bands =
      data ? stated_bands(data->stages[static_cast<size_t>(plan_.order[last])], last) : bands_of(first, last, strips);
  return {first, last, strips, shared(total.cost, first, last, bands), cost.window_bytes(), total.far, bands};
}

bool Scheduler::stays_in(const PipelineData& data, size_t at, size_t last) const {
  const StageSpec& spec = data.stages[static_cast<size_t>(plan_.order[at])];
  const StageNumbers& n = numbers_.stages[at];
  return !(spec.compute_at && spec.compute_at->stage < 0) && !n.is_output && n.last_use <= last;
}

Strips Scheduler::stated_strips(const StageSpec& spec, size_t at, const SymbolValues& sizes) const {
  Strips strips;
  const StageNumbers& n = numbers_.stages[at];
  for (const LoopOver& loop : spec.loops) {
    const StageNumbers::Index& index =
        n.indices[static_cast<size_t>(plan_.stage(plan_.order[at]).index_of(loop.index.name()))];
    // Bands cost as much as their strips.
    if (std::ranges::count(strips.loops, index.dim, &Strips::Loop::dim)) continue;
    const Result<int64_t> step = loop.step.evaluate(sizes);
    const double largest = numbers_.extents[static_cast<size_t>(index.dim)];
    strips.loops.push_back({index.dim, static_cast<double>(step.ok() ? std::max<int64_t>(*step, 1) : 1) * largest /
                                           std::max(index.extent, 1.0)});
  }
  return strips;
}

double Scheduler::computed_twice(const PipelineData& data, size_t at, int owner, const Strips& strips) const {
  const StageNumbers& n = numbers_.stages[at];
  double part = 0;
  for (const WriteSpec& write : plan_.spec(plan_.order[at]).writes)
    if (const auto& store = data.buffers[static_cast<size_t>(write.buffer)].store_at; store && store->stage == owner)
      for (const Strips::Loop& loop : strips.loops)
        if (const Index index = index_of(loop.dim, at); index != n.indices.end())
          part = std::max(part, index->overlap * numbers_.extents[static_cast<size_t>(loop.dim)] /
                                    (loop.step * std::max(index->extent, 1.0)));
  return part * n.elements;
}

}  // namespace tenon::program::detail
