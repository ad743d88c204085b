#include <tenon/program/schedule/measured_schedule.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include <program/timed_sums.hpp>
#include <tenon/program/schedule/timing_internal.hpp>

namespace tenon::program {
namespace {

namespace fs = std::filesystem;

// The first runs pay for what others left in the caches; a program whose runs get faster for ever is not waited for.
TEST(SettledSeconds, RunsUntilItGetsNoFaster) {
  const auto after = [](std::vector<double> seconds) {
    size_t runs = 0;
    const double settled = detail::settled_seconds([&]() -> Result<double> { return seconds.at(runs++); }).value();
    return std::pair(settled, runs);
  };
  EXPECT_EQ(after({2, 2, 2, 2, 1}), std::pair(2.0, size_t{4}));
  EXPECT_EQ(after({2, 1.99, 1.985, 2, 1}), std::pair(1.985, size_t{4})) << "as fast as before";
  EXPECT_EQ(after({1, 2, 2, 2, .5}), std::pair(1.0, size_t{4}));
  EXPECT_EQ(after({9, 5, 6, 7, 4, 4, 4, 4, 1}), std::pair(4.0, size_t{8})) << "a slower run is not the end";
  EXPECT_EQ(after({13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}), std::pair(2.0, size_t{12}));
  int runs = 0;
  EXPECT_FALSE(detail::settled_seconds([&]() -> Result<double> {
                 if (++runs == 2) return error(Code::unsupported, "no more");
                 return 1.0;
               }).ok());
}

// The first one takes .95 of the time of the second, except for a disturbed run. In three rounds out of five, others
// used the machine, increasingly: by medians of times, 3.8 and 3, it would be the slower one.
TEST(PartsOfRounds, RoundsThatWereSlowForAllAreComparedByThemselves) {
  const std::vector<double> parts = detail::parts_of_rounds({{.95, 1.9, 4.5, 3.8, 4.75}, {1, 2, 3, 4, 5}});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_DOUBLE_EQ(parts[0], .95 / 1.95);
  EXPECT_DOUBLE_EQ(parts[1], 1 / 1.95);
  EXPECT_EQ(detail::parts_of_rounds({{0}, {0}}), std::vector<double>(2)) << "no time at all by a coarse clock";
}

class MeasuredSchedule : public TimedSums {
 protected:
  MeasuredSchedule() { offer_all(options_); }

  Result<MeasuredReport> schedule() { return schedule(arguments()); }
  Result<MeasuredReport> schedule(const Arguments& arguments) {
    return measured_schedule(p_, {in_}, {out_}, arguments, model_, options_);
  }
  std::string text() const { return print(p_.build({in_}, {out_}).value()); }
  std::string automatic_text() {
    const SymbolValues sizes{
        {"result.min0", 0}, {"result.extent0", kWidth}, {"result.min1", 0}, {"result.extent1", kRows}};
    EXPECT_TRUE(auto_schedule(p_, {in_}, {out_}, sizes, model_).ok());
    return text();
  }

  static bool has_step(const MeasuredReport& report, int64_t rows) {
    return TimedSums::has_step(report.candidates[report.chosen].groups, rows);
  }

  MeasureOptions options_;
};

TEST_F(MeasuredSchedule, IsWhatTakesLeastByTheClock) {
  for (const int64_t wanted : {1, 2, 4, 8, 16}) {
    seconds_ = [=](int64_t rows) { return static_cast<double>(rows == wanted ? rows : 2 * rows + 1); };
    const auto report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_TRUE(has_step(*report, wanted)) << wanted << "\n" << report->to_string();
    EXPECT_NE(text().find(str("step ", wanted)) != std::string::npos, wanted == 1) << text();
  }
}

// Fewer calls are better, and the gain per call grows as they become fewer: the whole array at once.
TEST_F(MeasuredSchedule, MayBeNoLoopAtAll) {
  const auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(text().find("for "), std::string::npos) << report->to_string();
}

TEST_F(MeasuredSchedule, IsTheAutomaticOneWhereAllTakeTheSame) {
  seconds_ = [](int64_t) { return 0.0; };
  for (options_.rounds = 0; options_.rounds < 8; ++options_.rounds) {  // another order each time
    const auto report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->chosen, 0u) << options_.rounds << " rounds\n" << report->to_string();
    const std::string by_clock = text();
    EXPECT_EQ(by_clock, automatic_text());
  }
}

TEST_F(MeasuredSchedule, OfNearlyEqualOnesTheOnePredictedToBeCheapestIsChosen) {
  for (const auto& [rows_of_other, factor, chosen] : {std::tuple{4, 0.98, false}, {4, 0.9, true}}) {
    seconds_ = [=](int64_t rows) { return static_cast<double>(rows) * (rows == rows_of_other ? factor : 1); };
    const auto report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->chosen == 0, !chosen) << report->to_string();
    EXPECT_EQ(has_step(*report, rows_of_other), chosen) << report->to_string();
  }
}

// Fetched strips take as long as plain ones, which are predicted to be cheaper: later runs may find otherwise.
TEST_F(MeasuredSchedule, HasHintsForRunsToTryWherePlainStripsAreChosen) {
  model_.memories = {{"near", 8 << 10, 100e9, 1e-9}, {"far", 0, 10e9, 80e-9}};
  model_.fetched_part = 1e-9;
  seconds_ = [](int64_t rows) { return static_cast<double>(rows == 4 ? rows : 2 * rows + 1); };
  const auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  ASSERT_TRUE(has_step(*report, 4)) << report->to_string();
  EXPECT_EQ(report->candidates[report->chosen].groups[0].find("fetched"), std::string::npos) << report->to_string();
  EXPECT_NE(text().find("prefetch "), std::string::npos) << text();
}

TEST_F(MeasuredSchedule, CandidatesAreOthersAndTheCheapestPredictedFirst) {
  options_.most_times = 3;
  const auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  const auto& all = report->candidates;
  ASSERT_GT(all.size(), 5u) << report->to_string();
  std::set<std::vector<std::string>> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(groups.insert(all[i].groups).second) << "twice: " << report->to_string();
    EXPECT_LE(all[i].predicted_seconds, 3 * all[0].predicted_seconds);
    EXPECT_GE(all[i].predicted_seconds, all[i > 1 ? i - 1 : 0].predicted_seconds);
    EXPECT_GT(all[i].runs, 0);
  }
  // Fewer of them are the cheapest of each kind, so that no kind is missing as long as another has two.
  const auto kind = [](const MeasuredReport::Candidate& c) {
    const auto has = [&](const char* what) { return c.groups[0].find(what) != std::string::npos; };
    return std::tuple(has(" over y"), has(" over x"), has("fetched"), has("non-temporal"));
  };
  std::map<std::tuple<bool, bool, bool, bool>, double> cheapest;
  for (const auto& c : all) cheapest.try_emplace(kind(c), c.predicted_seconds);
  ASSERT_GT(cheapest.size(), 1u) << report->to_string();
  options_.most_candidates = cheapest.size() + 1;  // the first one may be any
  const auto fewer = schedule();
  ASSERT_TRUE(fewer.ok());
  ASSERT_EQ(fewer->candidates.size(), cheapest.size() + 1);
  EXPECT_EQ(fewer->candidates[0].groups, all[0].groups);
  for (const auto& [any, seconds] : cheapest)
    EXPECT_TRUE(std::ranges::count(fewer->candidates, seconds, &MeasuredReport::Candidate::predicted_seconds))
        << seconds << " in\n" << fewer->to_string();
  for (size_t i = 2; i < fewer->candidates.size(); ++i)
    EXPECT_GE(fewer->candidates[i].predicted_seconds, fewer->candidates[i - 1].predicted_seconds);
}

// According to the model, workers pay if calling them costs nothing, and never if it takes a second.
TEST_F(MeasuredSchedule, OfWorkersHasTheSerialOneBeside) {
  model_.workers = 3;
  const auto is_shared = [](const MeasuredReport::Candidate& candidate) {
    return std::ranges::any_of(candidate.groups, [](const auto& group) { return group.find("bands") != group.npos; });
  };
  for (const double to_share : {0.0, 1.0}) {
    model_.seconds_to_share = to_share;
    for (const size_t most : {1u, 2u, 5u, 1000u}) {
      options_.most_candidates = most;
      const auto report = schedule();
      ASSERT_TRUE(report.ok()) << report.error().to_string();
      const auto& all = report->candidates;
      EXPECT_LE(all.size(), most);
      EXPECT_EQ(is_shared(all[0]), to_share == 0) << report->to_string();
      if (most > 1) {
        EXPECT_EQ(std::ranges::count_if(all, is_shared), static_cast<int64_t>(all.size()) - 1) << report->to_string();
      }
      for (size_t i = 2; i < all.size(); ++i) EXPECT_GE(all[i].predicted_seconds, all[i - 1].predicted_seconds);
    }
  }
  options_.most_candidates = 1;
  ASSERT_TRUE(schedule().ok());
  const std::string by_clock = text();
  EXPECT_EQ(by_clock, automatic_text());
}

TEST_F(MeasuredSchedule, OneCandidateIsTheAutomaticOneAndNotTimed) {
  for (const size_t most : {0u, 1u}) {
    options_.most_candidates = most;
    const auto report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    ASSERT_EQ(report->candidates.size(), 1u);
    EXPECT_EQ(report->candidates[0].runs, 0);
    const std::string by_clock = text();
    EXPECT_EQ(by_clock, automatic_text());
  }
}

// Candidates that fall behind are no longer run; the others as often as specified.
TEST_F(MeasuredSchedule, RunsAreBounded) {
  seconds_ = [](int64_t rows) { return rows == 4 ? 4.0 : 4.0 * static_cast<double>(rows); };
  options_.rounds = 7;
  auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  const auto most = [&] {
    int runs = 0;
    for (const auto& c : report->candidates) runs = std::max(runs, c.runs);
    return runs;
  };
  EXPECT_EQ(report->candidates[report->chosen].runs, most());
  EXPECT_LE(most(), 7);
  EXPECT_TRUE(std::ranges::any_of(report->candidates, [](const auto& c) { return c.runs == 2; }))
      << report->to_string();
  seconds_ = [](int64_t) { return 0.0; };  // none falls behind
  options_.seconds = 0;
  for (const int fewest : {0, 1, 3, 9}) {
    options_.fewest_rounds = fewest;
    report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(most(), std::clamp(fewest, 1, options_.rounds)) << "a round is always run";
  }
}

TEST_F(MeasuredSchedule, ARunThatWasDisturbedDoesNotCount) {
  int call = 0;
  // Each fifth run of the best one takes ten times as long, the first one does not.
  seconds_ = [&](int64_t rows) {
    return rows == 8 ? 8.0 * (++call % 90 == 0 ? 10 : 1) : 16.0 * static_cast<double>(rows);
  };
  const auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_TRUE(has_step(*report, 8)) << report->to_string();
}

// Load from others lasts longer than the runs of one sample or round. A run has 18 calls.
TEST_F(MeasuredSchedule, ALookOrARoundThatWasDisturbedDropsNobody) {
  for (const int first : {0, 100}) {
    int call = 0;
    seconds_ = [&](int64_t rows) {
      const bool disturbed = rows == 8 && ++call > first && call <= first + 60;
      return rows == 8 ? 8.0 * (disturbed ? 100 : 1) : 1.15 * static_cast<double>(rows);
    };
    const auto report = schedule();
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_TRUE(has_step(*report, 8)) << "disturbed from call " << first << "\n" << report->to_string();
  }
}

TEST_F(MeasuredSchedule, LeavesResultsAsTheyAre) {
  Array<int32_t> wanted({kWidth, kRows});
  const Arguments plain{{{"source", source_.argument()}, {"result", wanted.argument()}}, {}};
  ASSERT_TRUE(interpret(p_.build({in_}, {out_}).value(), plain).ok());
  ASSERT_TRUE(schedule().ok());
  EXPECT_EQ(result_.data(), wanted.data()) << "of the runs that were timed";
  result_.fill([](const Index&) { return 0; });
  ASSERT_TRUE(interpret(p_.build({in_}, {out_}).value(), arguments()).ok());
  EXPECT_EQ(result_.data(), wanted.data());
}

TEST_F(MeasuredSchedule, MakesMemoryWhereNoneIsGiven) {
  Arguments none = arguments();
  for (auto& [name, buffer] : none.buffers) buffer.data = nullptr;
  // From its end on: the least address is not the first element's.
  DimView& rows = none.buffers.at("result").dims[1];
  rows.stride = -rows.stride;
  const auto report = schedule(none);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_GT(calls_, 0);
  EXPECT_EQ(result_.data(), Array<int32_t>({kWidth, kRows}).data());
}

TEST_F(MeasuredSchedule, WhatKernelsDoNotTakeIsNoCandidate) {
  seconds_ = [](int64_t) { return 0.0; };
  takes_ = [](int64_t rows) { return rows > 8; };
  const auto report = schedule();
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_NE(report->to_string().find("refused: a call for"), std::string::npos) << report->to_string();
  EXPECT_TRUE(report->candidates[report->chosen].refused.empty());
  EXPECT_TRUE(interpret(p_.build({in_}, {out_}).value(), arguments()).ok());
}

TEST_F(MeasuredSchedule, FailuresLeaveThePipelineAsItWas) {
  const std::string before = text();
  takes_ = [](int64_t) { return false; };
  auto report = schedule();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().to_string().find("a call for"), std::string::npos) << report.error().to_string();
  EXPECT_NE(report.error().to_string().find("'sums' by the clock"), std::string::npos) << report.error().to_string();
  EXPECT_EQ(text(), before);
  Arguments less = arguments();
  less.buffers.erase("source");
  report = schedule(less);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().to_string().find("'source' is not given"), std::string::npos) << report.error().to_string();
  EXPECT_EQ(text(), before);
}

class KeptSchedule : public MeasuredSchedule {
 protected:
  void SetUp() override {
    std::string text = (fs::temp_directory_path() / "tenon-schedules-XXXXXX").string();
    ASSERT_NE(mkdtemp(text.data()), nullptr) << text << ": " << std::strerror(errno);
    folder_ = text;
    files_.emplace(folder_, FileCache::Options{.folder = "schedules", .suffix = ".schedule"});
    options_.files = &*files_;
    seconds_ = [](int64_t rows) { return rows == 4 ? 4.0 : 9.0 * static_cast<double>(rows); };
  }
  ~KeptSchedule() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  fs::path file() const { return fs::directory_iterator(folder_ + "/schedules")->path(); }
  // Whether it ran the pipeline.
  bool measures() {
    const int before = calls_;
    const auto report = schedule();
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->from_files, calls_ == before);
    EXPECT_TRUE(has_step(*report, 4)) << report->to_string();
    EXPECT_NE(text().find("step 4"), std::string::npos);
    return calls_ > before;
  }

  std::string folder_;
  std::optional<FileCache> files_;
};

TEST_F(KeptSchedule, IsTakenFromItsFile) {
  EXPECT_TRUE(measures());
  EXPECT_FALSE(measures());
  // Also where the clock would say something else by now.
  seconds_ = [](int64_t rows) { return rows == 2 ? 2.0 : 9.0 * static_cast<double>(rows); };
  EXPECT_FALSE(measures());
}

TEST_F(KeptSchedule, IsMeasuredAnewWithoutItsFile) {
  EXPECT_TRUE(measures());
  fs::remove(file());
  EXPECT_TRUE(measures());
  std::ofstream(file(), std::ios::app) << "x";
  EXPECT_TRUE(measures()) << "a damaged one";
  EXPECT_FALSE(measures()) << "it was stored again";
}

TEST_F(KeptSchedule, IsThatOfThePipelineItsSizesAndItsCandidates) {
  EXPECT_TRUE(measures());
  options_.most_candidates = 6;
  EXPECT_TRUE(measures()) << "of other candidates";
  EXPECT_FALSE(measures());
  Array<int32_t> source({0, -kStages}, {kWidth, kRows + 2 + 2 * kStages}), result({kWidth, kRows + 2});
  const int before = calls_;
  ASSERT_TRUE(schedule({{{"source", source.argument()}, {"result", result.argument()}}, {}}).ok());
  EXPECT_GT(calls_, before) << "of other sizes";
  Arguments strided = arguments();
  strided.buffers.at("result").data = nullptr;
  strided.buffers.at("result").dims[1].stride += 64;
  const int then = calls_;
  ASSERT_TRUE(schedule(strided).ok());
  EXPECT_GT(calls_, then) << "of other strides";
}

// Stages with the same names and windows, but other kernels.
TEST_F(KeptSchedule, IsThatOfItsKernels) {
  const auto from_files = [&](const char* kernel) {
    const KernelHandle sum = window_sum<int32_t>({0, -1}, {0, 1});
    Pipeline p("sums");
    BufferRef in = p.buffer("source", kI32, 2), out = p.buffer("result", kI32, 2);
    p.stage("stage", make_kernel(kernel, sum->run, true)).reads(in, {x, {y - 1, y + 1}}).writes(out, {x, y});
    const auto report = measured_schedule(p, {in}, {out}, arguments(), CostModel::host(), options_);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    return report->from_files;
  };
  EXPECT_FALSE(from_files("sum"));
  EXPECT_TRUE(from_files("sum"));
  EXPECT_FALSE(from_files("other"));
}

}  // namespace
}  // namespace tenon::program
