#include <tenon/program/schedule/adaptive_program.hpp>

#include <algorithm>
#include <set>

#include <program/timed_sums.hpp>

#include "support/count_allocations.hpp"

namespace tenon::program {
namespace {

constexpr int kRuns = 1200;  // in which all candidates are tried several times, if a run takes some 0.1 s by the clock

class Adaptive : public TimedSums {
 protected:
  Adaptive() {
    offer_all(options_);
    const Arguments plain{{{"source", source_.argument()}, {"result", wanted_.argument()}}, {}};
    EXPECT_TRUE(interpret(p_.build({in_}, {out_}).value(), plain).ok());
  }
  AdaptiveProgram bound() {
    auto made = AdaptiveProgram::bind(p_, {in_}, {out_}, arguments(), model_, options_);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
  // Every run has the right results.
  void run(AdaptiveProgram& program, int times = kRuns) {
    for (int i = 0; i < times; ++i) {
      result_.clear();
      const Result<void> ran = program.run(arguments());
      ASSERT_TRUE(ran.ok()) << ran.error().to_string();
      ASSERT_EQ(result_.data(), wanted_.data()) << "run " << i << "\n" << program.to_string();
    }
  }

  static bool has_step(const AdaptiveProgram& program, int64_t rows) {
    return TimedSums::has_step(program.candidates()[program.chosen()].groups, rows);
  }

  AdaptOptions options_;
  Array<int32_t> wanted_{{kWidth, kRows}};
};

TEST_F(Adaptive, TakesWhatIsFastestNow) {
  AdaptiveProgram program = bound();
  EXPECT_EQ(program.chosen(), 0u);
  for (const int64_t wanted : {4, 1, 16}) {
    seconds_ = [=](int64_t rows) { return static_cast<double>(rows) * (rows == wanted ? 1e-3 : 1.3e-3); };
    run(program);
    EXPECT_TRUE(has_step(program, wanted)) << wanted << "\n" << program.to_string();
  }
}

TEST_F(Adaptive, KeepsTheOnePredictedToBeTheCheapestWhereAllTakeTheSame) {
  for (const double seconds : {0.0, 1e-3}) {
    seconds_ = [=](int64_t rows) { return seconds * static_cast<double>(rows); };
    AdaptiveProgram program = bound();
    run(program, 400);
    EXPECT_EQ(program.chosen(), 0u) << program.to_string();
  }
}

TEST_F(Adaptive, HasTheCandidatesOfMeasuredSchedulesAndTriesEach) {
  options_.most_times = 3;
  seconds_ = [=](int64_t rows) { return static_cast<double>(rows) * 1e-3; };
  AdaptiveProgram program = bound();
  const auto before = program.candidates();
  ASSERT_GT(before.size(), 5u);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].relative_time, i == 0 ? 1 : 0);
    EXPECT_LE(before[i].predicted_seconds, 3 * before[0].predicted_seconds);
    EXPECT_GE(before[i].predicted_seconds, before[i > 1 ? i - 1 : 0].predicted_seconds);
  }
  EXPECT_NE(program.to_string().find("* "), std::string::npos);
  EXPECT_NE(program.to_string().find("not tried"), std::string::npos);
  run(program);
  for (const auto& c : program.candidates()) EXPECT_GT(c.relative_time, 0) << program.to_string();
  options_.most_candidates = 4;
  EXPECT_EQ(bound().candidates().size(), 4u);
  for (const size_t most : {0u, 1u}) {
    options_.most_candidates = most;
    AdaptiveProgram one = bound();
    run(one, 100);
    EXPECT_EQ(one.candidates().size(), 1u);
  }
}

// Prefetching is a candidate by itself: hints are not tried within one as well.
TEST_F(Adaptive, HintsAreCandidates) {
  model_.memories = {{"near", 8 << 10, 100e9, 1e-9}, {"far", 0, 10e9, 80e-9}};
  model_.fetched_part = 0.5, model_.fetched_way = 0.8;
  AdaptiveProgram program = bound();
  const auto is_fetched = [](const auto& c) { return c.groups[0].find("fetched") != std::string::npos; };
  const auto all = program.candidates();
  EXPECT_TRUE(std::ranges::any_of(all, is_fetched)) << program.to_string();
  EXPECT_FALSE(std::ranges::all_of(all, is_fetched)) << program.to_string();
  run(program);
}

TEST_F(Adaptive, ThePipelineKeepsItsSchedule) {
  const std::string before = print(p_.build({in_}, {out_}).value());
  bound();
  EXPECT_EQ(print(p_.build({in_}, {out_}).value()), before);
}

// The run in which a candidate refuses is repeated, and its results are right.
TEST_F(Adaptive, WhatKernelsDoNotTakeIsNotTriedAgain) {
  std::set<int64_t> used;
  seconds_ = [&](int64_t rows) { return used.insert(rows), static_cast<double>(rows) * 1e-3; };
  AdaptiveProgram program = bound();
  run(program, 1);
  takes_ = [&](int64_t rows) { return used.contains(rows); };  // in the first candidate's calls
  run(program);
  const auto all = program.candidates();
  EXPECT_EQ(all[program.chosen()].refused, "");
  const auto refused = std::ranges::count_if(all, [](const auto& c) { return !c.refused.empty(); });
  EXPECT_GT(refused, 0) << program.to_string();
  EXPECT_NE(program.to_string().find("refused: a call for "), std::string::npos) << program.to_string();
  // A fork has those that are left.
  auto fork = program.fork();
  ASSERT_TRUE(fork.ok());
  takes_ = [](int64_t) { return true; };
  run(*fork);
  EXPECT_EQ(std::ranges::count_if(fork->candidates(), [](const auto& c) { return !c.refused.empty(); }), refused);
}

// An error of the data, not of a schedule, is reported, and drops no candidate.
TEST_F(Adaptive, AnErrorOfAllSchedulesIsTheRunsError) {
  AdaptiveProgram program = bound();
  takes_ = [](int64_t) { return false; };
  for (int i = 0; i < 100; ++i) {
    const Result<void> ran = program.run(arguments());
    ASSERT_FALSE(ran.ok());
    EXPECT_NE(ran.error().to_string().find("a call for"), std::string::npos) << ran.error().to_string();
  }
  takes_ = [](int64_t) { return true; };
  run(program);
  for (const auto& c : program.candidates()) EXPECT_EQ(c.refused, "");
}

TEST_F(Adaptive, AForkBeginsWithTheChosenSchedule) {
  AdaptiveProgram program = bound();
  seconds_ = [](int64_t rows) { return static_cast<double>(rows) * (rows == 4 ? 1e-3 : 1.3e-3); };
  run(program);
  ASSERT_TRUE(has_step(program, 4)) << program.to_string();
  auto fork = program.fork();
  ASSERT_TRUE(fork.ok()) << fork.error().to_string();
  EXPECT_TRUE(has_step(*fork, 4));
  seconds_ = [](int64_t rows) { return static_cast<double>(rows) * (rows == 8 ? 1e-3 : 1.3e-3); };
  run(*fork);
  EXPECT_TRUE(has_step(*fork, 8)) << fork->to_string();
  EXPECT_TRUE(has_step(program, 4)) << "trials of its own";
}

// Observed runs take longer: they are not on trial.
TEST_F(Adaptive, ObservedRunsFollowTheChosenSchedule) {
  struct Observer : StageObserver {
    void ran(std::string_view, double, bool) override { ++calls; }
    int calls = 0;
  } observer;
  AdaptiveProgram program = bound();
  std::set<int> calls;
  const std::vector<std::byte*> buffers{arguments().buffers.at("source").data, arguments().buffers.at("result").data};
  for (int i = 0; i < 200; ++i) {
    const int before = calls_;
    ASSERT_TRUE(program.run(buffers, {.observer = &observer}).ok());
    calls.insert(calls_ - before);
  }
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_GE(observer.calls, 200);
}

// With an arena from the caller no other memory is needed; one that is too small is not used.
TEST_F(Adaptive, RunsMayProvideTheArena) {
  options_.bind.arena_of_runs = true;
  AdaptiveProgram program = bound();
  ASSERT_GT(program.lendable_bytes(), 0);
  const auto arena = allocate_aligned(static_cast<size_t>(program.lendable_bytes()));
  ASSERT_TRUE(arena.ok());
  const std::vector<std::byte*> buffers{arguments().buffers.at("source").data, arguments().buffers.at("result").data};
  for (int i = 0; i < kRuns; ++i) {
    result_.clear();
    const size_t bytes = i % 3 == 0 ? 1 : static_cast<size_t>(program.lendable_bytes());
    ASSERT_TRUE(program.run(buffers, {.arena = {arena->get(), bytes}}).ok());
    ASSERT_EQ(result_.data(), wanted_.data()) << "run " << i;
  }
}

TEST(AdaptiveProgram, RunsAndTrialsAllocateNothing) {
  const KernelHandle add_rows = make_kernel(
      "add_rows",
      [](CallContext& c) -> Result<void> {
        const auto in = c.elements<const float>(0);
        const auto out = c.elements<float>(1);
        for (int64_t y = out.min(1); y <= out.max(1); ++y)
          for (int64_t x = out.min(0); x <= out.max(0); ++x) out(x, y) = in(x, y) + in(x, y + 1);
        return {};
      },
      true);
  const Expr x = var("x"), y = var("y");
  Pipeline p("sums");
  BufferRef in = p.buffer("in", kF32, 2), mid = p.buffer("mid", kF32, 2), out = p.buffer("out", kF32, 2);
  p.stage("first", add_rows).reads(in, {x, {y, y + 1}}).writes(mid, {x, y});
  p.stage("second", add_rows).reads(mid, {x, {y, y + 1}}).writes(out, {x, y});
  Array<float> source({32, 34}), result({32, 32});
  source.fill([](const Index& i) { return i[0] + i[1]; });
  const Arguments arguments{{{"in", source.argument()}, {"out", result.argument()}}, {}};
  auto program =
      AdaptiveProgram::bind(p, {in}, {out}, arguments, CostModel::host(), {.most_candidates = 1000, .most_times = 1e9});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const std::vector<std::byte*> buffers{arguments.buffers.at("in").data, arguments.buffers.at("out").data};
  const auto before = tenon::test::allocations.load();
  bool ok = true;
  for (int i = 0; i < 20000; ++i) ok = program->run(buffers).ok() && ok;
  EXPECT_EQ(tenon::test::allocations.load() - before, 0);
  EXPECT_TRUE(ok);
  EXPECT_EQ(result.at({3, 5}), 4 * 3 + 5 + 6 + 6 + 7);
  EXPECT_EQ(program->to_string().find("not tried"), std::string::npos) << program->to_string();
}

TEST_F(Adaptive, BadArgumentsAreErrors) {
  Arguments less = arguments();
  less.buffers.erase("source");
  const auto made = AdaptiveProgram::bind(p_, {in_}, {out_}, less, model_, options_);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().to_string().find("'source' is not given"), std::string::npos) << made.error().to_string();
  EXPECT_NE(made.error().to_string().find("'sums'"), std::string::npos) << made.error().to_string();
  AdaptiveProgram program = bound();
  const Result<void> ran = program.run(less);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().to_string().find("'source' is not given"), std::string::npos) << ran.error().to_string();
  EXPECT_FALSE(program.run(std::vector<std::byte*>(1)).ok()) << "one buffer of two";
}

}  // namespace
}  // namespace tenon::program
