#include <tenon/program/auto_schedule.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/program/plan.hpp>

namespace tenon::program {

CostModel CostModel::host() {
  return {{{"L1", 32e3, 100e9}, {"L2", 1e6, 80e9}, {"L3", 32e6, 25e9}, {"memory", 0, 9e9}}};
}

CostModel CostModel::of(const TargetDescription& target) {
  CostModel model;
  for (const MemorySpace& m : target.memories)
    if (m.size_bytes > 0 && m.bandwidth)
      model.memories.push_back({m.name, static_cast<double>(m.size_bytes), m.bandwidth->bytes_per_second(target.clock_hz)});
  if (model.memories.empty()) return host();
  std::ranges::sort(model.memories, {}, &Memory::bytes);
  model.memories.back().bytes = 0;
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
};

class Scheduler {
 public:
  Scheduler(const Plan& plan, const SymbolValues& sizes, const CostModel& model) : plan_(plan), sizes_(sizes), model_(model) {}

  Result<void> measure() {
    numbers_.resize(plan_.stages.size());
    reads_.resize(plan_.stages.size());
    position_.resize(plan_.stages.size());
    for (size_t i = 0; i < plan_.order.size(); ++i) {
      const int s = plan_.order[i];
      position_[static_cast<size_t>(s)] = i;
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

  // Stages as their author placed them.
  std::vector<Group> stated() const {
    std::vector<Group> out;
    for (size_t i = plan_.order.size(); i > 0;) {
      const int owner = plan_.order[i - 1];
      const StageSpec& spec = plan_.spec(owner);
      size_t first = i - 1;
      if (spec.loops.empty()) {
        out.push_back(group(first, i - 1, -1, 0));
      } else {
        while (first > 0 && stays_in(first - 1, i - 1)) --first;
        const LoopOver& loop = spec.loops.back();
        const Result<int64_t> step = loop.step.evaluate(sizes_);
        out.push_back(group(first, i - 1, plan_.stage(owner).index_of(loop.index.name()), step.ok() ? std::max<int64_t>(step.value(), 1) : 1));
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
  bool stays_in(size_t at, size_t last) const {
    const StageSpec& spec = plan_.spec(plan_.order[at]);
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
    const std::vector<std::vector<Motion>> motion = motion_below(first, last, index);
    for (int64_t step = 1; static_cast<double>(step) < owner.extents[static_cast<size_t>(index)]; step *= 2) {
      Sum sum;
      for (size_t i = last + 1; i-- > first;) {
        add(i, last, motion[i - first], step, sum);
        if (i < last) f(total(i, last, index, step, sum));
      }
    }
  }

  Group group(size_t first, size_t last, int index, int64_t step) const {
    const std::vector<std::vector<Motion>> motion = motion_below(first, last, index);
    Sum sum;
    for (size_t i = last + 1; i-- > first;) add(i, last, motion[i - first], step, sum);
    return total(first, last, index, step, sum);
  }

  // Of the stages of a group so far, from the last one back.
  struct Sum {
    double inside = 0;   // bytes of results that only the group sees, written and read
    double outside = 0;  // bytes that come from elsewhere, and the results
    double from_stages = 0;  // ... of stages that may yet come into the group
    double windows = 0, redundant = 0;
    int moving = 0, still = 0;  // stages called in each iteration, and once
  };

  void add(size_t i, size_t last, const std::vector<Motion>& motion, int64_t step, Sum& sum) const {
    const int s = plan_.order[i];
    const StageNumbers& n = numbers_[static_cast<size_t>(s)];
    const bool moves = std::ranges::any_of(motion, [](const Motion& m) { return m.rate > 0; });
    if (i != last) {
      sum.windows += n.bytes * kept_part(s, motion, step);
      sum.inside += 2 * n.bytes;
      sum.from_stages -= n.bytes_out;
      sum.redundant += computed_twice(s, plan_.order[last], motion, step) * model_.seconds_per_element;
    }
    sum.outside += n.bytes_in + (i == last ? n.bytes : 0);
    sum.from_stages += n.bytes_from_stages;
    ++(moves || i == last ? sum.moving : sum.still);
  }

  Group total(size_t first, size_t last, int index, int64_t step, const Sum& sum) const {
    Group g{first, last, index, step, {}, sum.windows};
    const StageNumbers& owner = numbers_[static_cast<size_t>(plan_.order[last])];
    const double length = index < 0 ? 1 : std::max(owner.extents[static_cast<size_t>(index)], 1.0);
    const double iterations = index < 0 ? 1 : std::ceil(length / static_cast<double>(step));
    const double outside = sum.outside + std::max(sum.from_stages, 0.0);
    g.cost.memory_seconds = outside / bandwidth(outside) + sum.inside / bandwidth(outside / iterations + sum.windows);
    g.cost.dispatch_seconds = (iterations * sum.moving + sum.still) * model_.seconds_per_call;
    g.cost.redundant_seconds = sum.redundant;
    return g;
  }

  // Elements computed again, since their author keeps no window of them from one iteration to the next.
  double computed_twice(int s, int owner, const std::vector<Motion>& motion, int64_t step) const {
    double part = 0;
    for (const WriteSpec& write : plan_.spec(s).writes)
      if (const auto& at = plan_.buffer_spec(write.buffer).store_at; at && at->stage == owner)
        for (const Motion& m : motion)
          if (m.rate > 0) part = std::max(part, m.span / (static_cast<double>(step) * m.rate));
    return part * numbers_[static_cast<size_t>(s)].elements;
  }

  // The part of all its results that is kept at a time.
  double kept_part(int s, const std::vector<Motion>& motion, int64_t step) const {
    double part = 1;
    const StageNumbers& n = numbers_[static_cast<size_t>(s)];
    for (size_t i = 0; i < motion.size(); ++i)
      if (motion[i].rate > 0 && n.extents[i] > 0)
        part *= std::min(1.0, (std::ceil(static_cast<double>(step) * motion[i].rate) + motion[i].span) / n.extents[i]);
    return part;
  }

  // Per index of each stage order[first ... last] how it moves with the loop.
  std::vector<std::vector<Motion>> motion_below(size_t first, size_t last, int index) const {
    std::vector<std::vector<Motion>> out(last - first + 1);
    out.back().resize(plan_.stage(plan_.order[last]).indices.size());
    if (index >= 0) out.back()[static_cast<size_t>(index)] = {1, 0};
    for (size_t i = last; i-- > first;) {
      const int s = plan_.order[i];
      std::vector<Motion>& mine = out[i - first];
      mine.resize(plan_.stage(s).indices.size());
      for (const WriteSpec& write : plan_.spec(s).writes)
        for (const Use& use : plan_.buffer(write.buffer).uses) {
          const size_t reader = position_[static_cast<size_t>(use.stage)];
          if (reader > last) continue;
          const ReadMotion& read = reads_[static_cast<size_t>(use.stage)][static_cast<size_t>(use.read)];
          for (size_t d = 0; d < write.indices.size(); ++d) {
            Motion& m = mine[static_cast<size_t>(plan_.stage(s).index_of(write.indices[d]))];
            for (const auto& [by, slope] : read[d]) {
              const Motion& r = out[reader - first][static_cast<size_t>(by)];
              if (r.rate > 0) m = {std::max(m.rate, r.rate * slope.rate), std::max(m.span, slope.span)};
            }
          }
        }
    }
    return out;
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
    }
  }

  const Plan& plan_;
  const SymbolValues& sizes_;
  const CostModel& model_;
  std::vector<StageNumbers> numbers_;
  std::vector<std::vector<ReadMotion>> reads_;  // per stage and read
  std::vector<size_t> position_;                // of each stage in the order
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

// What the schedule costs that the pipeline has; `plan` is that of its stages without one.
Result<PredictedCost> cost_as_stated(const PipelineData& data, const Plan& plan, const SymbolValues& sizes, const CostModel& model) {
  const Plan stated{data, plan.options, plan.inputs, plan.outputs, plan.scalars, plan.order, plan.stages, plan.buffers, plan.loops, plan.checks, plan.known_bounds};
  Scheduler scheduler(stated, sizes, model);
  TENON_OK(scheduler.measure(), "the cost of '", data.name, "'");
  return total(scheduler.stated());
}

}  // namespace

Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                     const std::vector<BufferRef>& outputs, const SymbolValues& sizes, const CostModel& model) {
  PipelineData& data = PipelineData::of(pipeline);
  PipelineData bare = data;
  clear_schedule(bare);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "scheduling '", data.name, "'");
  Scheduler scheduler(plan, sizes, model);
  TENON_OK(scheduler.measure(), "scheduling '", data.name, "'");
  ScheduleReport report;
  TENON_TRY(by_hand, cost_as_stated(data, plan, sizes, model));
  report.by_hand = by_hand;
  const std::vector<Scheduler::Group> groups = scheduler.best();
  report.automatic = total(groups);
  for (const Scheduler::Group& g : groups) report.groups.push_back(describe(plan, g));
  apply(data, plan, groups);
  return report;
}

Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                   const std::vector<BufferRef>& outputs, const SymbolValues& sizes, const CostModel& model) {
  const PipelineData& data = PipelineData::of(pipeline);
  PipelineData bare = data;
  clear_schedule(bare);
  const BuildOptions options;
  TENON_TRY(plan, plan_unscheduled(bare, inputs, outputs, options), "the cost of '", data.name, "'");
  return cost_as_stated(data, plan, sizes, model);
}

}  // namespace tenon::program
