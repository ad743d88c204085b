#include <tenon/program/auto_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <span>

#include <tenon/program/plan.hpp>

namespace tenon::program {

namespace {

constexpr double kMainMemoryBytesPerSecond = 9e9;

}  // namespace

// Of copying, read plus written, as measured on servers of 2019 to 2023 (docs/performance.md).
CostModel CostModel::host() {
  return {{{"L1", 32 << 10, 190e9}, {"L2", 1 << 20, 73e9}, {"L3", 32 << 20, 20e9}, {"memory", 0, kMainMemoryBytesPerSecond}}};
}

CostModel CostModel::of(const TargetDescription& target) {
  CostModel model;
  for (const MemorySpace& m : target.memories)
    if (m.size_bytes > 0)
      model.memories.push_back({m.name, static_cast<double>(m.size_bytes), m.bandwidth ? m.bandwidth->bytes_per_second(target.clock_hz) : 0});
  if (model.memories.empty()) return host();
  std::ranges::sort(model.memories, {}, &Memory::bytes);
  model.memories.back().bytes = 0;
  double larger = kMainMemoryBytesPerSecond;
  for (Memory& m : std::views::reverse(model.memories)) {
    if (m.bytes_per_second <= 0) m.bytes_per_second = larger;
    larger = m.bytes_per_second;
  }
  return model;
}

std::string ScheduleReport::to_string() const {
  const auto row = [](std::string_view name, const PredictedCost& c) {
    return str(name, ": ", c.seconds() * 1e3, " ms predicted (memory ", c.memory_seconds * 1e3, ", calls ", c.dispatch_seconds * 1e3,
               ", computed twice ", c.redundant_seconds * 1e3, ")\n");
  };
  std::string out = row("automatic", automatic) + row("by hand", by_hand);
  for (const std::string& group : groups) out += "  " + group + "\n";
  return out;
}

namespace {

// How many indices of a dim one more index of the loop asks for, and how many an iteration of no indices would.
struct Motion {
  double rate = 0, span = 0;
};

// Numbers of one stage at the given sizes.
struct StageNumbers {
  std::vector<double> extents;  // per index
  double elements = 1;          // of its first result
  double bytes = 0;             // of all its results
  double bytes_in = 0;          // that it reads of what the caller gives
  double bytes_from_stages = 0;  // that it reads of results of other stages
  double bytes_out = 0;          // that others read of its results
  double times_read = 1;         // how often its readers load each element, at most
};

class Scheduler {
 public:
  // `plan` has no schedule.
  Scheduler(const Plan& plan, const SymbolValues& sizes, const CostModel& model) : plan_(plan), sizes_(sizes), model_(model) {}

  Result<void> measure() {
    numbers_.resize(plan_.stages.size());
    reads_.resize(plan_.stages.size());
    position_.resize(plan_.stages.size());
    first_index_.resize(plan_.stages.size());
    for (size_t i = 0; i < plan_.order.size(); ++i) {
      const int s = plan_.order[i];
      position_[static_cast<size_t>(s)] = i;
      first_index_[static_cast<size_t>(s)] = indices_;
      indices_ += plan_.stage(s).indices.size();
      TENON_OK(measure(s), "in stage '", plan_.spec(s).name, "'");
      measure_reads(s);
    }
    return {};
  }

  struct Group {
    size_t first = 0, last = 0;  // in plan.order
    int index = -1;              // of the last stage that its loop goes over; -1: no loop
    int64_t step = 0;
    PredictedCost cost;
    double window_bytes = 0;
  };

  // The cheapest way to cut the stages.
  std::vector<Group> best() const {
    const size_t n = plan_.order.size();
    std::vector<double> cost(n + 1, INFINITY);
    std::vector<Group> into(n + 1);
    cost[0] = 0;
    for (size_t last = 0; last < n; ++last)
      for_each_group_ending(last, [&](const Group& g) {
        if (cost[g.first] + g.cost.seconds() >= cost[last + 1]) return;
        cost[last + 1] = cost[g.first] + g.cost.seconds();
        into[last + 1] = g;
      });
    std::vector<Group> out;
    for (size_t end = n; end > 0; end = out.back().first) out.push_back(into[end]);
    std::ranges::reverse(out);
    return out;
  }

  // Stages as the author of `data`, the same pipeline with a schedule, placed them.
  std::vector<Group> stated(const PipelineData& data) const {
    std::vector<Group> out;
    for (size_t i = plan_.order.size(); i > 0;) {
      const int owner = plan_.order[i - 1];
      const StageSpec& spec = data.stages[static_cast<size_t>(owner)];
      size_t first = i - 1;
      if (spec.loops.empty()) {
        out.push_back(group(first, i - 1, -1, 0));
      } else {
        while (first > 0 && stays_in(data, first - 1, i - 1)) --first;
        const LoopOver& loop = spec.loops.back();
        const Result<int64_t> step = loop.step.evaluate(sizes_);
        out.push_back(group(first, i - 1, plan_.stage(owner).index_of(loop.index.name()), step.ok() ? std::max<int64_t>(step.value(), 1) : 1, &data));
      }
      i = first;
    }
    return out;
  }

 private:
  Result<void> measure(int s) {
    StageNumbers& n = numbers_[static_cast<size_t>(s)];
    for (const Window& w : index_box(plan_, s, 0)) {
      TENON_TRY(extent, w.extent().evaluate(sizes_));
      n.extents.push_back(static_cast<double>(std::max<int64_t>(extent, 0)));
    }
    for (size_t w = 0; w < plan_.spec(s).writes.size(); ++w) {
      const WriteSpec& write = plan_.spec(s).writes[w];
      double elements = 1;
      for (const std::string& index : write.indices) elements *= n.extents[static_cast<size_t>(plan_.stage(s).index_of(index))];
      if (w == 0) n.elements = elements;
      n.bytes += elements * plan_.buffer_spec(write.buffer).element.bits() / 8;
    }
    for (const WriteSpec& write : plan_.spec(s).writes) n.bytes_out += n.bytes * static_cast<double>(plan_.buffer(write.buffer).uses.size());
    for (int r = 0; r < static_cast<int>(plan_.spec(s).reads.size()); ++r) {
      const ReadSpec& read = plan_.spec(s).reads[static_cast<size_t>(r)];
      if (!plan_.is_declared(read.buffer)) {
        n.bytes_from_stages += numbers_[static_cast<size_t>(plan_.buffer(read.buffer).producer)].bytes;
        continue;
      }
      double elements = 1;
      for (const Window& w : read_box(plan_, {s, r}, index_box(plan_, s, 0))) {
        TENON_TRY(extent, w.extent().evaluate(sizes_));
        elements *= static_cast<double>(std::max<int64_t>(extent, 0));
      }
      n.bytes_in += elements * plan_.buffer_spec(read.buffer).element.bits() / 8;
    }
    return {};
  }

  double bandwidth(double bytes) const {
    for (const CostModel::Memory& m : model_.memories)
      if (m.bytes == 0 || bytes <= m.bytes) return m.bytes_per_second;
    return model_.memories.back().bytes_per_second;
  }

  // Whether all that reads stage `at` is in order[at + 1 ... last]: only then may it be in the loop of the last.
  bool ends_in(size_t at, size_t last) const {
    for (const WriteSpec& write : plan_.spec(plan_.order[at]).writes) {
      if (plan_.buffer(write.buffer).role == Role::output) return false;
      for (const Use& use : plan_.buffer(write.buffer).uses) {
        if (position_[static_cast<size_t>(use.stage)] > last) return false;
      }
    }
    return true;
  }
  bool stays_in(const PipelineData& data, size_t at, size_t last) const {
    const StageSpec& spec = data.stages[static_cast<size_t>(plan_.order[at])];
    return !(spec.compute_at && spec.compute_at->stage < 0) && ends_in(at, last);
  }

  // Loops go over the slowest index, so that rows stay whole.
  template <class F>
  void for_each_group_ending(size_t last, const F& f) const {
    f(group(last, last, -1, 0));
    const StageNumbers& owner = numbers_[static_cast<size_t>(plan_.order[last])];
    if (owner.extents.empty()) return;
    const int index = static_cast<int>(owner.extents.size()) - 1;
    size_t first = last;
    while (first > 0 && ends_in(first - 1, last)) --first;
    if (first == last) return;
    const std::vector<Motion> motion = motion_below(first, last, index);
    for (int64_t step = 1; static_cast<double>(step) < owner.extents[static_cast<size_t>(index)]; step *= 2) {
      Sum sum(iterations(last, index, step));
      for (size_t i = last + 1; i-- > first;) {
        add(i, last, motion_of(motion, plan_.order[i]), step, sum);
        if (i < last) f(total(i, last, index, step, sum));
      }
    }
  }

  // `data`: whose author may keep no window of some results; null: all are kept.
  Group group(size_t first, size_t last, int index, int64_t step, const PipelineData* data = nullptr) const {
    const std::vector<Motion> motion = motion_below(first, last, index);
    Sum sum(iterations(last, index, step));
    for (size_t i = last + 1; i-- > first;) {
      const std::span<const Motion> moved = motion_of(motion, plan_.order[i]);
      add(i, last, moved, step, sum);
      if (data && i < last) sum.redundant += computed_twice(*data, plan_.order[i], plan_.order[last], moved, step) * model_.seconds_per_element;
    }
    return total(first, last, index, step, sum);
  }

  double iterations(size_t last, int index, int64_t step) const {
    if (index < 0) return 1;
    return std::ceil(std::max(numbers_[static_cast<size_t>(plan_.order[last])].extents[static_cast<size_t>(index)], 1.0) / static_cast<double>(step));
  }

  // Of the stages of a group so far, from the last one back. Bytes are those of all iterations, but where it is said.
  struct Sum {
    explicit Sum(double n) : iterations(n) {}
    double iterations;
    double outside = 0;      // bytes that come from elsewhere, and the results
    double from_stages = 0;  // ... of stages that may yet come into the group
    double windows = 0;      // bytes of what is kept, in an iteration
    double made = 0;         // bytes that the stage added last makes in an iteration
    double largest = 0;      // ... that any stage makes whose results are not kept, with its reader's
    double seconds = 0;      // of results that only the group sees and no window is kept of
    double redundant = 0;
    // Of results that windows are kept of: written, and read by later iterations; read by the same one; and seconds that
    // their readers take at least.
    double through_windows = 0, fresh_seconds = 0, least_seconds = 0;
    int moving = 0, still = 0, kept = 0;  // stages called in each iteration, and once; those of windows
  };

  void add(size_t i, size_t last, std::span<const Motion> motion, int64_t step, Sum& sum) const {
    const int s = plan_.order[i];
    const StageNumbers& n = numbers_[static_cast<size_t>(s)];
    const bool moves = std::ranges::any_of(motion, [](const Motion& m) { return m.rate > 0; });
    const double made = n.bytes / (moves ? sum.iterations : 1);
    if (i == last) sum.outside += n.bytes;
    else add_inside(n, motion, step, made, sum);
    sum.made = made;
    sum.outside += n.bytes_in;
    sum.from_stages += n.bytes_from_stages;
    ++(moves || i == last ? sum.moving : sum.still);
  }

  // A result that the group alone sees.
  void add_inside(const StageNumbers& n, std::span<const Motion> motion, int64_t step, double made, Sum& sum) const {
    sum.from_stages -= n.bytes_out;
    const double seen = n.bytes * kept_part(n, motion, step);  // in an iteration
    const bool kept = std::ranges::any_of(motion, [](const Motion& m) { return m.rate > 0 && m.span > 0; });
    const double until_read = seen + sum.made + (sum.outside + n.bytes_in) / sum.iterations;
    const double read = n.bytes / bandwidth(until_read);
    const double least = n.bytes * (1 + n.times_read) / model_.memories.front().bytes_per_second;
    if (!kept) {
      sum.seconds += std::max(2 * read, least);
      sum.largest = std::max(sum.largest, made + sum.made);
      return;
    }
    sum.windows += seen;
    sum.fresh_seconds += read;
    sum.least_seconds += least;
    sum.through_windows += n.bytes + std::max(seen - made, 0.0) * sum.iterations;
    ++sum.kept;
  }

  Group total(size_t first, size_t last, int index, int64_t step, const Sum& sum) const {
    const double outside = sum.outside + std::max(sum.from_stages, 0.0);
    const double in_an_iteration = outside / sum.iterations + sum.windows + sum.largest;
    Group g{first, last, index, step, {}, sum.windows + sum.largest};
    g.cost.memory_seconds = outside / bandwidth(outside) + sum.seconds +
                            std::max(sum.through_windows / bandwidth(in_an_iteration) + sum.fresh_seconds, sum.least_seconds);
    g.cost.dispatch_seconds = (sum.iterations * sum.moving + sum.still) * model_.seconds_per_call + sum.iterations * sum.kept * model_.seconds_per_window;
    g.cost.redundant_seconds = sum.redundant;
    return g;
  }

  // Elements computed again, since their author keeps no window of them from one iteration to the next.
  double computed_twice(const PipelineData& data, int s, int owner, std::span<const Motion> motion, int64_t step) const {
    double part = 0;
    for (const WriteSpec& write : plan_.spec(s).writes)
      if (const auto& at = data.buffers[static_cast<size_t>(write.buffer)].store_at; at && at->stage == owner)
        for (const Motion& m : motion)
          if (m.rate > 0) part = std::max(part, m.span / (static_cast<double>(step) * m.rate));
    return part * numbers_[static_cast<size_t>(s)].elements;
  }

  // The part of all its results that an iteration sees.
  static double kept_part(const StageNumbers& n, std::span<const Motion> motion, int64_t step) {
    double part = 1;
    for (size_t i = 0; i < motion.size(); ++i)
      if (motion[i].rate > 0 && n.extents[i] > 0)
        part *= std::min(1.0, (std::ceil(static_cast<double>(step) * motion[i].rate) + motion[i].span) / n.extents[i]);
    return part;
  }

  // How each index of the stages order[first ... last] moves with the loop; see motion_of.
  std::vector<Motion> motion_below(size_t first, size_t last, int index) const {
    std::vector<Motion> out(indices_);
    const auto of = [&](int s) { return out.data() + first_index_[static_cast<size_t>(s)]; };
    if (index >= 0) of(plan_.order[last])[index] = {1, 0};
    for (size_t i = last; i-- > first;) {
      const int s = plan_.order[i];
      for (const WriteSpec& write : plan_.spec(s).writes)
        for (const Use& use : plan_.buffer(write.buffer).uses) {
          if (position_[static_cast<size_t>(use.stage)] > last) continue;
          const ReadMotion& read = reads_[static_cast<size_t>(use.stage)][static_cast<size_t>(use.read)];
          for (size_t d = 0; d < write.indices.size(); ++d) {
            Motion& m = of(s)[plan_.stage(s).index_of(write.indices[d])];
            for (const auto& [by, slope] : read[d]) {
              const Motion& r = of(use.stage)[by];
              if (r.rate > 0) m = {std::max(m.rate, r.rate * slope.rate), std::max(m.span, slope.span)};
            }
          }
        }
    }
    return out;
  }
  std::span<const Motion> motion_of(const std::vector<Motion>& all, int s) const {
    return std::span(all).subspan(first_index_[static_cast<size_t>(s)], plan_.stage(s).indices.size());
  }

  // Per dim of a read: the indices of the reader that move it, how fast, and how much it spans.
  using ReadMotion = std::vector<std::vector<std::pair<int, Motion>>>;

  void measure_reads(int s) {
    constexpr int64_t kFar = 48;  // a multiple of the usual periods
    const StagePlan& reader = plan_.stage(s);
    SymbolValues at = sizes_;
    for (const std::string& index : reader.indices) at[index] = 0;
    for (const ReadSpec& read : plan_.spec(s).reads) {
      ReadMotion& motion = reads_[static_cast<size_t>(s)].emplace_back(read.windows.size());
      for (size_t d = 0; d < read.windows.size(); ++d)
        for (size_t i = 0; i < reader.indices.size(); ++i) {
          const Window& w = read.windows[d];
          if (!depends_on(w.last, reader.indices[i])) continue;
          at[reader.indices[i]] = 0;
          const Result<int64_t> first = w.first.evaluate(at), last = w.last.evaluate(at);
          at[reader.indices[i]] = kFar;
          const Result<int64_t> far = w.last.evaluate(at);
          at[reader.indices[i]] = 0;
          if (!first.ok() || !last.ok() || !far.ok()) continue;
          motion[d].push_back({static_cast<int>(i), {std::abs(static_cast<double>(far.value() - last.value())) / kFar, static_cast<double>(last.value() - first.value())}});
        }
      if (const int producer = plan_.buffer(read.buffer).producer; producer >= 0) {
        double& times = numbers_[static_cast<size_t>(producer)].times_read;
        times = std::max(times, window_size(motion));
      }
    }
  }

  // Elements that one element of the reader needs, as far as they move with it.
  static double window_size(const ReadMotion& read) {
    double size = 1;
    for (const auto& dim : read) {
      double span = 0;
      for (const auto& [index, motion] : dim) span = std::max(span, motion.span);
      size *= span + 1;
    }
    return size;
  }

  const Plan& plan_;
  const SymbolValues& sizes_;
  const CostModel& model_;
  std::vector<StageNumbers> numbers_;
  std::vector<std::vector<ReadMotion>> reads_;  // per stage and read
  std::vector<size_t> position_;                // of each stage in the order
  std::vector<size_t> first_index_;             // of each stage among all of them
  size_t indices_ = 0;
};

PredictedCost total(const std::vector<Scheduler::Group>& groups) {
  PredictedCost out;
  for (const Scheduler::Group& g : groups) {
    out.memory_seconds += g.cost.memory_seconds;
    out.dispatch_seconds += g.cost.dispatch_seconds;
    out.redundant_seconds += g.cost.redundant_seconds;
  }
  return out;
}

std::string describe(const Plan& plan, const Scheduler::Group& g) {
  const int owner = plan.order[g.last];
  std::string out = str(plan.spec(owner).name, ": ", g.last - g.first + 1, g.first == g.last ? " stage" : " stages");
  if (g.index < 0) return out + " as a whole";
  return out + str(" over ", plan.stage(owner).indices[static_cast<size_t>(g.index)], " in steps of ", g.step, ", ",
                   static_cast<int64_t>(g.window_bytes), " bytes of windows");
}

// Without the author's loops and places.
void clear_schedule(PipelineData& data) {
  for (StageSpec& spec : data.stages) spec.loops.clear(), spec.compute_at.reset();
  for (BufferSpec& spec : data.buffers) spec.store_at.reset();
}

void apply(PipelineData& data, const Plan& plan, const std::vector<Scheduler::Group>& groups) {
  clear_schedule(data);
  for (const Scheduler::Group& g : groups)
    for (size_t i = g.first; i <= g.last; ++i) {
      StageSpec& spec = data.stages[static_cast<size_t>(plan.order[i])];
      if (i != g.last) continue;
      spec.compute_at = LoopName{};
      if (g.index >= 0) spec.loops.push_back({Expr::symbol(plan.stage(plan.order[i]).indices[static_cast<size_t>(g.index)]), g.step});
    }
}

// Without loops and places of its author.
PipelineData without_schedule(const PipelineData& data) {
  PipelineData bare = data;
  clear_schedule(bare);
  return bare;
}

}  // namespace

Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                     const std::vector<BufferRef>& outputs, const SymbolValues& sizes, const CostModel& model) {
  PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "scheduling '", data.name, "'");
  Scheduler scheduler(plan, sizes, model);
  TENON_OK(scheduler.measure(), "scheduling '", data.name, "'");
  ScheduleReport report;
  report.by_hand = total(scheduler.stated(data));
  const std::vector<Scheduler::Group> groups = scheduler.best();
  report.automatic = total(groups);
  for (const Scheduler::Group& g : groups) report.groups.push_back(describe(plan, g));
  apply(data, plan, groups);
  return report;
}

Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes, const CostModel& model) {
  const PipelineData& data = PipelineData::of(pipeline);
  const PipelineData bare = without_schedule(data);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "the cost of '", data.name, "'");
  Scheduler scheduler(plan, sizes, model);
  TENON_OK(scheduler.measure(), "the cost of '", data.name, "'");
  return total(scheduler.stated(data));
}

}  // namespace tenon::program
