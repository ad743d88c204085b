// Inside the room: how the stages of a pipeline are divided into groups. scheduler.cpp finds the cheapest division,
// stated_groups.cpp computes the cost of a manual one.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tenon/program/pipeline/plan_internal.hpp>
#include <tenon/program/schedule/group_costs_internal.hpp>

namespace tenon::program::detail {

// Bands of the slowest index of a group's last stage, one for each worker.
struct Bands {
  int dim = -1;        // of the pipeline; -1: there are none
  double indices = 0;  // of the last stage, in a band
  bool operator==(const Bands&) const = default;
};

struct Group {
  size_t first = 0, last = 0;  // in plan.order
  Strips strips;
  PredictedCost cost;
  double window_bytes = 0;
  Far far = Far::plain;
  Bands bands;
  bool hints_may_help = false;  // GroupCost::hints_may_help
  // Whether it has the same loops around the same stages.
  bool is_same_schedule(const Group& other) const {
    return first == other.first && last == other.last && far == other.far && strips == other.strips &&
           bands == other.bands;
  }
};
PredictedCost total(const std::vector<Group>& groups);

class Scheduler {
 public:
  // All of them outlive it.
  Scheduler(const Plan& plan, const PipelineNumbers& numbers, const CostModel& model)
      : plan_(plan), numbers_(numbers), model_(model), memories_(model) {}

  // The cheapest partition of the stages: dynamic programming over where a group ends.
  std::vector<Group> best() const { return cheapest_of(kinds_of_strips()); }

  // The same with one kind of strips at a time, without prefetching, with it, and with non-temporal results as well: at
  // most `most` schedules whose predicted cost is at most `most_times` that of the cheapest, the cheapest first. They
  // are the cheapest of every nest of loops and every use of far memory, in turn: where the model is wrong at the
  // moment, it is so for a whole kind.
  std::vector<std::vector<Group>> of_each_kind(double most_times, size_t most) const;

  // The stages as placed by the author of `data`, the same pipeline with a schedule.
  std::vector<Group> stated(const PipelineData& data, const SymbolValues& sizes) const;

  // Indices of the stage at `last` that an iteration covers.
  int64_t step_of(const Strips::Loop& loop, size_t last) const;
  std::string index_name(int dim, size_t last) const;

 private:
  using Index = std::vector<StageNumbers::Index>::const_iterator;
  Index index_of(int dim, size_t at) const {
    return std::ranges::find(numbers_.stages[at].indices, dim, &StageNumbers::Index::dim);
  }

  struct OpenGroups {
    Strips strips;
    Far far = Far::cheapest;
    Share before = {};                                      // of the stage added last
    std::vector<std::pair<GroupCost, double>> groups = {};  // each with the costs of all stages before it
  };

  // The cheapest so far, by number of stages: its cost, and its last group.
  struct Cuts {
    std::vector<double> cost;
    std::vector<Group> into;
  };

  // The cheapest partition whose groups are strips of these kinds, or whole stages, whose cost is weighted by
  // `times_of_whole`.
  std::vector<Group> cheapest_of(std::vector<OpenGroups> open, double times_of_whole = 1) const;

  // Loops over the slowest index of any stage; where rows are long, also over faster ones with one index at a time of
  // the slower ones, in tiles along rows, and down columns. Steps are powers of two.
  std::vector<OpenGroups> kinds_of_strips() const;
  void add_kind(std::vector<Strips::Loop> loops, std::vector<OpenGroups>& out) const;
  void add_rows(const std::vector<int>& dims, double row, std::vector<OpenGroups>& out) const;
  void add_columns(int rows, int fastest, double row, std::vector<OpenGroups>& out) const;
  void add_tiles(int rows, int fastest, double row, std::vector<OpenGroups>& out) const;
  // Of the last stage that has the dim, where steps should be powers of two.
  double extent_at_end(int dim) const;

  // Adds the stage to all groups that may contain it, and starts one with it.
  void extend(OpenGroups& kind, size_t last, Cuts& cuts) const;

  // Takes the cheapest of the groups that may end here. Drops those that can no longer be part of the cheapest
  // partition, and beyond kMostOpen those with the highest cost so far.
  void offer_and_prune(OpenGroups& kind, size_t last, Cuts& cuts) const;

  // Whether a window of the stage's results kept by an outer loop consists of whole rows: the inner loop then goes
  // along rows. Down columns a window would be a ring buffer across rows, which few kernels accept.
  bool keeps_rows(const Strips& strips, size_t at) const;

  // Whether the stage has all indices over which the loops iterate.
  bool can_own(const Strips& strips, size_t at) const;

  // `data`: its author may keep no window of some results; null: all windows are kept.
  Group group(size_t first, size_t last, const Strips& strips, Far far = Far::plain,
              const PipelineData* data = nullptr) const;

  // Whether all readers of stage `at` are in order[at + 1 ... last], and its author allows it to be there.
  bool stays_in(const PipelineData& data, size_t at, size_t last) const;

  // bands.cpp. The bands into which the group can be cut; none: it cannot be, or there is one worker.
  Bands bands_of(size_t first, size_t last, const Strips& strips) const;
  // The cost of the group where workers share it in these bands.
  PredictedCost shared(PredictedCost cost, size_t first, size_t last, const Bands& bands) const;

  // Of an author's loops with several workers.
  Bands stated_bands(const StageSpec& spec, size_t at) const;
  Strips stated_strips(const StageSpec& spec, size_t at, const SymbolValues& sizes) const;

  // Elements that are recomputed, since their author keeps no window of them from one iteration to the next.
  double computed_twice(const PipelineData& data, size_t at, int owner, const Strips& strips) const;

  const Plan& plan_;
  const PipelineNumbers& numbers_;
  const CostModel& model_;
  MemoryCosts memories_;
};

}  // namespace tenon::program::detail
