#include "schedule_sweep.hpp"

#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include <support_lib/environment.hpp>
#include <tenon/program/auto_schedule.hpp>
#include <tenon/program/exec/bound_program.hpp>

#include "pipeline_kernels.hpp"

namespace tenon::program::bench {

namespace {

// Rounds of all schedules to find the best ones by hand, and of these and the automatic one to compare them: more where
// runs are short. Schedules that take so many times as long as the best one run no more, so that a case takes seconds.
constexpr int kRounds = 5, kFinalRounds = 21, kMostFinalRounds = 201;
constexpr double kHopeless = 1.5;
constexpr double kFinalSeconds = 0.1;  // of the automatic one
constexpr size_t kFinalists = 3;
constexpr uint32_t kOrderSeed = 1;
const std::string kAutomatic = "automatic";

struct Case {
  std::string name;
  std::function<Pair()> make;
  std::vector<int64_t> extents;  // of the result
  int64_t border = 0;            // that the source is larger by, on all sides
};

struct Schedule {
  std::string name;
  std::function<void(Pair&)> apply;
};

template <class T>
T must(Result<T> result) {
  TENON_CHECK(result.ok(), result.error().to_string());
  return std::move(result).value();
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> v) {
  std::ranges::nth_element(v, v.begin() + static_cast<int64_t>(v.size() / 2));
  return v[v.size() / 2];
}

std::vector<Schedule> schedules_by_hand(const Case& c) {
  std::vector<Schedule> out{{"whole", [](Pair&) {}}};
  const bool rows = c.extents.size() > 1;
  const Expr slowest = rows ? y : x;
  for (int64_t step = rows ? 1 : 256; step < c.extents.back() && step <= (rows ? 128 : 65536); step *= 2)
    out.push_back({std::to_string(step), [slowest, step](Pair& p) { p.last.loops({{slowest, step}}); }});
  if (rows)
    for (const int64_t width : {256, 512, 1024, 2048, 4096})
      for (const int64_t step : {1, 2, 4, 8, 16, 32, 64}) {
        if (width >= c.extents[0] || step >= c.extents[1]) continue;
        const std::string tile = std::to_string(width) + " x " + std::to_string(step);
        out.push_back({tile, [=](Pair& p) { p.last.loops({{x, width}, {y, step}}); }});
        out.push_back({tile + ", columns", [=](Pair& p) { p.last.loops({{y, step}, {x, width}}); }});
      }
  if (c.make().stages.size() >= 6)
    for (const int64_t step : {4, 16})
      out.push_back({"two loops of " + std::to_string(step), [=](Pair& p) {
                       const int64_t by = rows ? step : 512 * step;
                       p.stages[p.stages.size() / 2].loops({{slowest, by}}).compute_root();
                       p.last.loops({{slowest, by}});
                     }});
  return out;
}

// Scheduled, bound, and with the times that its runs took.
class Contender {
 public:
  Contender(std::string name, Pair pair, double predicted, const Arguments& arguments)
      : name_(std::move(name)),
        predicted_(predicted),
        arguments_(&arguments),
        program_(must(BoundProgram::bind(must(pair.pipeline.build({pair.source}, {pair.result})), arguments))) {}

  Result<void> try_out() { return program_.run(*arguments_); }
  void run() {
    const double begin = processor_seconds();
    const auto ran = program_.run(*arguments_);
    times_.push_back(processor_seconds() - begin);
    TENON_CHECK(ran.ok(), ran.error().to_string());
  }
  void forget() { times_.clear(); }
  double seconds() const { return median(times_); }
  double predicted() const { return predicted_; }
  // Of this one's times and another's in the same rounds: load that comes and goes is in both.
  double ratio_to(const Contender& other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < times_.size(); ++i) ratios.push_back(times_[i] / other.times_[i]);
    return median(std::move(ratios));
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  double predicted_;  // seconds
  const Arguments* arguments_;
  BoundProgram program_;
  std::vector<double> times_;
};

// In another order each round: what one leaves in the caches is found by each of the others as often.
void run_in_turn(std::vector<Contender*> contenders, int rounds, std::mt19937& random) {
  for (int i = 0; i < rounds; ++i) {
    std::ranges::shuffle(contenders, random);
    for (Contender* c : contenders) c->run();
  }
}

// The first one, and of the others those that took least, the fastest first.
std::vector<Contender*> finalists(std::vector<Contender>& all, std::mt19937& random) {
  std::vector<Contender*> left;
  for (Contender& c : all) left.push_back(&c);
  const Contender* const first = left.front();
  for (int round = 0; round < kRounds; ++round) {
    run_in_turn(left, 1, random);
    const double best = (*std::ranges::min_element(left.begin() + 1, left.end(), {}, &Contender::seconds))->seconds();
    std::erase_if(left, [&](Contender* c) { return c != first && c->seconds() > kHopeless * best; });
  }
  std::ranges::sort(left.begin() + 1, left.end(), {}, &Contender::seconds);
  left.resize(std::min(left.size(), kFinalists + 1));
  return left;
}

void print_curve(const std::vector<Contender>& all) {
  std::vector<const Contender*> sorted;
  for (const Contender& c : all) sorted.push_back(&c);
  std::ranges::sort(sorted, {}, &Contender::seconds);
  for (const Contender* c : sorted)
    std::printf("      %8.3f ms, predicted %8.3f ms: %s\n", c->seconds() * 1e3, c->predicted() * 1e3,
                c->name().c_str());
}

// How much longer the automatic schedule takes than the best by hand: 1 is as long. `curve`: what each schedule takes,
// and is predicted to take, is printed.
double measure(const Case& c, bool curve) {
  std::vector<int64_t> source(c.extents), mins(c.extents.size(), -c.border);
  int64_t elements = 1, source_elements = 1;
  for (size_t d = 0; d < source.size(); ++d) {
    source[d] += 2 * c.border;
    elements *= c.extents[d];
    source_elements *= source[d];
  }
  AlignedFloats in(source_elements), out(elements);
  const Arguments arguments{{{"source", BufferArgument::dense(in.data(), kF32, source, mins)},
                             {"result", BufferArgument::dense(out.data(), kF32, c.extents)}},
                            {}};

  std::vector<Contender> all;
  Pair automatic = c.make();
  SymbolValues sizes;
  for (size_t d = 0; d < c.extents.size(); ++d) {
    sizes["result.min" + std::to_string(d)] = 0;
    sizes["result.extent" + std::to_string(d)] = c.extents[d];
    sizes["source.min" + std::to_string(d)] = mins[d];
    sizes["source.extent" + std::to_string(d)] = source[d];
  }
  const ScheduleReport report =
      must(auto_schedule(automatic.pipeline, {automatic.source}, {automatic.result}, sizes, CostModel::of_machine()));
  all.emplace_back(kAutomatic, std::move(automatic), report.automatic.seconds(), arguments);
  for (const Schedule& schedule : schedules_by_hand(c)) {
    Pair pair = c.make();
    schedule.apply(pair);
    const PredictedCost predicted =
        must(predict_cost(pair.pipeline, {pair.source}, {pair.result}, sizes, CostModel::of_machine()));
    Contender contender(schedule.name, std::move(pair), predicted.seconds(), arguments);
    if (contender.try_out().ok()) all.push_back(std::move(contender));  // the kernels take its windows
  }
  std::mt19937 random(kOrderSeed);
  std::vector<Contender*> final = finalists(all, random);
  if (curve) print_curve(all);
  const int rounds = std::clamp(static_cast<int>(kFinalSeconds / all[0].seconds()), kFinalRounds, kMostFinalRounds);
  for (Contender* contender : final) contender->forget();
  run_in_turn(final, rounds, random);
  std::ranges::sort(final.begin() + 1, final.end(), {}, &Contender::seconds);
  const Contender &ours = *final[0], &best = *final[1];
  const double ratio = ours.ratio_to(best);
  std::printf("  %-34s automatic %8.3f ms, best by hand %8.3f ms (%s), ratio %.3f\n", c.name.c_str(),
              ours.seconds() * 1e3, best.seconds() * 1e3, best.name().c_str(), ratio);
  for (const std::string& group : report.groups) std::printf("      %s\n", group.c_str());
  std::fflush(stdout);
  return ratio;
}

// Families ------------------------------------------------------------------------------------------------------

std::string named(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}
std::string stages_of(int stages) { return std::to_string(stages) + " stages"; }
std::string size_of(int64_t width, int64_t rows) { return std::to_string(width) + " x " + std::to_string(rows); }

// At most so many elements, so that a sweep takes minutes.
constexpr int64_t kMostElements = int64_t{1} << 22;
int64_t rows_for(int64_t width) { return std::min<int64_t>(2048, kMostElements / width); }

std::vector<Case> points() {
  std::vector<Case> out;
  for (const int stages : {3, 5, 8, 16})
    for (const int64_t floats : {1 << 16, 1 << 18, 1 << 20, 1 << 22})
      out.push_back({named({stages_of(stages), std::to_string(floats)}), [=] { return scales(stages); }, {floats}});
  return out;
}

// A few long rows, and many short ones.
std::vector<Case> rows_of_points() {
  std::vector<Case> out;
  for (const int stages : {3, 8})
    for (const auto& [width, rows] :
         {std::pair<int64_t, int64_t>{1 << 20, 1}, {1 << 19, 4}, {1 << 14, 128}, {1 << 10, 2048}, {64, 1 << 14}})
      out.push_back(
          {named({stages_of(stages), size_of(width, rows)}), [=] { return scales(stages, 2); }, {width, rows}});
  return out;
}

std::vector<Case> stencils() {
  std::vector<Case> out;
  for (const int stages : {3, 6, 12})
    for (const int64_t width : {256, 512, 1000, 2048, 4096, 8192})
      out.push_back({named({stages_of(stages), size_of(width, rows_for(width))}),
                     [=] { return blurs(stages); },
                     {width, rows_for(width)},
                     stages});
  return out;
}

std::vector<Case> boxes() {
  std::vector<Case> out;
  for (const int stages : {3, 6, 12})
    for (const int64_t width : {256, 1000, 2048, 8192})
      out.push_back({named({stages_of(stages), size_of(width, rows_for(width))}),
                     [=] {
                       return chain(stages, box(true), kF32, 2, {{x - 1, x + 1}, {y - 1, y + 1}});
                     },
                     {width, rows_for(width)},
                     stages});
  return out;
}

// Down by two `levels` times, each time after a blur, and up again, each time combined with what has been there.
Pair pyramid(int levels) {
  Pipeline p("pyramid");
  std::vector<StageRef> stages;
  const std::vector<Expr> indices{x, y};
  BufferRef source = p.buffer("source", kF32, 2), from = source;
  std::vector<BufferRef> down;
  const auto made = [&](const std::string& name) { return p.buffer(name, kF32, 2); };
  for (int l = 0; l < levels; ++l) {
    const std::string n = std::to_string(l);
    BufferRef smooth = made("smooth" + n), half = made("half" + n);
    stages.push_back(p.stage("blur" + n, blur(true)).reads(from, {x, {y - 1, y + 1}}).writes(smooth, indices));
    stages.push_back(
        p.stage("halve" + n, halve()).reads(smooth, {{2 * x, 2 * x + 1}, {2 * y, 2 * y + 1}}).writes(half, indices));
    down.push_back(smooth);
    from = half;
  }
  for (int l = levels; l-- > 0;) {
    const std::string n = std::to_string(l);
    BufferRef large = made("large" + n), sum = made(l == 0 ? "result" : "sum" + n);
    stages.push_back(
        p.stage("twice" + n, twice()).reads(from, {floordiv(x, 2), floordiv(y, 2)}).writes(large, indices));
    stages.push_back(p.stage("combine" + n, combine())
                         .reads(down[static_cast<size_t>(l)], {x, y})
                         .reads(large, {x, y})
                         .writes(sum, indices));
    from = sum;
  }
  return {std::move(p), source, from, stages.back(), stages};
}
std::vector<Case> pyramids() {
  std::vector<Case> out;
  for (const int levels : {1, 2, 3})
    for (const int64_t width : {512, 2048, 4096})
      out.push_back({named({std::to_string(levels) + " levels", size_of(width, rows_for(width))}),
                     [=] { return pyramid(levels); },
                     {width, rows_for(width)},
                     4 << levels});
  return out;
}

// Each value is blurred, and what the blur has taken away is put back: every value has two readers, one of them later.
Pair sharpened(int times) {
  Pipeline p("sharpened");
  std::vector<StageRef> stages;
  BufferRef source = p.buffer("source", kF32, 2), from = source;
  for (int t = 0; t < times; ++t) {
    const std::string n = std::to_string(t);
    BufferRef smooth = p.buffer("smooth" + n, kF32, 2), smoother = p.buffer("smoother" + n, kF32, 2),
              sharp = p.buffer(t + 1 == times ? "result" : "sharp" + n, kF32, 2);
    stages.push_back(p.stage("blur" + n, blur(true)).reads(from, {x, {y - 1, y + 1}}).writes(smooth, {x, y}));
    stages.push_back(p.stage("again" + n, blur(true)).reads(smooth, {x, {y - 1, y + 1}}).writes(smoother, {x, y}));
    stages.push_back(
        p.stage("sharpen" + n, combine()).reads(from, {x, y}).reads(smoother, {x, y}).writes(sharp, {x, y}));
    from = sharp;
  }
  return {std::move(p), source, from, stages.back(), stages};
}
std::vector<Case> sharpenings() {
  std::vector<Case> out;
  for (const int times : {1, 2, 4})
    for (const int64_t width : {512, 2048, 8192})
      out.push_back({named({std::to_string(times) + " times", size_of(width, rows_for(width))}),
                     [=] { return sharpened(times); },
                     {width, rows_for(width)},
                     2 * times});
  return out;
}

// Held out: kinds, stages and sizes that nothing was tuned for. TENON_FUZZ_FIRST: the first seed.
std::vector<Case> drawn() {
  constexpr uint32_t kSeeds = 12;
  const uint32_t first = testing::first_seed();
  std::vector<Case> out;
  for (uint32_t seed = first; seed < first + kSeeds; ++seed) {
    std::mt19937 random(seed);
    const int stages = std::uniform_int_distribution(2, 14)(random);
    const int64_t width = std::uniform_int_distribution<int64_t>(100, 12000)(random), rows = rows_for(width);
    const std::string size = named({"seed " + std::to_string(seed), stages_of(stages), size_of(width, rows)});
    switch (random() % 3) {
      case 0: out.push_back({size + ", points", [=] { return scales(stages, 2); }, {width, rows}}); break;
      case 1: out.push_back({size + ", stencils", [=] { return blurs(stages); }, {width, rows}, stages}); break;
      default: {
        const int times = (stages + 2) / 3;
        out.push_back({size + ", sharpened", [=] { return sharpened(times); }, {width, rows}, 2 * times});
      }
    }
  }
  return out;
}

void sweep(const std::string& family, const std::vector<Case>& cases, bool curve) {
  std::printf("%s\n", family.c_str());
  double logarithms = 0, worst = 0;
  size_t within = 0;
  for (const Case& c : cases) {
    const double ratio = measure(c, curve);
    logarithms += std::log(ratio);
    worst = std::max(worst, ratio);
    within += ratio <= 1.1;
  }
  std::printf("%s: %zu of %zu within 10%% of the best by hand, mean ratio %.3f, worst %.3f\n", family.c_str(), within,
              cases.size(), std::exp(logarithms / static_cast<double>(cases.size())), worst);
}

}  // namespace

int sweep_schedules(std::vector<std::string> arguments) {
  const bool curve = std::erase(arguments, "--curve") > 0;
  std::string only;
  if (const auto at = std::ranges::find(arguments, "--only"); at != arguments.end() && at + 1 != arguments.end()) {
    only = at[1];
    arguments.erase(at, at + 2);
  }
  const std::vector<std::pair<std::string, std::vector<Case> (*)()>> known = {
      {"points", &points},     {"rows", &rows_of_points},     {"stencils", &stencils}, {"boxes", &boxes},
      {"pyramids", &pyramids}, {"sharpenings", &sharpenings}, {"drawn", &drawn}};
  for (const std::string& name : arguments)
    if (!std::ranges::count(known, name, [](const auto& family) { return family.first; })) {
      std::fprintf(stderr, "there is no family '%s'\n", name.c_str());
      return 1;
    }
  for (const auto& [name, cases] : known) {
    if (!arguments.empty() && !std::ranges::count(arguments, name)) continue;
    std::vector<Case> all = cases();
    std::erase_if(all, [&](const Case& c) { return c.name.find(only) == std::string::npos; });
    if (!all.empty()) sweep(name, all, curve);
  }
  return 0;
}

}  // namespace tenon::program::bench
