#include <tenon/program/auto_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include <tenon/program/group_costs_internal.hpp>
#include <tenon/program/plan.hpp>

namespace tenon::program {

namespace detail {
namespace {

// Groups that may yet grow, of one kind of strips: those that cost least so far. With up to so many stages none is left
// out.
constexpr size_t kMostOpen = 32;
// Loops over a faster index are for rows of more bytes than this part of the smallest memory.
constexpr double kLongRow = 0.5;
// ... and take as many elements of it at least.
constexpr double kShortestPart = 64;

struct Group {
  size_t first = 0, last = 0;  // in plan.order
  Strips strips;
  PredictedCost cost;
  double window_bytes = 0;
};

class Scheduler {
 public:
  Scheduler(const Plan& plan, const PipelineNumbers& numbers, const CostModel& model)
      : plan_(plan), numbers_(numbers), model_(model) {}

  // The cheapest way to cut the stages: dynamic programming over where a group ends.
  std::vector<Group> best() const {
    const size_t n = numbers_.stages.size();
    std::vector<double> cost(n + 1, INFINITY);
    std::vector<Group> into(n + 1);
    cost[0] = 0;
    std::vector<OpenGroups> open = kinds_of_strips();
    for (size_t last = 0; last < n; ++last) {
      const auto offer = [&](const Group& g) {
        if (cost[g.first] + g.cost.seconds() >= cost[last + 1]) return;
        cost[last + 1] = cost[g.first] + g.cost.seconds();
        into[last + 1] = g;
      };
      offer(group(last, last, {}));
      for (OpenGroups& kind : open) extend(kind, last, cost, offer);
    }
    std::vector<Group> out;
    for (size_t end = n; end > 0; end = out.back().first) out.push_back(into[end]);
    std::ranges::reverse(out);
    return out;
  }

  // Stages as the author of `data`, the same pipeline with a schedule, placed them.
  std::vector<Group> stated(const PipelineData& data, const SymbolValues& sizes) const {
    std::vector<Group> out;
    for (size_t i = numbers_.stages.size(); i > 0;) {
      const StageSpec& spec = data.stages[static_cast<size_t>(plan_.order[i - 1])];
      size_t first = i - 1;
      if (!spec.loops.empty())
        while (first > 0 && stays_in(data, first - 1, i - 1)) --first;
      out.push_back(group(first, i - 1, stated_strips(spec, i - 1, sizes), &data));
      i = first;
    }
    return out;
  }

  // Of the stage at `last`: how many of its indices an iteration covers.
  int64_t step_of(const Strips::Loop& loop, size_t last) const {
    const double part = loop.step * index_of(loop.dim, last)->extent / numbers_.extents[static_cast<size_t>(loop.dim)];
    return std::max<int64_t>(1, int64_t{1} << std::max(0L, std::lround(std::log2(part))));
  }
  std::string index_name(const Strips::Loop& loop, size_t last) const {
    const auto& indices = numbers_.stages[last].indices;
    return plan_.stage(plan_.order[last]).indices[static_cast<size_t>(index_of(loop.dim, last) - indices.begin())];
  }

 private:
  using Index = std::vector<StageNumbers::Index>::const_iterator;
  Index index_of(int dim, size_t at) const {
    return std::ranges::find(numbers_.stages[at].indices, dim, &StageNumbers::Index::dim);
  }

  struct OpenGroups {
    Strips strips;
    double iterations = 1;
    Share before;                                      // of the stage added last
    std::vector<std::pair<GroupCost, double>> groups;  // with the costs of all stages before
  };

  // Loops over the slowest index of any stage, and, where rows are long, over faster ones with one index at a time of
  // the slower ones; with steps that are powers of two.
  std::vector<OpenGroups> kinds_of_strips() const {
    std::map<std::vector<int>, double> nests;  // dims, innermost first: bytes of the largest row
    for (const StageNumbers& n : numbers_.stages) {
      std::vector<int> dims;
      double row = n.bytes;
      for (const StageNumbers::Index& index : n.indices | std::views::reverse) {
        if (index.extent <= 1) continue;
        dims.insert(dims.begin(), index.dim);
        double& largest = nests[dims];
        largest = std::max(largest, row);
        row /= index.extent;
      }
    }
    std::vector<OpenGroups> out;
    for (const auto& [dims, row] : nests) add_steps(dims, row, out);
    return out;
  }

  void add_steps(const std::vector<int>& dims, double row, std::vector<OpenGroups>& out) const {
    const bool nested = dims.size() > 1;
    if (nested && row < kLongRow * model_.memories.front().bytes) return;
    const double most = numbers_.extents[static_cast<size_t>(dims[0])];
    for (double step = (nested ? kShortestPart : 1) * most / extent_at_end(dims[0]); step < most; step *= 2) {
      OpenGroups kind;
      for (const int dim : dims) kind.strips.loops.push_back({dim, kind.strips.loops.empty() ? step : 1});
      kind.iterations = kind.strips.iterations(numbers_);
      out.push_back(std::move(kind));
    }
  }

  // Of the last stage that has the dim: there steps are to be powers of two.
  double extent_at_end(int dim) const {
    for (size_t at = numbers_.stages.size(); at-- > 0;)
      if (const Index index = index_of(dim, at); index != numbers_.stages[at].indices.end())
        return std::max(index->extent, 1.0);
    return 1;
  }

  // Adds the stage to all groups that may hold it, and begins one with it.
  template <class Offer>
  void extend(OpenGroups& kind, size_t last, const std::vector<double>& cost, const Offer& offer) const {
    if (last > 0 && numbers_.stages[last - 1].is_output) kind.groups.clear();   // it would be inside
    if (kind.strips.loops.size() > 1 && kind.before.kept) kind.groups.clear();  // all of a loop within would be kept
    const Share share = share_of(numbers_, kind.strips, last);
    kind.groups.emplace_back(GroupCost(last, kind.iterations), cost[last]);
    for (auto& [group, before] : kind.groups) group.add(numbers_, model_, last, kind.before, share);
    kind.before = share;
    if (can_own(kind.strips, last))
      for (const auto& [group, before] : kind.groups)
        if (group.first() < last && group.is_closed(last))
          offer({group.first(), last, kind.strips, group.total(numbers_, model_, last), group.window_bytes()});
    if (kind.groups.size() > kMostOpen) leave_out_worst(kind, last);
  }

  void leave_out_worst(OpenGroups& kind, size_t last) const {
    const auto seconds = [&](const auto& open) {
      return open.second + open.first.total(numbers_, model_, last).seconds();
    };
    kind.groups.erase(std::ranges::max_element(kind.groups, {}, seconds));
  }

  // Whether the loops are those over the stage's slowest indices.
  bool can_own(const Strips& strips, size_t at) const {
    size_t found = 0;
    for (const StageNumbers::Index& index : numbers_.stages[at].indices | std::views::reverse) {
      if (index.extent <= 1) continue;
      if (found == strips.loops.size() || strips.loops[strips.loops.size() - 1 - found].dim != index.dim) break;
      ++found;
    }
    return found == strips.loops.size();
  }

  // `data`: whose author may keep no window of some results; null: all are kept.
  Group group(size_t first, size_t last, const Strips& strips, const PipelineData* data = nullptr) const {
    GroupCost cost(first, strips.iterations(numbers_));
    Share before;
    for (size_t at = first; at <= last; ++at) {
      const Share share = share_of(numbers_, strips, at);
      cost.add(numbers_, model_, at, before, share);
      if (data && at < last) cost.add_redundant(computed_twice(*data, at, plan_.order[last], strips));
      before = share;
    }
    return {first, last, strips, cost.total(numbers_, model_, last), cost.window_bytes()};
  }

  // Whether all that reads stage `at` is in order[at + 1 ... last], and its author lets it be there.
  bool stays_in(const PipelineData& data, size_t at, size_t last) const {
    const StageSpec& spec = data.stages[static_cast<size_t>(plan_.order[at])];
    const StageNumbers& n = numbers_.stages[at];
    return !(spec.compute_at && spec.compute_at->stage < 0) && !n.is_output && n.last_use <= last;
  }

  Strips stated_strips(const StageSpec& spec, size_t at, const SymbolValues& sizes) const {
    Strips strips;
    const StageNumbers& n = numbers_.stages[at];
    for (const LoopOver& loop : spec.loops) {
      const StageNumbers::Index& index =
          n.indices[static_cast<size_t>(plan_.stage(plan_.order[at]).index_of(loop.index.name()))];
      const Result<int64_t> step = loop.step.evaluate(sizes);
      const double largest = numbers_.extents[static_cast<size_t>(index.dim)];
      strips.loops.push_back({index.dim, static_cast<double>(step.ok() ? std::max<int64_t>(*step, 1) : 1) * largest /
                                             std::max(index.extent, 1.0)});
    }
    return strips;
  }

  // Elements computed again, since their author keeps no window of them from one iteration to the next.
  double computed_twice(const PipelineData& data, size_t at, int owner, const Strips& strips) const {
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

  const Plan& plan_;
  const PipelineNumbers& numbers_;
  const CostModel& model_;
};

PredictedCost total(const std::vector<Group>& groups) {
  PredictedCost out;
  for (const Group& g : groups) {
    out.memory_seconds += g.cost.memory_seconds;
    out.dispatch_seconds += g.cost.dispatch_seconds;
    out.redundant_seconds += g.cost.redundant_seconds;
  }
  return out;
}

std::string describe(const Plan& plan, const Scheduler& scheduler, const Group& g) {
  std::string out =
      str(plan.spec(plan.order[g.last]).name, ": ", g.last - g.first + 1, g.first == g.last ? " stage" : " stages");
  if (g.strips.loops.empty()) return out + " as a whole";
  for (const Strips::Loop& loop : g.strips.loops)
    out += str(&loop == g.strips.loops.data() ? " over " : ", ", scheduler.index_name(loop, g.last), " in steps of ",
               scheduler.step_of(loop, g.last));
  return out + str(", ", static_cast<int64_t>(g.window_bytes), " bytes of windows");
}

// Without the author's loops and places.
void clear_schedule(PipelineData& data) {
  for (StageSpec& spec : data.stages) spec.loops.clear(), spec.compute_at.reset();
  for (BufferSpec& spec : data.buffers) spec.store_at.reset();
}
PipelineData without_schedule(const PipelineData& data) {
  PipelineData bare = data;
  clear_schedule(bare);
  return bare;
}

void apply(PipelineData& data, const Plan& plan, const Scheduler& scheduler, const std::vector<Group>& groups) {
  clear_schedule(data);
  for (const Group& g : groups) {
    StageSpec& spec = data.stages[static_cast<size_t>(plan.order[g.last])];
    spec.compute_at = LoopName{};
    for (const Strips::Loop& loop : g.strips.loops)
      spec.loops.push_back({Expr::symbol(scheduler.index_name(loop, g.last)), scheduler.step_of(loop, g.last)});
  }
}

}  // namespace
}  // namespace detail

Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                     const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                     const CostModel& model) {
  PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = detail::without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "scheduling '", data.name, "'");
  TENON_TRY(numbers, detail::measure_stages(plan, sizes), "scheduling '", data.name, "'");
  const detail::Scheduler scheduler(plan, numbers, model);
  ScheduleReport report;
  report.by_hand = detail::total(scheduler.stated(data, sizes));
  const std::vector<detail::Group> groups = scheduler.best();
  report.automatic = detail::total(groups);
  for (const detail::Group& g : groups) report.groups.push_back(detail::describe(plan, scheduler, g));
  detail::apply(data, plan, scheduler, groups);
  return report;
}

Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                   const CostModel& model) {
  const PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = detail::without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "the cost of '", data.name, "'");
  TENON_TRY(numbers, detail::measure_stages(plan, sizes), "the cost of '", data.name, "'");
  return detail::total(detail::Scheduler(plan, numbers, model).stated(data, sizes));
}

}  // namespace tenon::program
