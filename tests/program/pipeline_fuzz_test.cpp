// Random pipelines (stencils, resampling, transposes, copies, padding, several readers, in place) with random schedules
// (loops, bands, steps, workers, placement), every fifth with the automatic one, compared with the same pipeline
// without a schedule and without shared memory, interpreted and compiled. Some of them in contract mode and with the
// race verifier. Every fifth also with each schedule that the model offers to be measured. TENON_FUZZ_SEEDS and
// TENON_FUZZ_FIRST select the seeds.
#include <iostream>
#include <random>

#include <support_lib/environment.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/program/schedule/candidates_internal.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include <program/pipeline_support.hpp>

namespace tenon::program {

namespace {

int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// Index i of a result reads indices i * num floordiv den + below ... + above of the dim.
struct Tap {
  int from = 0;  // which index of the result
  int64_t num = 1, den = 1, below = 0, above = 0;
  int64_t base(const Index& i) const { return floor_of(i[static_cast<size_t>(from)] * num, den); }
  Window window(const std::vector<Expr>& indices) const {
    const Expr e = floordiv(indices[static_cast<size_t>(from)] * num, den);
    return {e + below, e + above};
  }
};
using Taps = std::vector<Tap>;

KernelHandle mixing(const std::vector<Taps>& reads) {
  return kernel<int32_t>("mix", [reads](const CallContext& c, const Index& i) {
    uint32_t mixed = 17;
    for (size_t r = 0; r < reads.size(); ++r) {
      const Elements<const int32_t> in = c.elements<const int32_t>(r);
      Index mins, extents;
      for (const Tap& tap : reads[r]) {
        mins.push_back(tap.base(i) + tap.below);
        extents.push_back(tap.above - tap.below + 1);
      }
      for_each_index(mins, extents, [&](const Index& j) { mixed = mixed * 31 + static_cast<uint32_t>(in.at(j)); });
    }
    return static_cast<int32_t>(mixed % 10007);
  });
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t percent) { return pick(1, 100) <= percent; }

 private:
  std::mt19937_64 random_;
};

// The pipeline of a seed; its schedule comes from another generator, so that both forms have the same stages.
class Case {
 public:
  Case(uint64_t seed, bool scheduled)
      : made_(seed * 2), drawn_(seed * 2 + 1), kernels_(seed * 3 + 7), scheduled_(scheduled), p_("fuzz") {
    buffers_.push_back(p_.buffer("src", kI32, 2));
    const int64_t stages = made_.pick(2, 7);
    for (int64_t s = 0; s < stages; ++s) add(s);
    outputs_.push_back(buffers_.back());
    if (made_.chance(20)) {
      const BufferRef from = buffers_[static_cast<size_t>(made_.pick(0, static_cast<int64_t>(buffers_.size()) - 2))];
      outputs_.push_back(p_.buffer("extra", kI32, 2));
      p_.copy(from, {var("x") + made_.pick(-1, 1), var("y")}, outputs_.back(), {var("x"), var("y")});
    }
    if (scheduled_) schedule();
  }

  Result<Program> build() const { return p_.build({buffers_[0]}, outputs_, {}, {scheduled_, scheduled_, scheduled_}); }
  // Replaces the random schedule. `mins` and `extents`: of all outputs.
  Result<ScheduleReport> schedule_automatically(const Index& mins, const Index& extents, int64_t workers) {
    SymbolValues sizes;
    for (const BufferRef& out : outputs_)
      for (size_t d = 0; d < extents.size(); ++d) {
        sizes[out.name() + ".min" + std::to_string(d)] = mins[d];
        sizes[out.name() + ".extent" + std::to_string(d)] = extents[d];
      }
    return auto_schedule(p_, {buffers_[0]}, outputs_, sizes, small_memories(workers));
  }
  // All schedules that the model offers.
  Result<detail::Candidates> candidates(const Arguments& arguments, const CostModel& model) const {
    return detail::Candidates::of(p_, {buffers_[0]}, outputs_, arguments, model, 1e9, 1000);
  }
  // So small that strips pay for buffers of a few elements.
  static CostModel small_memories(int64_t workers) {
    CostModel model = CostModel::host();
    for (CostModel::Memory& memory : model.memories) memory.bytes /= 256;
    model.seconds_per_call = 0.1e-9;
    model.workers = workers;
    model.workers_of_largest = static_cast<double>(workers);
    model.seconds_to_share = 0;
    return model;
  }
  const std::vector<BufferRef>& outputs() const { return outputs_; }

 private:
  void add(int64_t s) {
    const std::vector<Expr> indices{var("x"), var("y")};
    BufferRef out = p_.buffer("b" + std::to_string(s), kI32, 2);
    const BufferRef& from = recent();
    const int64_t kind = made_.pick(0, 9);
    if (kind == 0) {
      const Expr shift_x = made_.pick(-3, 3), shift_y = made_.pick(-3, 3);
      stages_.push_back(p_.copy(from, {indices[0] + shift_x, indices[1] + shift_y}, out, indices));
    } else if (kind == 1) {
      const int64_t low = made_.pick(-2, 2), high = made_.pick(3, 9);
      stages_.push_back(p_.padded_copy(from, {indices[0], indices[1] + made_.pick(-2, 2)}, out, indices,
                                       {{low, high}, {low, high}}, Padding::value(int32_t{5})));
    } else if (kind == 2) {
      stages_.push_back(p_.transpose(from, out, indices, {1, 0}));
    } else {
      compute(kind, from, out, indices);
    }
    buffers_.push_back(out);
    computes_.push_back(kind > 2);
  }

  // Mostly the last results, so that few stages are left without a reader.
  const BufferRef& recent() {
    const int64_t back = made_.chance(75) ? 0 : made_.pick(0, static_cast<int64_t>(buffers_.size()) - 1);
    return buffers_[buffers_.size() - 1 - static_cast<size_t>(back)];
  }

  void compute(int64_t kind, const BufferRef& from, const BufferRef& out, const std::vector<Expr>& indices) {
    std::vector<Taps> reads{taps(kind)};
    std::vector<BufferRef> sources{from};
    if (made_.chance(35)) {
      reads.push_back(taps(made_.pick(3, 9)));
      sources.push_back(recent());
    }
    const KernelHandle mix = mixing(reads);
    const bool rings = !scheduled_ || kernels_.chance(80);  // where a kernel takes none, its windows are in one piece
    StageRef stage =
        p_.stage("s" + std::to_string(stages_.size()), rings ? mix : make_kernel(mix->name, mix->run, false));
    for (size_t r = 0; r < reads.size(); ++r) {
      Windows windows;
      for (const Tap& tap : reads[r]) windows.push_back(tap.window(indices));
      stage.reads(sources[r], windows);
    }
    stage.writes(out, indices);
    if (made_.chance(60)) stage.in_place(static_cast<int>(made_.pick(0, static_cast<int64_t>(reads.size()) - 1)));
    stages_.push_back(stage);
  }

  Taps taps(int64_t kind) {
    Taps out{{0}, {1}};
    if (kind == 4 && resampled_ < 2) ++resampled_, out[static_cast<size_t>(made_.pick(0, 1))].num = 2;
    if (kind == 5) out[static_cast<size_t>(made_.pick(0, 1))].den = made_.pick(2, 3);
    if (kind >= 4 && kind <= 8)
      for (Tap& tap : out) tap.below = -made_.pick(0, 2), tap.above = made_.pick(0, 2);
    return out;
  }

  void schedule() {
    const Expr xy[] = {var("x"), var("y")};
    const auto step = [&] { return drawn_.chance(10) ? int64_t{1000} : drawn_.pick(1, 5); };
    const auto workers = [&] { return drawn_.chance(25) ? drawn_.pick(2, 3) : int64_t{1}; };
    for (size_t s = 0; s < stages_.size(); ++s) {
      const bool last = s + 1 == stages_.size();
      if (drawn_.chance(last ? 85 : 25)) {
        const size_t first = static_cast<size_t>(drawn_.pick(0, 1));
        std::vector<LoopOver> loops{{xy[first], step(), workers(), drawn_.chance(40) ? drawn_.pick(1, 3) : 0}};
        if (drawn_.chance(40)) loops.push_back({xy[1 - first], step(), workers()});
        if (drawn_.chance(20)) loops.push_back({xy[first], drawn_.pick(3, 9), workers()});
        loops.front().non_temporal = drawn_.chance(30) && computes_[s];
        stages_[s].loops(loops);
      }
      if (drawn_.chance(10))
        stages_[s].compute_root();
      else if (!last && drawn_.chance(8))
        stages_[s].compute_at(stages_.back(), xy[drawn_.pick(0, 1)]);
      if (!last && drawn_.chance(8)) buffers_[s + 1].store_at(stages_.back(), xy[drawn_.pick(0, 1)]);
      if (!last && drawn_.chance(5)) buffers_[s + 1].align(static_cast<int>(drawn_.pick(0, 1)), drawn_.pick(2, 3));
    }
  }

  Generator made_, drawn_, kernels_;
  bool scheduled_;
  Pipeline p_;
  std::vector<BufferRef> buffers_, outputs_;
  std::vector<StageRef> stages_;
  std::vector<bool> computes_;  // by stage: it is no copy
  int resampled_ = 0;
};

// Bounds of the outputs of a seed.
struct Bounds {
  Index mins, extents;
  explicit Bounds(uint64_t seed) {
    Generator sizes(seed * 3);
    mins = {sizes.pick(-4, 4), sizes.pick(-4, 4)};
    extents = {sizes.pick(1, 14), sizes.pick(1, 14)};
  }
};

struct Runs {
  int64_t run = 0, refused = 0, in_strips = 0, in_bands = 0, candidates = 0;
};

class PipelineFuzz : public ::testing::Test {
 protected:
  // Reads far beyond what any case needs.
  PipelineFuzz() : source_({-150, -150}, {360, 360}) { source_.fill_pattern(); }

  // One for each output of a case.
  static std::vector<Array<int32_t>> outputs(const Case& c, uint64_t seed) {
    const auto [mins, extents] = Bounds(seed);
    return {c.outputs().size(), Array<int32_t>(mins, extents)};
  }
  Arguments arguments(const Case& c, std::vector<Array<int32_t>>& out) {
    Arguments made{{{"src", source_.argument()}}, {}};
    for (size_t i = 0; i < out.size(); ++i) made.buffers[c.outputs()[i].name()] = out[i].argument();
    return made;
  }
  std::vector<Array<int32_t>> run(const Program& program, const Case& c, uint64_t seed, int64_t threads,
                                  bool contract) {
    std::vector<Array<int32_t>> out = outputs(c, seed);
    const Arguments given = arguments(c, out);
    const auto ran = interpret(program, given, {threads, 0, seed, contract}, nullptr);
    EXPECT_TRUE(ran.ok()) << ran.error().to_string();
    if (threads > 1 && seed % 8 == 3) {
      const auto races = check_races(program, given, {threads});
      EXPECT_TRUE(races.ok()) << races.error().to_string() << "\n" << print(program);
    }
    if (ran.ok()) expect_same_compiled(program, given, static_cast<int>(threads), 0);
    return out;
  }

  void check(uint64_t seed, Runs& runs) {
    const Case plain(seed, false);
    Case scheduled(seed, true);
    if (seed % 5 == 2) schedule_automatically(seed, scheduled, runs);
    const auto reference = plain.build(), program = scheduled.build();
    ASSERT_TRUE(reference.ok()) << reference.error().to_string();
    if (!program.ok()) {
      // A placement that is not around all readers.
      EXPECT_EQ(program.error().code(), Code::invalid_argument) << program.error().to_string();
      ++runs.refused;
      return;
    }
    const auto verified = verify(program.value());
    ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << print(program.value());
    const auto wanted = run(reference.value(), plain, seed, 1, false);
    const auto ours = run(program.value(), scheduled, seed, 1 + static_cast<int64_t>(seed % 4), seed % 20 == 0);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(wanted[i].data(), ours[i].data()) << print(program.value());
    ++runs.run;
    if (seed % 5 == 4) check_candidates(scheduled, wanted, seed, runs);
  }

  void check_candidates(const Case& c, const std::vector<Array<int32_t>>& wanted, uint64_t seed, Runs& runs) {
    const int threads = 1 + static_cast<int>(seed / 5 % 3);
    std::vector<Array<int32_t>> out = outputs(c, seed);
    const Arguments given = arguments(c, out);
    const CostModel model = Case::small_memories(threads);
    auto offered = c.candidates(given, model);
    ASSERT_TRUE(offered.ok()) << offered.error().to_string();
    ThreadPool pool(threads);
    for (size_t i = 0; i < offered->size(); ++i) {
      auto bound = offered->bind(i, {&pool, threads});
      ASSERT_TRUE(bound.ok()) << bound.error().to_string() << "\n" << ::testing::PrintToString(offered->describe(i));
      for (Array<int32_t>& o : out) o.clear();
      const auto ran = bound->run(given);
      ASSERT_TRUE(ran.ok()) << ran.error().to_string() << "\n" << ::testing::PrintToString(offered->describe(i));
      for (size_t o = 0; o < out.size(); ++o)
        ASSERT_EQ(out[o].data(), wanted[o].data()) << ::testing::PrintToString(offered->describe(i));
    }
    runs.candidates += static_cast<int64_t>(offered->size());
  }

  static void schedule_automatically(uint64_t seed, Case& c, Runs& runs) {
    const Bounds bounds(seed);
    const auto report = c.schedule_automatically(bounds.mins, bounds.extents, 1 + static_cast<int64_t>(seed / 5 % 3));
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    runs.in_strips += report.value().to_string().find("in steps of") != std::string::npos;
    runs.in_bands += report.value().to_string().find("in bands of") != std::string::npos;
  }

  Array<int32_t> source_;
};

TEST_F(PipelineFuzz, SchedulesDoNotChangeResults) {
  const int64_t first = tenon::testing::number_from_environment("TENON_FUZZ_FIRST", 0),
                count = tenon::testing::number_from_environment("TENON_FUZZ_SEEDS", 600);
  Runs runs;
  for (int64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(static_cast<uint64_t>(seed), runs);
  }
  std::cout << "seeds " << first << " to " << first + count - 1 << ": " << runs.run << " run, " << runs.in_strips
            << " in automatic strips, " << runs.in_bands << " in bands, " << runs.candidates
            << " candidates of others, " << runs.refused << " schedules refused\n";
  EXPECT_GE(runs.run * 10, count * 7) << "most schedules must be possible";
  EXPECT_GE(runs.in_strips * 100, count) << "automatic schedules must be of use";
  EXPECT_GE(runs.in_bands * 100, count) << "and those of several workers";
  EXPECT_GE(runs.candidates, count / 5) << "and there must be some to measure";
}

// A strip that is alone in its band around a loop of workers; a ring in the memory of a value computed outside its
// loop; a window passed from band to band.
TEST_F(PipelineFuzz, SeedsThatHaveFoundFaults) {
  Runs runs;
  for (const uint64_t seed : {919, 3445, 9361, 43341739}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed, runs);
  }
}

}  // namespace
}  // namespace tenon::program
