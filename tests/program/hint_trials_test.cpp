// Runs that follow prefetch hints or ignore them, whichever is faster.
#include <tenon/program/exec/hint_trials_internal.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using detail::HintTrials;

// Decisions -------------------------------------------------------------------------------------------------------

// Runs of stated times on a clock of its own.
class Runs {
 public:
  double with_hints = 1e-3, without = 1e-3;  // seconds

  bool run() {
    const bool hints = trials_.begin_run();
    now_ += hints ? with_hints : without;
    ++times_[hints];
    trials_.end_run();
    return hints;
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) run();
  }
  void wait(double seconds) { now_ += seconds; }
  bool follows() const { return trials_.follows(); }
  int times(bool hints) { return times_[hints]; }
  void forget() { times_.clear(); }

 private:
  double now_ = 0;
  HintTrials trials_{[this] { return now_; }};
  std::map<bool, int> times_;
};

constexpr int kTrial = 2 * HintTrials::kRunsOfEach;
constexpr int kFirstTrial = static_cast<int>(HintTrials::kFirstRuns) + kTrial;
constexpr int kFewest = static_cast<int>(HintTrials::kFewestRuns), kMost = static_cast<int>(HintTrials::kMostRuns);

TEST(HintTrials, FirstRunsFollowHintsAndATrialTakesBothWaysInTurn) {
  Runs runs;
  std::string ways;
  for (int i = 0; i < kFirstTrial; ++i) ways += runs.run() ? '+' : '-';
  EXPECT_EQ(ways, "+++-+-+-");
}

TEST(HintTrials, TheFasterWayIsTaken) {
  Runs runs;
  runs.without = 0.9e-3;
  runs.run(kFirstTrial);
  EXPECT_FALSE(runs.follows());
  EXPECT_FALSE(runs.run());
  Runs other;
  other.without = 1.1e-3;
  other.run(kFirstTrial);
  EXPECT_TRUE(other.follows());
}

TEST(HintTrials, ADifferenceOfAPartInAHundredDecidesNothing) {
  for (const double factor : {0.99, 1.01}) {
    Runs runs;
    runs.without = factor * runs.with_hints;
    runs.run(kFirstTrial);
    EXPECT_TRUE(runs.follows());
    runs.without = 0.9 * runs.with_hints;
    runs.run(kFewest + kTrial);
    EXPECT_FALSE(runs.follows());
    runs.without = factor * runs.with_hints;
    runs.run(kMost + kTrial);
    EXPECT_FALSE(runs.follows());
  }
}

// One run in three that was not disturbed is enough.
TEST(HintTrials, DisturbedRunsDoNotCount) {
  Runs runs;
  runs.without = 0.9e-3;
  runs.run(static_cast<int>(HintTrials::kFirstRuns));
  for (int i = 0; i < kTrial; ++i) {
    const bool disturbed = i < kTrial - 2;
    runs.with_hints = disturbed && i > 1 ? 5e-3 : 1e-3;
    runs.without = disturbed ? 9e-3 : 0.9e-3;
    runs.run();
  }
  EXPECT_FALSE(runs.follows());
}

// Whatever the difference, the slower runs of trials cost little: less where runs are so short that no second passes.
TEST(HintTrials, TrialsCostLittle) {
  for (const double seconds : {1e-6, 0.1})
    for (const double factor : {1.03, 1.1, 1.5, 2.5}) {
      Runs runs;
      runs.with_hints = seconds;
      runs.without = factor * seconds;
      runs.run(kFirstTrial);
      runs.forget();
      runs.run(20 * kMost);
      const double lost = runs.times(false) * (factor - 1) / (runs.times(true) + runs.times(false));
      EXPECT_LT(lost, seconds < 1e-3 ? HintTrials::kMostLoss : HintTrials::kMostLossLate) << factor;
      EXPECT_GT(runs.times(false), 0) << factor;
    }
}

// What others leave of the caches changes: the next trial notices it, and after a second there is one soon.
TEST(HintTrials, AChangeIsNoticed) {
  Runs runs;
  runs.without = 0.7e-3;
  runs.run(kFirstTrial);
  ASSERT_FALSE(runs.follows());
  runs.without = 1.4e-3;
  runs.run(kFewest);
  EXPECT_FALSE(runs.follows());  // no trial yet: the last one found much to lose
  runs.wait(HintTrials::kMostSeconds);
  runs.run(3 * kFewest + kTrial);
  EXPECT_TRUE(runs.follows());
  runs.without = 0.7e-3;
  runs.run(kMost + kTrial);
  EXPECT_FALSE(runs.follows());
}

// A run that fails has no time: the next one takes its place in the trial.
TEST(HintTrials, AFailedRunIsRepeated) {
  HintTrials trials([] { return 0.0; });
  for (int i = 0; i < HintTrials::kFirstRuns; ++i) trials.begin_run(), trials.end_run();
  EXPECT_TRUE(trials.begin_run());
  EXPECT_TRUE(trials.begin_run());
  trials.end_run();
  EXPECT_FALSE(trials.begin_run());
}

// Bound programs --------------------------------------------------------------------------------------------------

// Each iteration of the inner loop prefetches 2,000 rows and computes one element.
const char* const kCostlyHints = R"(program @costly() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  for y in [0, 40) {
    prefetch in %in[0 +: 16, 0 +: 2000]
    call add1(in %in[0 +: 1, y +: 1], out %out[0 +: 1, y +: 1])
  }
}
)";

BoundProgram bound_to(const Program& program, Data& data, HintPolicy hints) {
  EXPECT_TRUE(verify(program).ok());
  auto bound = BoundProgram::bind(program, data.arguments(), {.hints = hints});
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  return *std::move(bound);
}

TEST(HintsOfBoundPrograms, AreIgnoredWhereTheyCostMoreThanTheySave) {
  Data data;
  data.add("in", {16, 2000});
  data.add("out", {1, 40});
  BoundProgram bound = bound_to(parsed(kCostlyHints), data, HintPolicy::tried);
  BoundProgram always = bound_to(parsed(kCostlyHints), data, HintPolicy::always);
  EXPECT_TRUE(bound.follows_hints());
  for (int i = 0; i < 2 * (kMost + kTrial) && bound.follows_hints(); ++i) {
    ASSERT_TRUE(bound.run(data.arguments()).ok());
    ASSERT_TRUE(always.run(data.arguments()).ok());
  }
  EXPECT_FALSE(bound.follows_hints());
  EXPECT_TRUE(always.follows_hints());
}

// Observed runs take longer than others, whether they follow hints or not: nothing is decided by them.
TEST(HintsOfBoundPrograms, AreNotTriedByObservedRuns) {
  struct Observer : StageObserver {
    void ran(std::string_view, double, bool) override { ++calls; }
    int calls = 0;
  } observer;
  Data data;
  data.add("in", {16, 2000});
  data.add("out", {1, 40});
  BoundProgram bound = bound_to(parsed(kCostlyHints), data, HintPolicy::tried);
  const std::vector<std::byte*> buffers{data.view("in").base, data.view("out").base};
  for (int i = 0; i < 4 * kFewest; ++i) ASSERT_TRUE(bound.run(buffers, {.observer = &observer}).ok());
  EXPECT_TRUE(bound.follows_hints());
  EXPECT_EQ(observer.calls, 4 * kFewest * 40);
}

TEST(HintsOfBoundPrograms, AreNoneWithoutPrefetchStatements) {
  Data data;
  data.add("in", {32, 40});
  data.add("out", {32, 40});
  const Program program = parsed(R"(program @plain() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    call add1(in %in[0 +: 32, 0 +: 40], out %out[0 +: 32, 0 +: 40])
  })");
  EXPECT_FALSE(bound_to(program, data, HintPolicy::tried).follows_hints());
  EXPECT_FALSE(bound_to(program, data, HintPolicy::always).follows_hints());
}

// Loops whose hints are addresses that are incremented, whose hints are at places known before the run, or that are
// determined in it; a loop of two workers; and a loop of hints alone.
TEST(HintsOfBoundPrograms, ChangeNoResultWhetherFollowedOrNot) {
  ThreadPool pool(2);
  for (const char* body : {
           "for y in [0, 40) { prefetch in %in[0 +: 32, y + 1 +: 1] "
           "call add1(in %in[0 +: 32, y +: 1], out %out[0 +: 32, y +: 1]) }",
           "for y in [0, 40) { prefetch out %out[0 +: 32, 3 +: 1] "
           "call add1(in %in[0 +: 32, y +: 1], out %out[0 +: 32, y +: 1]) prefetch in %in[0 +: 32, y + 2 +: 1] "
           "call add1(inout %out[0 +: 32, y +: 1], out %out[0 +: 32, y +: 1]) }",
           "for y in [0, 40) { for x in [0, 32) { prefetch in %in[x * y +: 16, 0 +: 1] "
           "call add1(in %in[x +: 1, y +: 1], out %out[x +: 1, y +: 1]) } }",
           "for y in [0, 40) parallel 2 { prefetch in %in[0 +: 32, y + 1 +: 1] "
           "call add1(in %in[0 +: 32, y +: 1], out %out[0 +: 32, y +: 1]) }",
           "call add1(in %in[0 +: 32, 0 +: 40], out %out[0 +: 32, 0 +: 40]) "
           "for y in [0, 40) { prefetch in %in[0 +: 32, y +: 1] }",
       }) {
    const Program program = parsed(str("program @p() { input %in : i32 rank 2 output %out : i32 rank 2 ", body, " }"));
    Data reference;
    reference.add("in", {32, 40});
    reference.add("out", {32, 40});
    ASSERT_TRUE(interpret(program, reference.arguments()).ok()) << body;
    Data data;
    data.add("in", {32, 40});
    data.add("out", {32, 40});
    auto bound = BoundProgram::bind(program, data.arguments(), {.pool = &pool, .threads = 2});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    for (int i = 0; i < kFirstTrial + 1; ++i) {
      std::ranges::fill(data["out"], 0);
      ASSERT_TRUE(bound->run(data.arguments()).ok());
      EXPECT_EQ(data["out"], reference["out"]) << body << ", run " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::program
