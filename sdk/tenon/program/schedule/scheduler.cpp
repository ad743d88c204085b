#include <cmath>
#include <limits>
#include <map>
#include <ranges>

#include <tenon/program/schedule/scheduler_internal.hpp>

namespace tenon::program::detail {

namespace {

// Most open groups per kind of strips: those with the lowest cost so far. With up to this many stages none is dropped.
constexpr size_t kMostOpen = 32;
// Shortest parts of rows in bytes: shorter ones, each on a page of its own, do not stream.
constexpr double kShortestPart = 4096;
// Loops over a faster index are for rows of at least this many bytes: two parts.
constexpr double kLongRow = 2 * kShortestPart;
// Loops down columns take at most this many rows, of pieces this many times as long as the shortest parts. With
// prefetching shorter ones stream, too, and considering taller and longer ones gains nothing
// (docs/performance/lessons/cost-model.md, Which schedules are offered).
struct Columns {
  double shortest, longest, tallest;
};
constexpr Columns kPlainColumns{1, 2, 16}, kFetchedColumns{0.25, 0.5, 4};
// They are for windows that exceed the second memory: each is assumed to have this many rows.
constexpr double kRowsOfWindow = 4;
// Tiles fill this part of the smallest memory: streaming data has the rest.
constexpr double kOfTiles = 0.5;
// Tiles along rows are contiguous with the previous one, so that shorter parts stream as well: up to this many rows at
// a time.
constexpr double kShortestTile = 1024;
constexpr double kTallestTile = 16;

// Weight of stages that are left whole where strips are requested: only stages that no strips can contain are.
constexpr double kWhereNothingElseIs = 1e3;

double power_of_two(double near) { return std::exp2(std::max(0.0, std::round(std::log2(near)))); }
double power_of_two_within(double most) { return std::exp2(std::max(0.0, std::floor(std::log2(most)))); }

}  // namespace

PredictedCost total(const std::vector<Group>& groups) {
  PredictedCost out;
  for (const Group& g : groups) {
    out.memory_seconds += g.cost.memory_seconds;
    out.dispatch_seconds += g.cost.dispatch_seconds;
    out.redundant_seconds += g.cost.redundant_seconds;
  }
  return out;
}

std::vector<Group> Scheduler::cheapest_of(std::vector<OpenGroups> open, double times_of_whole) const {
  const size_t n = numbers_.stages.size();
  Cuts cuts{std::vector<double>(n + 1), std::vector<Group>(n + 1)};
  size_t cheapest = 0;  // kind
  for (size_t last = 0; last < n; ++last) {
    cuts.into[last + 1] = group(last, last, {});
    cuts.cost[last + 1] = cuts.cost[last] + times_of_whole * cuts.into[last + 1].cost.seconds();
    const auto extends = [&](OpenGroups& kind) {
      const double cost = cuts.cost[last + 1];
      extend(kind, last, cuts);
      return cuts.cost[last + 1] < cost;
    };
    // The cheapest kind up to the previous stage usually is the cheapest here, so that others are pruned sooner.
    const size_t before = cheapest;
    if (before < open.size()) extends(open[before]);
    for (size_t k = 0; k < open.size(); ++k)
      if (k != before && extends(open[k])) cheapest = k;
  }
  std::vector<Group> out;
  for (size_t end = n; end > 0; end = out.back().first) out.push_back(cuts.into[end]);
  std::ranges::reverse(out);
  return out;
}

std::vector<std::vector<Group>> Scheduler::of_each_kind(double most_times, size_t most) const {
  using Schedule = std::vector<Group>;
  std::vector<Schedule> out{best()};
  const auto seconds = [](const Schedule& schedule) { return total(schedule).seconds(); };
  const double bound = most_times * seconds(out.front());
  std::map<std::pair<std::vector<int>, Far>, std::vector<Schedule>> kinds;  // by dims of the loops, innermost first
  const auto offer = [&](std::vector<int> dims, Far far, Schedule schedule) {
    const auto is_same = [&](const Schedule& other) {
      return std::ranges::equal(schedule, other, &Group::is_same_schedule);
    };
    const auto is_among = [&](const auto& kind) { return std::ranges::any_of(kind.second, is_same); };
    if (seconds(schedule) <= bound && !is_same(out.front()) && std::ranges::none_of(kinds, is_among))
      kinds[{std::move(dims), far}].push_back(std::move(schedule));
  };
  offer({}, Far::plain, cheapest_of({}));
  for (const OpenGroups& kind : kinds_of_strips()) {
    std::vector<int> dims;
    for (const Strips::Loop& loop : kind.strips.loops) dims.push_back(loop.dim);
    offer(dims, Far::plain, cheapest_of({{kind.strips, Far::plain}}, kWhereNothingElseIs));
    if (model_.fetched_part <= 0) continue;
    for (const Far far : {Far::fetched, Far::non_temporal})
      offer(dims, far, cheapest_of({{kind.strips, far}}, kWhereNothingElseIs));
  }
  for (auto& [kind, schedules] : kinds) std::ranges::stable_sort(schedules, {}, seconds);
  for (size_t rank = 0; out.size() < most; ++rank) {
    std::vector<Schedule> of_rank;
    for (auto& [kind, schedules] : kinds)
      if (rank < schedules.size()) of_rank.push_back(std::move(schedules[rank]));
    if (of_rank.empty()) break;
    std::ranges::stable_sort(of_rank, {}, seconds);
    for (Schedule& schedule : of_rank)
      if (out.size() < most) out.push_back(std::move(schedule));
  }
  std::ranges::stable_sort(out.begin() + 1, out.end(), {}, seconds);
  return out;
}

std::vector<Scheduler::OpenGroups> Scheduler::kinds_of_strips() const {
  std::map<std::vector<int>, double> nests;       // dims, innermost first: bytes of the largest row
  std::map<std::pair<int, int>, double> columns;  // the slowest and the fastest dim: bytes of the largest row
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
    if (dims.size() < 2) continue;
    double& largest = columns[{dims.back(), dims.front()}];
    largest = std::max(largest, row * numbers_.extents[static_cast<size_t>(dims.front())]);
  }
  std::vector<OpenGroups> out;
  for (const auto& [dims, row] : nests) add_rows(dims, row, out);
  for (const auto& [dims, row] : columns) {
    add_columns(dims.first, dims.second, row, out);
    add_tiles(dims.first, dims.second, row, out);
  }
  return out;
}

void Scheduler::add_kind(std::vector<Strips::Loop> loops, std::vector<OpenGroups>& out) const {
  out.push_back({{std::move(loops)}});
}

void Scheduler::add_rows(const std::vector<int>& dims, double row, std::vector<OpenGroups>& out) const {
  const bool nested = dims.size() > 1;
  if (nested && row < kLongRow) return;
  const double most = numbers_.extents[static_cast<size_t>(dims[0])];
  const double first = nested ? power_of_two(kShortestPart * most / row) : 1;
  for (double step = first * most / extent_at_end(dims[0]); step < most; step *= 2) {
    std::vector<Strips::Loop> loops;
    for (const int dim : dims) loops.push_back({dim, loops.empty() ? step : 1});
    add_kind(std::move(loops), out);
  }
}

void Scheduler::add_columns(int rows, int fastest, double row, std::vector<OpenGroups>& out) const {
  const size_t held = std::min<size_t>(1, model_.memories.size() - 1);
  if (model_.fetched_part <= 0 && model_.memories[held].bytes > 0 &&
      kRowsOfWindow * row * static_cast<double>(numbers_.stages.size()) < usable_bytes(model_.memories[held]))
    return;
  const double most = numbers_.extents[static_cast<size_t>(fastest)],
               height = numbers_.extents[static_cast<size_t>(rows)];
  const Columns& columns = model_.fetched_part > 0 ? kFetchedColumns : kPlainColumns;
  for (double part = columns.shortest; part <= columns.longest; part *= 2) {
    const double width = power_of_two(part * kShortestPart * most / row);
    if (width >= most) return;
    for (double step = 1; step < extent_at_end(rows) && step <= columns.tallest; step *= 2)
      add_kind({{rows, step * height / extent_at_end(rows)}, {fastest, width * most / extent_at_end(fastest)}}, out);
  }
}

// At most as wide as the smallest memory holds together with the reader's results, plus two rows for a window. Narrow
// tiles leave it to data from outside.
void Scheduler::add_tiles(int rows, int fastest, double row, std::vector<OpenGroups>& out) const {
  const double most = numbers_.extents[static_cast<size_t>(fastest)],
               height = numbers_.extents[static_cast<size_t>(rows)];
  const double room = kOfTiles * model_.memories.front().bytes, element = row / most;
  for (double step = 2; step <= kTallestTile && step < height; step *= 2) {
    for (double width = power_of_two_within(std::min(room / (2 * step + 2) / element, most / 2));
         width * element >= kShortestTile; width /= 2)
      add_kind({{fastest, width * most / extent_at_end(fastest)}, {rows, step * height / extent_at_end(rows)}}, out);
  }
}

double Scheduler::extent_at_end(int dim) const {
  for (size_t at = numbers_.stages.size(); at-- > 0;)
    if (const Index index = index_of(dim, at); index != numbers_.stages[at].indices.end())
      return std::max(index->extent, 1.0);
  return 1;
}

void Scheduler::extend(OpenGroups& kind, size_t last, Cuts& cuts) const {
  if (last > 0 && numbers_.stages[last - 1].is_output) kind.groups.clear();  // it would be inside
  if (kind.before.kept_around && !keeps_rows(kind.strips, last - 1)) kind.groups.clear();
  const Share share = share_of(numbers_, kind.strips, last);
  kind.groups.emplace_back(GroupCost(last, numbers_, kind.strips), cuts.cost[last]);
  const Inside inside = last > 0 ? inside_of(numbers_.stages[last - 1], memories_, kind.before, share) : Inside();
  for (auto& [group, before] : kind.groups) group.add(numbers_, last, share, inside);
  kind.before = share;
  offer_and_prune(kind, last, cuts);
}

void Scheduler::offer_and_prune(OpenGroups& kind, size_t last, Cuts& cuts) const {
  const StageNumbers& n = numbers_.stages[last];
  const bool ends = can_own(kind.strips, last);
  const Far asked = kind.far == Far::non_temporal && !n.may_be_non_temporal(last) ? Far::fetched : kind.far;
  const auto workers = static_cast<double>(model_.workers);
  const auto shared_by_all = [part = 1 / workers](double seconds) { return seconds * part; };
  // A cut here costs at least one more read of the stage's results, or else the cost of a group across the cut: a group
  // that already costs so much more than the cheapest way to here is useless.
  const double read_anew = n.bytes * memories_.slowest_seconds_per_byte();
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const bool too_many = kind.groups.size() > kMostOpen;
  size_t kept = 0, worst = 0;
  double most = 0;
  for (size_t i = 0; i < kind.groups.size(); ++i) {
    const bool closed = kind.groups[i].first.is_closed(last);
    const double least =
        closed ? kind.groups[i].second + shared_by_all(kind.groups[i].first.at_least(model_, memories_)) : 0;
    if (closed && least > cuts.cost[last + 1] + read_anew) continue;
    if (kept != i) kind.groups[kept] = std::move(kind.groups[i]);
    const auto& [group, before] = kind.groups[kept++];
    const auto is_dearer = [&](double seconds) { return before + seconds >= cuts.cost[last + 1]; };
    const bool may_end = ends && closed && group.first() != last && (too_many || least < cuts.cost[last + 1]);
    if (!may_end && !too_many) continue;
    const double bound = too_many ? kAny : (cuts.cost[last + 1] - before) * workers;
    const auto [serial, far] = group.total(numbers_, model_, memories_, last, asked, bound);
    if (before + serial.seconds() > most) worst = kept - 1, most = before + serial.seconds();
    if (!may_end || is_dearer(shared_by_all(serial.seconds()))) continue;
    const Bands bands = bands_of(group.first(), last, kind.strips);
    const PredictedCost cost = shared(serial, group.first(), last, bands);
    if (is_dearer(cost.seconds())) continue;
    cuts.cost[last + 1] = before + cost.seconds();
    cuts.into[last + 1] = {group.first(), last, kind.strips, cost, group.window_bytes(), far, bands,
                           group.hints_may_help(numbers_, model_, memories_, last)};
  }
  kind.groups.erase(kind.groups.begin() + static_cast<int64_t>(kept), kind.groups.end());
  if (kept > kMostOpen) kind.groups.erase(kind.groups.begin() + static_cast<int64_t>(worst));
}

bool Scheduler::keeps_rows(const Strips& strips, size_t at) const {
  const auto& indices = numbers_.stages[at].indices;
  return indices.size() > 1 && strips.loops.front().dim == indices.front().dim &&
         strips.loops.back().dim == indices.back().dim;
}

bool Scheduler::can_own(const Strips& strips, size_t at) const {
  return std::ranges::all_of(strips.loops, [&](const Strips::Loop& loop) {
    const Index index = index_of(loop.dim, at);
    return index != numbers_.stages[at].indices.end() && index->extent > 1;
  });
}

}  // namespace tenon::program::detail
