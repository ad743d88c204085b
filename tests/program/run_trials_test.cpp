// Runs that take one of several ways, whichever is the fastest, and that follow prefetch hints or ignore them.
#include <tenon/program/exec/run_trials_internal.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using detail::RunTrials;

// Decisions -------------------------------------------------------------------------------------------------------

// Runs of stated times on a clock of its own.
class Runs {
 public:
  std::vector<double> seconds;  // by way
  double settling = 0;          // seconds added to a run of another way than the last one

  explicit Runs(std::vector<double> seconds, const RunTrials::Blocks& blocks = {})
      : seconds(std::move(seconds)), trials_(this->seconds.size(), blocks, [this] { return now_; }) {}
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  size_t run() {
    const size_t way = trials_.begin_run();
    now_ += seconds[way] + (way == last_ ? 0 : settling);
    last_ = way;
    ++times_[way];
    trials_.end_run();
    return way;
  }
  // The ways in order, as digits.
  std::string run(int times) {
    std::string ways;
    for (int i = 0; i < times; ++i) ways += static_cast<char>('0' + run());
    return ways;
  }
  void wait(double seconds) { now_ += seconds; }
  size_t chosen() const { return trials_.chosen(); }
  double relative_time(size_t way) const { return trials_.relative_time(way); }
  void drop(size_t way) { trials_.drop(way); }
  int times(size_t way) { return times_[way]; }
  // The part by which the runs so far took longer than those of the chosen way would have.
  double lost() {
    double all = 0, runs = 0;
    for (const auto& [way, times] : times_) all += times * seconds[way], runs += times;
    return all / (runs * seconds[chosen()]) - 1;
  }
  void forget() { times_.clear(); }

 private:
  double now_ = 0;
  RunTrials trials_;
  size_t last_ = 0;
  std::map<size_t, int> times_;
};

constexpr int kTrial = 6;
constexpr int kFirstRuns = static_cast<int>(RunTrials::kFirstRuns);
constexpr int kFirstTrial = kFirstRuns + kTrial;
constexpr int kFewest = static_cast<int>(RunTrials::kFewestRuns), kMost = static_cast<int>(RunTrials::kMostRuns);

TEST(RunTrials, FirstRunsTakeTheFirstWayAndATrialBothInTurn) { EXPECT_EQ(Runs({1, 1}).run(kFirstTrial), "00010101"); }

TEST(RunTrials, TheFasterWayIsTaken) {
  Runs runs({1e-3, 0.9e-3});
  runs.run(kFirstTrial);
  EXPECT_EQ(runs.chosen(), 1u);
  EXPECT_EQ(runs.run(), 1u);
  Runs other({1e-3, 1.1e-3});
  other.run(kFirstTrial);
  EXPECT_EQ(other.chosen(), 0u);
}

TEST(RunTrials, ADifferenceOfAPartInAHundredDecidesNothing) {
  for (const double factor : {0.99, 1.01}) {
    Runs runs({1e-3, factor * 1e-3});
    runs.run(kFirstTrial);
    EXPECT_EQ(runs.chosen(), 0u);
    runs.seconds[1] = 0.9e-3;
    runs.run(kFewest + kTrial);
    EXPECT_EQ(runs.chosen(), 1u);
    runs.seconds[1] = factor * 1e-3;
    runs.run(kMost + kTrial);
    EXPECT_EQ(runs.chosen(), 1u);
  }
}

// One run in three that was not disturbed is enough.
TEST(RunTrials, DisturbedRunsDoNotCount) {
  Runs runs({1e-3, 0.9e-3});
  runs.run(kFirstRuns);
  for (int i = 0; i < kTrial; ++i) {
    const bool disturbed = i < kTrial - 2;
    runs.seconds[0] = disturbed && i > 1 ? 5e-3 : 1e-3;
    runs.seconds[1] = disturbed ? 9e-3 : 0.9e-3;
    runs.run();
  }
  EXPECT_EQ(runs.chosen(), 1u);
}

// Whatever the difference, the slower runs of trials cost little: less where runs are so short that no second passes.
TEST(RunTrials, TrialsCostLittle) {
  for (const double seconds : {1e-6, 0.1})
    for (const double factor : {1.03, 1.1, 1.5, 2.5}) {
      Runs runs({seconds, factor * seconds});
      runs.run(kFirstTrial);
      runs.forget();
      runs.run(20 * kMost);
      EXPECT_LT(runs.lost(), seconds < 1e-3 ? RunTrials::Blocks{}.most_loss : RunTrials::kMostLossLate) << factor;
      EXPECT_GT(runs.times(1), 0) << factor;
    }
}

// What others leave of the caches changes: the next trial notices it, and after a second there is one soon.
TEST(RunTrials, AChangeIsNoticed) {
  Runs runs({1e-3, 0.7e-3});
  runs.run(kFirstTrial);
  ASSERT_EQ(runs.chosen(), 1u);
  runs.seconds[1] = 1.4e-3;
  runs.run(kFewest);
  EXPECT_EQ(runs.chosen(), 1u);  // no trial yet: the last one found much to lose
  runs.wait(RunTrials::kMostSeconds);
  runs.run(3 * kFewest + kTrial);
  EXPECT_EQ(runs.chosen(), 0u);
  runs.seconds[1] = 0.7e-3;
  runs.run(kMost + kTrial);
  EXPECT_EQ(runs.chosen(), 1u);
}

// A run that fails has no time: the next one takes its place in the trial.
TEST(RunTrials, AFailedRunIsRepeated) {
  RunTrials trials(2, {}, [] { return 0.0; });
  for (int i = 0; i < kFirstRuns; ++i) trials.begin_run(), trials.end_run();
  EXPECT_EQ(trials.begin_run(), 0u);
  EXPECT_EQ(trials.begin_run(), 0u);
  trials.end_run();
  EXPECT_EQ(trials.begin_run(), 1u);
}

// Several ways, in blocks ------------------------------------------------------------------------------------------

constexpr RunTrials::Blocks kBlocks{.of_each = 2, .settling_runs = 1, .timed_runs = 3, .hopeless = 1.15};
constexpr int kPair = 8, kBlocksTrial = 2 * kPair;

TEST(RunTrials, BlocksAlternate) {
  EXPECT_EQ(Runs({1, 1}, kBlocks).run(kFirstRuns + kBlocksTrial), "000000111100001111");
}

TEST(RunTrials, SettlingRunsAreNotTimed) {
  Runs runs({1e-3, 0.9e-3}, kBlocks);
  runs.settling = 1e-3;
  runs.run(kFirstRuns + kBlocksTrial);
  EXPECT_EQ(runs.chosen(), 1u);
  EXPECT_NEAR(runs.relative_time(0), 1 / 0.9, 1e-9);
  EXPECT_DOUBLE_EQ(runs.relative_time(1), 1);
}

TEST(RunTrials, ATrialEndsEarlyWhereItIsHopeless) {
  for (const double factor : {1.14, 1.16}) {
    Runs runs({1e-3, factor * 1e-3}, kBlocks);
    runs.run(kFirstRuns + kBlocksTrial);
    EXPECT_EQ(runs.times(1), factor < 1.15 ? 8 : 4);
    EXPECT_EQ(runs.chosen(), 0u);
    EXPECT_NEAR(runs.relative_time(1), factor, 1e-9);
  }
}

TEST(RunTrials, EachWayIsTriedOnceInOrder) {
  Runs runs({1e-3, 1.1e-3, 1.2e-3, 1.05e-3}, kBlocks);
  EXPECT_EQ(runs.relative_time(0), 1);
  std::string others;
  while (runs.relative_time(3) == 0) {
    const size_t way = runs.run();
    if (way != 0 && (others.empty() || others.back() != static_cast<char>('0' + way)))
      others += static_cast<char>('0' + way);
    ASSERT_LE(runs.relative_time(1), 1.2);
  }
  EXPECT_EQ(others, "123");
}

// Whichever it is, and however the times of the others compare; times are relative to the chosen one's.
TEST(RunTrials, TheFastestOfSeveralIsFound) {
  for (size_t fastest = 0; fastest < 6; ++fastest) {
    Runs runs({1.3e-3, 1.2e-3, 1.05e-3, 1.1e-3, 1.6e-3, 1.2e-3}, kBlocks);
    runs.seconds[fastest] = 1e-3;
    runs.run(1000);
    EXPECT_EQ(runs.chosen(), fastest);
    for (size_t way = 0; way < 6; ++way)
      EXPECT_NEAR(runs.relative_time(way), runs.seconds[way] / runs.seconds[fastest], 1e-9) << way;
    // And later another one.
    const size_t later = (fastest + 3) % 6;
    runs.seconds[later] = 0.8e-3;
    runs.run(10 * kMost);
    EXPECT_EQ(runs.chosen(), later);
  }
}

TEST(RunTrials, NearlyAsFastWaysAreTriedMoreOftenThanOthers) {
  Runs runs({1e-3, 1.01e-3, 1.14e-3, 1.5e-3}, kBlocks);
  runs.run(2000);
  runs.forget();
  runs.run(50 * kMost);
  EXPECT_GT(2 * runs.times(1), 3 * runs.times(3));
  EXPECT_GT(2 * runs.times(2), 3 * runs.times(3));
  EXPECT_GT(runs.times(3), 0);
}

TEST(RunTrials, SeveralWaysCostLittleMoreThanOne) {
  for (const double seconds : {1e-6, 0.1})
    for (const double most : {1.05, 1.2, 2.0}) {
      std::vector<double> times;
      for (int i = 0; i < 24; ++i) times.push_back(seconds * (1 + (most - 1) * i / 23));
      Runs runs(times, kBlocks);
      int first = 0;
      for (; runs.relative_time(23) == 0; ++first) runs.run();
      runs.run(static_cast<int>(4 * (most - 1) / RunTrials::kMostLossOfFirst));  // for the last trial
      EXPECT_LT(runs.lost(), RunTrials::kMostLossOfFirst) << most;
      EXPECT_LT(first, 4000) << most;
      runs.forget();
      runs.run(20 * kMost);
      EXPECT_LT(runs.lost(), seconds < 1e-3 ? RunTrials::Blocks{}.most_loss : RunTrials::kMostLossLate) << most;
    }
}

// What disturbs a whole trial does not decide; what is faster in three in a row is chosen.
TEST(RunTrials, WinsAreConfirmed) {
  RunTrials::Blocks confirmed = kBlocks;
  confirmed.confirmations = 2;
  for (const int faster : {1, 2, 3}) {  // trials in which way 1 is faster
    Runs runs({1.2e-3, 1e-3}, confirmed);
    EXPECT_EQ(runs.run(kFirstRuns + kBlocksTrial), "000000111100001111");
    for (int i = 1; i < 3; ++i) {
      EXPECT_EQ(runs.chosen(), 0u);
      if (i == faster) runs.seconds = {1e-3, 1.1e-3};
      if (i <= faster) {
        EXPECT_EQ(runs.run(kBlocksTrial), "0000111100001111") << i;
      }
    }
    EXPECT_EQ(runs.chosen(), faster < 3 ? 0u : 1u);
    EXPECT_EQ(runs.run(kFewest), std::string(kFewest, faster < 3 ? '0' : '1'));
  }
}

TEST(RunTrials, AWayThatIsDroppedWhileItsWinIsConfirmedIsNotTried) {
  RunTrials::Blocks confirmed = kBlocks;
  confirmed.confirmations = 2;
  for (const int into : {0, 5}) {  // the second trial
    Runs runs({1.2e-3, 1e-3, 1.1e-3}, confirmed);
    runs.run(kFirstRuns + kBlocksTrial + into);
    runs.drop(1);
    runs.forget();
    runs.run(4 * kMost);
    EXPECT_EQ(runs.times(1), 0);
    EXPECT_EQ(runs.chosen(), 2u);
  }
}

// Reading the clock takes a twentieth of such a run, so there are fewer trials than of longer runs.
TEST(RunTrials, TimingCounts) {
  std::map<double, int> trials;
  for (const double seconds : {1e-6, 1e-3}) {
    Runs runs({seconds, seconds}, kBlocks);
    runs.run(20 * kMost);
    trials[seconds] = runs.times(1) / 8;
    const double timed = 12.0 * trials[seconds] * RunTrials::kSecondsToTime;
    EXPECT_LT(timed, RunTrials::Blocks{}.most_loss * 20 * kMost * seconds);
  }
  EXPECT_LT(4 * trials[1e-6], trials[1e-3]);
}

// By a coarse clock a run may take no time.
TEST(RunTrials, NoTimeAtAllDecidesNothingForEver) {
  Runs runs({0, 0, 1e-3}, kBlocks);
  runs.run(1000);
  EXPECT_EQ(runs.chosen(), 0u);
  runs.seconds = {1e-3, 0.5e-3, 0};
  runs.run(4 * kMost);
  EXPECT_EQ(runs.chosen(), 2u);
  runs.seconds = {1e-3, 0.5e-3, 2e-3};
  runs.run(4 * kMost);
  EXPECT_EQ(runs.chosen(), 1u);
}

TEST(RunTrials, ADroppedWayIsNotTriedAnyMore) {
  for (const int before : {0, kFirstRuns + 5, kFirstRuns + kBlocksTrial}) {  // outside of a trial, in its, after it
    Runs runs({1e-3, 1.01e-3, 1.02e-3}, kBlocks);
    runs.run(before);
    runs.drop(1);
    runs.forget();
    runs.run(10 * kMost);
    EXPECT_EQ(runs.times(1), 0) << before;
    EXPECT_GT(runs.times(2), 0) << before;
    runs.drop(2);
    runs.forget();
    runs.run(10 * kMost);
    EXPECT_EQ(runs.times(0), 10 * kMost) << before;
  }
  EXPECT_EQ(Runs({1}, kBlocks).run(50), std::string(50, '0'));
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
