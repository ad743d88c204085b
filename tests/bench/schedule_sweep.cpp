#include "schedule_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/schedule/adaptive_program.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/program/schedule/measured_schedule.hpp>
#include <tenon/program/schedule/timing_internal.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/memory.hpp>

#include "pipeline_kernels.hpp"
#include "sweep_families.hpp"

namespace tenon::program::bench {

namespace {

// Rounds over all schedules to find the best manual ones, the first of which are quick looks, and rounds to compare
// these with the automatic one: more if runs are short.
constexpr int kLooks = 2, kRounds = 5, kFinalRounds = 11, kMostFinalRounds = 101;
// Schedules whose fastest run takes this many times the fastest of all are dropped: a case takes seconds.
constexpr double hopeless_after(int round) { return round < kLooks ? 1.5 : 1.25; }
constexpr double kFinalSeconds = 0.05;  // of the automatic one, in a moment
// The best manual schedule is the best over all moments, not in the one in which it was found.
constexpr size_t kFinalists = 5;
constexpr int kMoments = 3;
constexpr uint32_t kOrderSeed = 1;
// Cases with fewer elements fit the caches of one core, and manual schedules do not prefetch.
constexpr int64_t kFewestFetched = int64_t{1} << 19;
const std::string kAutomatic = "automatic", kMeasured = "measured", kAdaptive = "adaptive";
// Before each moment, an adaptive program runs for so long, as a program that is in use has done.
constexpr double kAdaptSeconds = 3;

struct Schedule {
  std::string name;
  std::function<void(Pair&)> apply;
};

template <class T>
T must(Result<T> result) {
  TENON_CHECK(result.ok(), result.error().to_string());
  return std::move(result).value();
}

double processor_seconds() { return detail::seconds_of(CLOCK_THREAD_CPUTIME_ID); }

std::vector<Schedule> schedules_by_hand(const Case& c) {
  std::vector<Schedule> out{{"whole", [](Pair&) {}}};
  int64_t elements = 1;
  for (const int64_t extent : c.extents) elements *= extent;
  // Innermost first. Of cases that the caches do not hold, also with what the next iteration touches fetched ahead.
  const auto add = [&](const std::string& name, const std::vector<LoopOver>& loops,
                       const std::function<void(Pair&, const std::vector<LoopOver>&)>& apply) {
    out.push_back({name, [=](Pair& p) { apply(p, loops); }});
    if (elements < kFewestFetched) return;
    std::vector<LoopOver> fetching = loops;
    fetching.front().ahead = 1;
    out.push_back({name + ", fetched", [=](Pair& p) { apply(p, fetching); }});
    std::vector<LoopOver> non_temporal = fetching;
    non_temporal.front().non_temporal = true;
    out.push_back({name + ", non-temporal", [=](Pair& p) { apply(p, non_temporal); }});
  };
  const auto at_end = [](Pair& p, const std::vector<LoopOver>& loops) { p.last.loops(loops); };
  const bool rows = c.extents.size() > 1;
  const Expr slowest = rows ? y : x;
  for (int64_t step = rows ? 1 : 256; step < c.extents.back() && step <= (rows ? 128 : 65536); step *= 2)
    add(std::to_string(step), {{slowest, step}}, at_end);
  if (rows)
    for (const int64_t width : {256, 512, 1024, 2048, 4096})
      for (const int64_t step : {1, 2, 4, 8, 16, 32, 64}) {
        if (width >= c.extents[0] || step >= c.extents[1]) continue;
        const std::string tile = std::to_string(width) + " x " + std::to_string(step);
        add(tile, {{x, width}, {y, step}}, at_end);
        add(tile + ", columns", {{y, step}, {x, width}}, at_end);
      }
  if (c.make().stages.size() >= 6)
    for (const int64_t step : {4, 16})
      add("two loops of " + std::to_string(step), {{slowest, rows ? step : 512 * step}},
          [](Pair& p, const std::vector<LoopOver>& loops) {
            p.stages[p.stages.size() / 2].loops(loops).compute_root();
            p.last.loops(loops);
          });
  return out;
}

// Memory for all contenders of a case: the same pages, so that none is faster because of its addresses.
class Memory {
 public:
  explicit Memory(const Case& c) : source_(c.extents), mins_(c.extents.size(), -c.border) {
    int64_t elements = 1, source_elements = 1;
    for (size_t d = 0; d < source_.size(); ++d) {
      source_[d] += 2 * c.border;
      elements *= c.extents[d];
      source_elements *= source_[d];
    }
    in_.emplace(source_elements);
    out_.emplace(elements);
    buffers_ = {reinterpret_cast<std::byte*>(in_->data()), reinterpret_cast<std::byte*>(out_->data())};
    arguments_ = {{{"source", BufferArgument::dense(in_->data(), kF32, source_, mins_)},
                   {"result", BufferArgument::dense(out_->data(), kF32, c.extents)}},
                  {}};
    for (size_t d = 0; d < c.extents.size(); ++d) {
      const std::string n = std::to_string(d);
      sizes_["result.min" + n] = 0;
      sizes_["result.extent" + n] = c.extents[d];
      sizes_["source.min" + n] = mins_[d];
      sizes_["source.extent" + n] = source_[d];
    }
  }
  const Arguments& arguments() const { return arguments_; }
  const SymbolValues& sizes() const { return sizes_; }
  std::span<std::byte* const> buffers() const { return buffers_; }
  // An arena with at least this many bytes; earlier ones become invalid when it grows.
  void need(int64_t bytes) {
    if (bytes <= arena_bytes_) return;
    arena_ = must(allocate_aligned(static_cast<size_t>(bytes)));
    arena_bytes_ = bytes;
  }
  std::span<std::byte> arena() const { return {arena_.get(), static_cast<size_t>(arena_bytes_)}; }

 private:
  std::vector<int64_t> source_, mins_;
  std::optional<AlignedFloats> in_, out_;
  std::vector<std::byte*> buffers_;
  Arguments arguments_;
  SymbolValues sizes_;
  AlignedBytes arena_;
  int64_t arena_bytes_ = 0;
};

// A schedule, bound, or several that adapt, with the times of their runs.
class Contender {
 public:
  Contender(std::string name, const Pair& pair, double predicted, HintPolicy hints, Memory& memory)
      : Contender(std::move(name), must(pair.pipeline.build({pair.source}, {pair.result})), predicted, hints, memory) {}
  Contender(std::string name, AdaptiveProgram adaptive, Memory& memory)
      : name_(std::move(name)),
        predicted_(adaptive.candidates().front().predicted_seconds),
        memory_(&memory),
        text_(name_),
        adaptive_(std::move(adaptive)) {
    memory.need(adaptive_->lendable_bytes());
  }

  Result<void> try_out() { return run_once(); }
  void run(int enough = detail::kSettled) {
    const auto run = [&]() -> Result<double> {
      const double begin = processor_seconds();
      TENON_OK(run_once());
      return processor_seconds() - begin;
    };
    times_.push_back(must(detail::settled_seconds(run, enough)));
  }
  // Nothing for others.
  void adapt() {
    if (!adaptive_) return;
    const double begin = processor_seconds();
    while (processor_seconds() - begin < kAdaptSeconds) {
      const Result<void> ran = run_once();
      TENON_CHECK(ran.ok(), ran.error().to_string());
    }
  }
  void forget() { times_.clear(); }
  double least() const { return *std::ranges::min_element(times_); }
  double seconds() const { return median(times_); }
  double predicted() const { return predicted_; }
  // The ratio of this one's times to another's in the same rounds, so that varying load affects both.
  double ratio_to(const Contender& other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < times_.size(); ++i) ratios.push_back(times_[i] / other.times_[i]);
    return median(std::move(ratios));
  }
  const std::string& name() const { return name_; }
  // The whole program, and whether it tries its hints: equal texts do the same.
  const std::string& text() const { return text_; }
  // What it does now, if that is not what it did at first.
  std::string state() const {
    if (!adaptive_) return has_hints_ && !bound_->follows_hints() ? "ignores its hints at the end" : "";
    std::string out = "at the end";
    const AdaptiveProgram::Candidate chosen = adaptive_->candidates()[adaptive_->chosen()];
    for (const std::string& group : chosen.groups) out += " " + group;
    return out;
  }
  std::string candidates() const { return adaptive_ ? adaptive_->to_string() : ""; }
  bool shares_arena() const {
    return adaptive_ || bound_->lendable_bytes() > 0 ||
           std::ranges::all_of(bound_->arena_bytes(), [](const auto& space) { return space.second == 0; });
  }

 private:
  Contender(std::string name, const Program& program, double predicted, HintPolicy hints, Memory& memory)
      : name_(std::move(name)),
        predicted_(predicted),
        memory_(&memory),
        text_(print(program)),
        bound_(must(BoundProgram::bind(program, memory.arguments(), {.arena_of_runs = true, .hints = hints}))),
        has_hints_(bound_->follows_hints()) {
    if (has_hints_ && hints == HintPolicy::tried) text_ += "# tries its hints\n";
    memory.need(bound_->lendable_bytes());
  }
  Result<void> run_once() {
    const RunWith with{.arena = memory_->arena()};
    return adaptive_ ? adaptive_->run(memory_->buffers(), with) : bound_->run(memory_->buffers(), with);
  }

  std::string name_;
  double predicted_;  // seconds
  Memory* memory_;
  std::string text_;
  // One of the two.
  std::optional<BoundProgram> bound_;
  std::optional<AdaptiveProgram> adaptive_;
  bool has_hints_ = false;
  std::vector<double> times_;
};

// In a different order in each round, because of what one leaves in the caches for the next.
void run_in_turn(std::vector<Contender*> contenders, int rounds, std::mt19937& random,
                 int enough = detail::kSettled) {
  for (int i = 0; i < rounds; ++i) {
    std::ranges::shuffle(contenders, random);
    for (Contender* c : contenders) c->run(enough);
  }
}

// The first `ours`, and the fastest of the others, in ascending order of time.
std::vector<Contender*> finalists(std::vector<Contender>& all, size_t ours, std::mt19937& random) {
  std::vector<Contender*> left, first;
  for (Contender& c : all) (first.size() < ours ? first : left).push_back(&c);
  for (int round = 0; round < kRounds; ++round) {
    const int enough = round < kLooks ? detail::kLook : detail::kSettled;
    run_in_turn(left, 1, random, enough);
    run_in_turn(first, 1, random, enough);
    const double best = (*std::ranges::min_element(left, {}, &Contender::least))->least();
    std::erase_if(left, [&](Contender* c) { return c->least() > hopeless_after(round) * best; });
  }
  std::ranges::sort(left, {}, &Contender::seconds);
  left.resize(std::min(left.size(), kFinalists));
  left.insert(left.begin(), first.begin(), first.end());
  return left;
}

void print_curve(const std::vector<Contender>& all, const std::string& name) {
  std::vector<const Contender*> sorted;
  for (const Contender& c : all) sorted.push_back(&c);
  std::ranges::sort(sorted, {}, &Contender::seconds);
  for (const Contender* c : sorted)
    std::printf("      %8.3f ms, predicted %8.3f ms: %s\n", c->seconds() * 1e3, c->predicted() * 1e3,
                c->name().c_str());
  std::printf("  %s\n", name.c_str());
  std::fflush(stdout);
}

// Chosen by the model's predictions, by measurement if that gives a different program, and by runs.
std::vector<Contender> our_schedules(const Case& c, Memory& memory, std::vector<std::string>& groups) {
  std::vector<Contender> ours;
  Pair automatic = c.make();
  const ScheduleReport report = must(auto_schedule(automatic.pipeline, {automatic.source}, {automatic.result},
                                                   memory.sizes(), CostModel::of_machine()));
  groups = report.groups;
  ours.emplace_back(kAutomatic, automatic, report.automatic.seconds(), HintPolicy::tried, memory);
  Pair measured = c.make();
  const MeasuredReport by_clock = must(measured_schedule(measured.pipeline, {measured.source}, {measured.result},
                                                         memory.arguments(), CostModel::of_machine()));
  const MeasuredReport::Candidate& chosen = by_clock.candidates[by_clock.chosen];
  Contender contender(kMeasured, measured, chosen.predicted_seconds, HintPolicy::tried, memory);
  if (contender.text() != ours.front().text()) {
    groups.insert(groups.end(), chosen.groups.begin(), chosen.groups.end());
    ours.push_back(std::move(contender));
  }
  const Pair any = c.make();
  ours.emplace_back(kAdaptive,
                    must(AdaptiveProgram::bind(any.pipeline, {any.source}, {any.result}, memory.arguments(),
                                               CostModel::of_machine(), {.bind = {.arena_of_runs = true}})),
                    memory);
  return ours;
}

// The compared schedules of a case, in any number of moments.
class Comparison {
 public:
  // Finds the best manual ones. `curve`: print the measured and predicted time of each schedule.
  Comparison(const Case& c, bool curve) : name_(c.name), memory_(c) {
    std::vector<Contender> all = our_schedules(c, memory_, groups_);
    same_.resize(all.size());
    add_by_hand(c, all);
    TENON_CHECK(std::ranges::all_of(all, &Contender::shares_arena), "a schedule of '", c.name,
                "' has memory of its own");
    const std::vector<Contender*> final = finalists(all, same_.size(), random_);
    if (curve) {
      print_curve(all, c.name);
      for (size_t i = 0; i < same_.size(); ++i) std::printf("%s", all[i].candidates().c_str());
    }
    rounds_ = std::clamp(static_cast<int>(kFinalSeconds / all[0].seconds()), kFinalRounds, kMostFinalRounds);
    for (Contender* contender : final) {
      contender->forget();
      final_.push_back(std::move(*contender));
    }
  }
  Comparison(const Comparison&) = delete;  // contenders run in its memory
  Comparison& operator=(const Comparison&) = delete;

  void run() {
    std::vector<Contender*> all;
    for (Contender& c : final_) {
      c.adapt();
      all.push_back(&c);
    }
    run_in_turn(std::move(all), rounds_, random_);
  }

  // Over all moments together. By name of ours, the time compared with the best manual schedule: 1 is equal.
  std::map<std::string, double> print() const {
    std::printf("  %s\n", name_.c_str());
    std::map<std::string, double> ratios;
    for (size_t i = 0; i < same_.size(); ++i) ratios[final_[i].name()] = print_ratio(i);
    ratios.try_emplace(kMeasured, ratios.at(kAutomatic));
    for (const std::string& group : groups_) std::printf("      %s\n", group.c_str());
    std::fflush(stdout);
    return ratios;
  }

 private:
  void add_by_hand(const Case& c, std::vector<Contender>& all) {
    for (const Schedule& schedule : schedules_by_hand(c)) {
      Pair pair = c.make();
      schedule.apply(pair);
      const PredictedCost predicted =
          must(predict_cost(pair.pipeline, {pair.source}, {pair.result}, memory_.sizes(), CostModel::of_machine()));
      Contender contender(schedule.name, pair, predicted.seconds(), HintPolicy::always, memory_);
      const auto first_of_hand = all.begin() + static_cast<int64_t>(same_.size());
      const auto found = std::ranges::find(all.begin(), first_of_hand, contender.text(), &Contender::text);
      if (found != first_of_hand)
        same_[static_cast<size_t>(found - all.begin())] = schedule.name;
      else if (contender.try_out().ok())
        all.push_back(std::move(contender));  // the kernels take its windows
    }
  }

  // A manual schedule with the same program as one of ours is not run a second time: if no other is faster, ours is the
  // best manual one; and the other one of ours counts as manual, too, if it equals one.
  double print_ratio(size_t which) const {
    const Contender& ours = final_[which];
    const std::string& same = same_[which];
    const Contender* best = nullptr;
    double ratio = 0;
    for (size_t i = 0; i < final_.size(); ++i)
      if (i != which && (i >= same_.size() || !same_[i].empty()))
        if (const double to_this = ours.ratio_to(final_[i]); best == nullptr || to_this > ratio)
          best = &final_[i], ratio = to_this;
    const bool is_best = best == nullptr || (!same.empty() && ratio <= 1);
    if (is_best) ratio = 1;
    std::printf("  %s %8.3f ms (predicted %.3f), best by hand %8.3f ms (%s), ratio %.3f", ours.name().c_str(),
                ours.seconds() * 1e3, ours.predicted() * 1e3, (is_best ? ours : *best).seconds() * 1e3,
                (is_best ? same : best->name()).c_str(), ratio);
    if (!same.empty()) std::printf("; the same program as %s", same.c_str());
    const std::string state = ours.state();
    std::printf("%s%s\n", state.empty() ? "" : "; ", state.c_str());
    return ratio;
  }

  std::string name_;
  Memory memory_;
  std::vector<std::string> groups_;
  std::vector<std::string> same_;  // of each of ours, the name of the one by hand that is the same program
  std::mt19937 random_{kOrderSeed};
  std::vector<Contender> final_;  // ours first
  int rounds_ = 0;                // in a moment
};

// Over the cases of a family.
class Summary {
 public:
  void add(double ratio) {
    ++cases_;
    logarithms_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    within_ += ratio <= 1.1;
  }
  void print(const std::string& family, const std::string& ours) const {
    if (cases_ == 0) return;
    std::printf("%s, %s: %zu of %zu within 10%% of the best by hand, mean ratio %.3f, worst %.3f\n", family.c_str(),
                ours.c_str(), within_, cases_, std::exp(logarithms_ / static_cast<double>(cases_)), worst_);
  }

 private:
  double logarithms_ = 0, worst_ = 0;
  size_t within_ = 0, cases_ = 0;
};

// All cases are compared in each moment, so that moments are as far apart as a family takes.
void sweep(const std::string& family, const std::vector<Case>& cases, int moments, bool curve) {
  std::printf("%s\n", family.c_str());
  std::vector<std::unique_ptr<Comparison>> comparisons;
  for (const Case& c : cases) {
    comparisons.push_back(std::make_unique<Comparison>(c, curve));
    comparisons.back()->run();
  }
  for (int moment = 1; moment < moments; ++moment) {
    std::fprintf(stderr, "%s: %d of %d moments\n", family.c_str(), moment, moments);
    for (const auto& comparison : comparisons) comparison->run();
  }
  std::map<std::string, Summary> summaries;
  for (const auto& comparison : comparisons)
    for (const auto& [ours, ratio] : comparison->print()) summaries[ours].add(ratio);
  for (const std::string& ours : {kAutomatic, kMeasured, kAdaptive}) summaries[ours].print(family, ours);
}

// The output of --curve, of one or several sweeps in sequence: by family and case, the seconds of schedules.
using Curve = std::map<std::string, double>;
using Recorded = std::map<std::pair<std::string, std::string>, Curve>;
Recorded recorded_in(const std::string& file) {
  Recorded out;
  Curve curve;
  std::string family;
  std::ifstream in(file);
  TENON_CHECK(in.good(), "cannot read '", file, "'");
  for (std::string line; std::getline(in, line);) {
    double milliseconds = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), " %lf ms, predicted %*f ms: %n", &milliseconds, &name) == 1 && name > 0)
      curve[line.substr(static_cast<size_t>(name))] = milliseconds * 1e-3;
    else if (!line.empty() && line[0] != ' ')
      family = line;
    else if (!curve.empty())
      out[{family, line.substr(line.find_first_not_of(' '))}] = std::exchange(curve, {});
  }
  return out;
}

// How much longer than the fastest the manual schedule took that the model considers cheapest; nothing is run.
double ratio_in(const Curve& seconds, const Case& c) {
  const Memory memory(c);
  Curve::const_iterator chosen = seconds.end(), fastest = seconds.end();
  double least = 0;
  for (const Schedule& schedule : schedules_by_hand(c)) {
    const auto found = seconds.find(schedule.name);
    if (found == seconds.end()) continue;
    Pair pair = c.make();
    schedule.apply(pair);
    const double predicted =
        must(predict_cost(pair.pipeline, {pair.source}, {pair.result}, memory.sizes(), CostModel::of_machine()))
            .seconds();
    if (chosen == seconds.end() || predicted < least) chosen = found, least = predicted;
    if (fastest == seconds.end() || found->second < fastest->second) fastest = found;
  }
  if (chosen == seconds.end()) return 1;
  const double ratio = chosen->second / fastest->second;
  std::printf("  %s: %.3f ms (predicted %.3f, %s), fastest %.3f ms (%s), ratio %.3f\n", c.name.c_str(),
              chosen->second * 1e3, least * 1e3, chosen->first.c_str(), fastest->second * 1e3, fastest->first.c_str(),
              ratio);
  return ratio;
}

void choose_of(const Recorded& recorded, const std::string& family, const std::vector<Case>& cases) {
  Summary summary;
  for (const Case& c : cases)
    if (const auto found = recorded.find({family, c.name}); found != recorded.end())
      summary.add(ratio_in(found->second, c));
  summary.print(family, "recorded");
}

}  // namespace

int sweep_schedules(std::vector<std::string> arguments) {
  const bool curve = std::erase(arguments, "--curve") > 0;
  const auto take = [&](const std::string& option) {
    const auto at = std::ranges::find(arguments, option);
    if (at == arguments.end() || at + 1 == arguments.end()) return std::string();
    std::string value = at[1];
    arguments.erase(at, at + 2);
    return value;
  };
  const std::string only = take("--only"), file = take("--recorded"), moments = take("--moments");
  const int times = moments.empty() ? kMoments : std::atoi(moments.c_str());
  if (times < 1) {
    std::fprintf(stderr, "--moments %s: it takes a number from 1 on\n", moments.c_str());
    return 1;
  }
  const Recorded recorded = file.empty() ? Recorded() : recorded_in(file);
  const std::vector<Family>& known = sweep_families();
  for (const std::string& name : arguments)
    if (!std::ranges::count(known, name, [](const auto& family) { return family.first; })) {
      std::fprintf(stderr, "there is no family '%s'\n", name.c_str());
      return 1;
    }
  for (const auto& [name, cases] : known) {
    if (!arguments.empty() && !std::ranges::count(arguments, name)) continue;
    std::vector<Case> all = cases();
    std::erase_if(all, [&](const Case& c) { return c.name.find(only) == std::string::npos; });
    if (all.empty()) continue;
    if (file.empty())
      sweep(name, all, times, curve);
    else
      choose_of(recorded, name, all);
  }
  return 0;
}

}  // namespace tenon::program::bench
