#include <tenon/program/schedule/auto_schedule.hpp>

#include <random>
#include <regex>

#include <program/schedule_chains.hpp>

namespace tenon::program {

namespace {

std::vector<int32_t> results(const Blurs& b) {
  const auto program = b.p.build({b.source}, {b.result});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> a({0, -8}, {12, 40}), o({12, 24});
  a.fill_pattern();
  const auto ran = interpret(program.value(), {{{"source", a.argument()}, {"result", o.argument()}}, {}});
  EXPECT_TRUE(ran.ok()) << ran.error().to_string();
  return o.data();
}

TEST(AutoSchedule, FusesStencilsOfLargeImagesIntoStrips) {
  Blurs b = blurs(6);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  ASSERT_EQ(report.value().groups.size(), 1u) << report.value().to_string();
  EXPECT_LT(report.value().automatic.seconds(), report.value().by_hand.seconds());
  EXPECT_NE(print(b.p.build({b.source}, {b.result}).value()).find("for y_"), std::string::npos);
}

TEST(AutoSchedule, ChangesNoResult) {
  Blurs plain = blurs(4), scheduled = blurs(4);
  ASSERT_TRUE(auto_schedule(scheduled.p, {scheduled.source}, {scheduled.result}, sizes(2048), CostModel::host()).ok());
  EXPECT_EQ(results(plain), results(scheduled));
}

TEST(AutoSchedule, IsNotPredictedToCostMoreThanAnyHandSchedule) {
  for (const int64_t step : {1, 4, 16, 64, 256}) {
    Blurs b = blurs(6);
    b.last.loops({{y, step}});
    const auto by_hand = predict_cost(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
    ASSERT_TRUE(by_hand.ok()) << by_hand.error().to_string();
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_LE(report.value().automatic.seconds(), by_hand.value().seconds() * 1.0001) << "step " << step;
    EXPECT_DOUBLE_EQ(report.value().by_hand.seconds(), by_hand.value().seconds());
  }
}

// The numbers in "... over x in steps of 2048, 16384 bytes of windows".
std::pair<int64_t, int64_t> step_and_windows(const std::string& group) {
  std::smatch found;
  if (!std::regex_search(group, found, std::regex(R"(steps of (\d+), (\d+) bytes)"))) return {0, 0};
  return {std::stoll(found[1]), std::stoll(found[2])};
}

// The result of a stage is read by the next one immediately, and not again: L1 suffices for any number of stages.
TEST(AutoSchedule, ChainsWithoutWindowsStayInTheFirstLevel) {
  for (const int stages : {2, 3, 8, 16, 40})
    for (const int64_t extent : {int64_t{1} << 16, int64_t{100'000}, int64_t{1} << 22}) {
      Blurs b = points(stages);
      const auto report = auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", extent}},
                                        CostModel::host());
      ASSERT_TRUE(report.ok()) << report.error().to_string();
      ASSERT_EQ(report.value().groups.size(), 1u) << stages << " stages of " << extent << "\n"
                                                  << report.value().to_string();
      // What is read, what is written, and what both were made of: four buffers of a step.
      const auto [step, windows] = step_and_windows(report.value().groups[0]);
      EXPECT_LE(4 * step * 4, 32 << 10) << report.value().to_string();
      EXPECT_GE(step, 256) << "calls are not free\n" << report.value().to_string();
    }
}

TEST(AutoSchedule, WindowsOfStencilsStayInTheSecondLevel) {
  for (const int stages : {3, 6, 12})
    for (const int64_t side : {512, 1000, 2048, 4096}) {
      Blurs b = blurs(stages);
      const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(side), CostModel::host());
      ASSERT_TRUE(report.ok()) << report.error().to_string();
      for (const std::string& group : report.value().groups)
        EXPECT_LE(step_and_windows(group).second, 1 << 20) << stages << " stages of " << side << "\n"
                                                           << report.value().to_string();
      EXPECT_LT(report.value().groups.size(), static_cast<size_t>(stages));
    }
}

// Manual groups of any size are not predicted to be cheaper, also for more stages than can be tried in all
// combinations.
TEST(AutoSchedule, LongChainsAreCutNoWorseThanByHand) {
  constexpr int kStages = 96;
  Blurs automatic = blurs(kStages);
  const auto report =
      auto_schedule(automatic.p, {automatic.source}, {automatic.result}, sizes(2048), CostModel::host());
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  for (const int size : {4, 8, 12, 24, 32, 48, 96})
    for (const int64_t step : {1, 4, 16, 64}) {
      Blurs b = blurs(kStages);
      for (int s = size - 1; s < kStages; s += size) {
        b.stages[static_cast<size_t>(s)].loops({{y, step}});
        if (s + 1 < kStages) b.stages[static_cast<size_t>(s)].compute_root();
      }
      const auto by_hand = predict_cost(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
      ASSERT_TRUE(by_hand.ok()) << by_hand.error().to_string();
      EXPECT_LE(report->automatic.seconds(), by_hand->seconds() * 1.01)
          << "groups of " << size << ", step " << step << "\n"
          << report->to_string();
    }
}

// A loop over rows leaves rows whole: one that is longer than L1 is divided as well.
TEST(AutoSchedule, LongRowsAreCut) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1 << 20, 1}, {1 << 19, 4}, {1 << 16, 16}}) {
    Blurs b = rows_of_points(4), plain = rows_of_points(4);
    const SymbolValues all{
        {"result.min0", 0}, {"result.extent0", width}, {"result.min1", 0}, {"result.extent1", height}};
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, all, CostModel::host());
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    ASSERT_EQ(report->groups.size(), 1u) << report->to_string();
    EXPECT_NE(report->groups[0].find("over x in steps of"), std::string::npos) << report->to_string();
    EXPECT_EQ(report->groups[0].find("y in steps of 1,") != std::string::npos, height > 1) << report->to_string();
    EXPECT_EQ(results(b), results(plain));
  }
}

// In tiles and down columns, fresh results are passed on in L1: if pieces of rows cost nothing, rows are divided; if
// they are expensive, rows are left whole.
TEST(AutoSchedule, LongRowsOfStencilsAreCutWherePiecesAreCheap) {
  for (const double per_row : {0.0, 1e-6}) {
    CostModel model = CostModel::host();
    model.seconds_per_row = per_row;
    for (CostModel::Memory& m : model.memories) m.latency_seconds = per_row;
    Blurs b = blurs(3), plain = blurs(3);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(8192), model);
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    ASSERT_EQ(report->groups.size(), 1u) << report->to_string();
    EXPECT_EQ(report->groups[0].find("x in steps of") != std::string::npos, per_row == 0) << report->to_string();
    EXPECT_EQ(results(b), results(plain));
  }
}

// If windows of whole rows exceed L2, and pieces of rows cause no waiting.
TEST(AutoSchedule, LargeWindowsGoDownColumns) {
  CostModel model = CostModel::host();
  for (CostModel::Memory& m : model.memories) m.latency_seconds = 0;
  for (const int stages : {3, 12}) {
    Blurs b = blurs(stages);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(3072), model);
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    const bool columns = std::regex_search(report->groups[0], std::regex("over y in steps of .*, x in steps of"));
    EXPECT_EQ(columns, stages == 12) << report->to_string();
  }
}

// The last stage has one of the two indices of the earlier ones: it cannot be in a loop over the other.
TEST(AutoSchedule, LoopsGoOverIndicesThatTheirStageHas) {
  for (const int64_t width : {64, 1024, 8192}) {
    Blurs b = blurs(3);
    BufferRef sums = b.p.buffer("sums", kI32, 1);
    b.p.stage("sum", window_sum<int32_t>({0, 0}, {0, 2047})).reads(b.result, {x, {0, 2047}}).writes(sums, {x});
    const auto report =
        auto_schedule(b.p, {b.source}, {sums}, {{"sums.min0", 0}, {"sums.extent0", width}}, CostModel::host());
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    const auto built = b.p.build({b.source}, {sums});
    EXPECT_TRUE(built.ok()) << built.error().to_string() << report->to_string();
    EXPECT_FALSE(std::regex_search(report->groups.back(), std::regex("over y"))) << report->to_string();
  }
}

int64_t hints_in(const Blurs& b) {
  const std::string text = print(b.p.build({b.source}, {b.result}).value());
  const std::regex hint("prefetch ");
  return std::distance(std::sregex_iterator(text.begin(), text.end(), hint), std::sregex_iterator());
}

// Source and result of points have 8 bytes per index, and L3 holds no part of them from 4 M indices on.
TEST(AutoSchedule, FarMemoryIsFetchedAheadWhereTheMachineDoesIt) {
  const auto hints = [](int64_t extent, const CostModel& model) {
    Blurs b = points(6);
    const auto report =
        auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", extent}}, model);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->to_string().find("far memory fetched") != std::string::npos, hints_in(b) > 0)
        << report->to_string();
    return hints_in(b);
  };
  EXPECT_EQ(hints(int64_t{4} << 20, model_that_fetches()), 12)
      << "a portion of the source and of the result for each stage";
  EXPECT_EQ(hints(int64_t{4} << 20, CostModel::host()), 0);
  EXPECT_EQ(hints(int64_t{1} << 20, model_that_fetches()), 0) << "it all lies in L3";
}

// Where hints are predicted to cost more than they save, runs may still try them, unless nothing can be in far memory
// or the machine does not obey hints.
TEST(AutoSchedule, HintsThatMayHelpAreThereForRunsToTry) {
  const auto hints = [](int64_t extent, double fetched_part) {
    CostModel model = model_that_fetches();
    model.fetched_part = fetched_part;
    Blurs b = points(6);
    const auto report =
        auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", extent}}, model);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->to_string().find("far memory fetched"), std::string::npos) << report->to_string();
    return hints_in(b);
  };
  EXPECT_EQ(hints(int64_t{4} << 20, 1e-9), 12);
  EXPECT_EQ(hints(int64_t{1} << 20, 1e-9), 0) << "it all lies in L3";
  EXPECT_EQ(hints(int64_t{4} << 20, 0), 0) << "hints do nothing";
}

// Readings of a Zen 4 with little load from other guests.
CostModel model_of_zen4() {
  CostModel model = CostModel::host();
  model.memories = {{"L1", 32 << 10, 232e9, 2.7e-9},
                    {"L2", 1 << 20, 115e9, 6.4e-9, 790 << 10},
                    {"L3", 24 << 20, 87.5e9, 71e-9, 3 << 20},
                    {"memory", 0, 25.7e9, 201e-9}};
  model.seconds_per_call = 5.1e-9;
  model.seconds_per_window = 0.28e-9;
  model.seconds_per_row = 0.57e-9;
  model.ahead_bytes = 7 << 10;
  model.ahead_part = 0.47;
  model.apart = 1.6;
  model.fetched_part = 0.56;
  model.non_temporal_part = 0.62;
  return model;
}
std::string only_group_of_points(int stages, int64_t width, int64_t rows) {
  Blurs b = rows_of_points(stages);
  const auto report = auto_schedule(
      b.p, {b.source}, {b.result},
      {{"result.min0", 0}, {"result.extent0", width}, {"result.min1", 0}, {"result.extent1", rows}}, model_of_zen4());
  EXPECT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(report->groups.size(), 1u);
  return report->groups[0];
}

// Of 8 MB at each end, L3 holds a part; under more load from others, strips without prefetching take up to twice as
// long as those with it.
TEST(AutoSchedule, FarMemoryIsFetchedWhereTheThirdLevelHoldsAPartOfIt) {
  const std::string group = only_group_of_points(8, 1024, 2048);
  EXPECT_NE(group.find("far memory fetched"), std::string::npos) << group;
}

// With rows of 12 KB, each part continues where the last one ended, and no two rows are divided at once.
TEST(AutoSchedule, RowsOfTwoPartsAndMoreAreCutByThemselves) {
  const std::string group = only_group_of_points(10, 3109, 1349);
  EXPECT_NE(group.find("over x in steps of 2048, y in steps of 1,"), std::string::npos) << group;
  EXPECT_NE(group.find(", y in steps of 1,"), std::string::npos) << group;
}

// Readings of an Emerald Rapids whose L3 is shared with others.
CostModel model_of_xeon() {
  CostModel model = CostModel::host();
  model.memories = {{"L1", 48 << 10, 243.05e9, 3.58e-9, 42 << 10},
                    {"L2", 2 << 20, 74.73e9, 9.34e-9, 1437 << 10},
                    {"L3", 4 << 20, 44.45e9, 75.96e-9},
                    {"memory", 0, 19.94e9, 77.36e-9}};
  model.seconds_per_call = 5.63e-9;
  model.seconds_per_window = 0;
  model.seconds_per_row = 0.04e-9;
  model.ahead_bytes = 8 << 10;
  model.ahead_part = 0.263;
  model.apart = 1.6;
  model.fetched_part = 0.5463;
  model.fetched_way = 0.91;
  model.fetched_part_nearby = 0.5357;
  model.fetched_way_nearby = 0.82;
  model.non_temporal_part = 0.0911;
  model.non_temporal_way = 0.67;
  return model;
}

// Pieces of 1 KB leave L1 to what stages pass on, while their ends are prefetched: down columns, and in tiles where
// pieces down columns wait (docs/performance/lessons/cost-model.md, Which schedules are offered).
TEST(AutoSchedule, NarrowPiecesAreOfferedWhereTheirEndsAreFetched) {
  struct Wanted {
    int stages;
    double waits;
    const char* pieces;
  };
  for (const auto& [stages, waits, pieces] : {Wanted{8, 0, "over y in steps of 2, x in steps of 256,"},
                                              Wanted{3, 200e-9, "over x in steps of 256, y in steps of 4,"}}) {
    CostModel model = model_of_xeon();
    model.seconds_per_hinted_piece = waits;
    Blurs b = blurs(stages), plain = blurs(stages);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), model);
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_NE(report->to_string().find(pieces), std::string::npos) << report->to_string();
    EXPECT_EQ(results(b), results(plain));
  }
}

// Results of 2 MB, which L3 certainly holds, are not written to main memory, however slow the readings are: that took
// 1.2 to 1.4 times as long, and the next reader of the results would wait for them
// (docs/performance/lessons/schedules.md).
TEST(AutoSchedule, ResultsThatACacheIsSureToHoldStayThere) {
  const auto past = [](int64_t rows) {
    CostModel model = model_of_xeon();
    model.non_temporal_part = 0.5;
    Blurs b = blurs(3);
    const auto report = auto_schedule(
        b.p, {b.source}, {b.result},
        {{"result.min0", 0}, {"result.extent0", 256}, {"result.min1", 0}, {"result.extent1", rows}}, model);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    return report->to_string().find("non-temporal") != std::string::npos;
  };
  EXPECT_FALSE(past(2048));
  EXPECT_TRUE(past(4096));
}

// Where that hides more, and no other stage reads them: neither in the middle, nor for results of a copy.
TEST(AutoSchedule, ResultsThatNoStageReadsGoPastTheCaches) {
  const auto past = [](double part, int64_t extent, bool copies_at_end) {
    Blurs b = points(4);
    BufferRef result = b.result;
    if (copies_at_end) {
      result = b.p.buffer("copied", kI32, 1);
      b.p.padded_copy(b.result, {x - 1}, result, {x}, {{1, extent - 5}}, Padding::value(int32_t{0}));
    }
    CostModel model = model_that_fetches(0.5);
    model.non_temporal_part = part;
    const SymbolValues all{{result.name() + ".min0", 0}, {result.name() + ".extent0", extent}};
    const auto report = auto_schedule(b.p, {b.source}, {result}, all, model);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    const bool stated = print(b.p.build({b.source}, {result}).value()).find("copy_non_temporal") != std::string::npos;
    EXPECT_EQ(report->to_string().find("non-temporal") != std::string::npos, stated) << report->to_string();
    return stated;
  };
  EXPECT_TRUE(past(0.8, int64_t{8} << 20, false));
  EXPECT_FALSE(past(0.05, int64_t{8} << 20, false)) << "fetching hides more: of 0.2 as much, all that the work hides";
  EXPECT_FALSE(past(0, int64_t{8} << 20, false));
  EXPECT_FALSE(past(0.8, int64_t{1} << 20, false)) << "the caches hold it";
  EXPECT_FALSE(past(0.8, int64_t{8} << 20, true));
}

TEST(AutoSchedule, ShortRowsStayWhole) {
  Blurs b = rows_of_points(4);
  const SymbolValues all{{"result.min0", 0}, {"result.extent0", 256}, {"result.min1", 0}, {"result.extent1", 4096}};
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, all, CostModel::host());
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  ASSERT_EQ(report->groups.size(), 1u) << report->to_string();
  EXPECT_NE(report->groups[0].find("over y in steps of"), std::string::npos) << report->to_string();
}

// A few stages that read points or windows of the previous one, some also of an earlier one; some results are outputs.
struct Drawn {
  Pipeline p;
  BufferRef source;
  std::vector<BufferRef> outputs;
  std::vector<StageRef> stages;
  SymbolValues sizes;
};
Drawn drawn(uint32_t seed, bool plain) {
  std::mt19937 random(seed);
  const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  Pipeline p("drawn");
  BufferRef source = p.buffer("source", kI32, 2);
  std::vector<BufferRef> made{source}, outputs;
  std::vector<StageRef> stages;
  SymbolValues sizes;
  const int count = 3 + static_cast<int>(random() % 4);
  const int64_t width = 128 << random() % 6;
  for (int s = 0; s < count; ++s) {
    const std::string name = "made" + std::to_string(s);
    BufferRef to = p.buffer(name, kI32, 2);
    const int reach = chance(60) ? 1 : 0;
    StageRef stage = p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, -reach}, {0, reach}));
    stage.reads(made.back(), {x, {y - reach, y + reach}});
    if (!plain && s > 1 && chance(30)) stage.reads(made[1 + random() % (static_cast<size_t>(s) - 1)], {x, y});
    stage.writes(to, {x, y});
    const bool is_output = s + 1 == count || (!plain && chance(15));
    if (is_output) {
      outputs.push_back(to);
      sizes.insert({{name + ".min0", 0}, {name + ".extent0", width}, {name + ".min1", 0}, {name + ".extent1", 2048}});
    }
    stages.push_back(stage);
    made.push_back(to);
  }
  return {std::move(p), source, outputs, stages, sizes};
}

TEST(AutoSchedule, CostsWhatIsPredictedOfItsSchedule) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Drawn d = drawn(seed, false);
    const CostModel model = seed % 2 == 0 ? CostModel::host() : model_that_fetches();
    const auto report = auto_schedule(d.p, {d.source}, d.outputs, d.sizes, model);
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.error().to_string();
    const auto again = predict_cost(d.p, {d.source}, d.outputs, d.sizes, model);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().to_string();
    EXPECT_NEAR(again->seconds(), report->automatic.seconds(), 0.02 * again->seconds()) << "seed " << seed << "\n"
                                                                                        << report->to_string();
    EXPECT_TRUE(d.p.build({d.source}, d.outputs).ok()) << "seed " << seed;
  }
}

// All ways to divide a chain, in strips of several sizes.
TEST(AutoSchedule, NoCutOfAChainIsPredictedToBeCheaper) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Drawn automatic = drawn(seed, true);
    const auto report =
        auto_schedule(automatic.p, {automatic.source}, automatic.outputs, automatic.sizes, CostModel::host());
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.error().to_string();
    const size_t stages = automatic.stages.size();
    for (size_t cuts = 0; cuts < size_t{1} << (stages - 1); ++cuts)
      for (const int64_t step : {1, 4, 16, 64}) {
        Drawn d = drawn(seed, true);
        for (size_t s = 0; s < stages; ++s) {
          const bool ends = s + 1 == stages || (cuts >> s & 1) != 0;
          if (ends) d.stages[s].loops({{y, step}});
          if (ends && s + 1 < stages) d.stages[s].compute_root();
        }
        const auto by_hand = predict_cost(d.p, {d.source}, d.outputs, d.sizes, CostModel::host());
        ASSERT_TRUE(by_hand.ok()) << "seed " << seed << ": " << by_hand.error().to_string();
        EXPECT_LE(report->automatic.seconds(), by_hand->seconds() * 1.0001)
            << "seed " << seed << ", cuts " << cuts << ", steps of " << step << "\n"
            << report->to_string();
      }
  }
}

CostModel host_with(int64_t workers) {
  CostModel model = CostModel::host();
  model.workers = workers;
  return model;
}

// In bands of rows, one for each worker, with strips that begin anew. Results are those of a smaller image.
TEST(AutoSchedule, WorkersHaveABandEach) {
  for (const int64_t workers : {2, 3, 4}) {
    Blurs plain = blurs(4), shared = blurs(4), alone = blurs(4);
    const auto one = auto_schedule(alone.p, {alone.source}, {alone.result}, sizes(2048), CostModel::host());
    const auto report = auto_schedule(shared.p, {shared.source}, {shared.result}, sizes(2048), host_with(workers));
    ASSERT_TRUE(report.ok() && one.ok());
    ASSERT_EQ(report->groups.size(), 1u) << report->to_string();
    EXPECT_NE(report->groups[0].find("in bands of "), std::string::npos) << report->to_string();
    EXPECT_LT(report->automatic.seconds(), one->automatic.seconds());
    EXPECT_GT(report->automatic.seconds() * static_cast<double>(workers), one->automatic.seconds());
    EXPECT_GT(report->automatic.redundant_seconds, 0) << "rows at borders are computed for both";
  }
}

TEST(AutoSchedule, BandsChangeNoResult) {
  for (const int64_t workers : {2, 3, 5}) {
    CostModel model = host_with(workers);
    for (CostModel::Memory& memory : model.memories) memory.bytes /= 256;
    model.seconds_to_share = 0;
    model.workers_of_largest = static_cast<double>(workers);
    model.seconds_per_call = 0.1e-9;
    Blurs plain = blurs(4), shared = blurs(4);
    const auto report = auto_schedule(shared.p, {shared.source}, {shared.result}, sizes(24), model);
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_NE(report->to_string().find("in bands of "), std::string::npos) << report->to_string();
    EXPECT_EQ(results(plain), results(shared)) << workers << " workers, " << report->to_string();
  }
}

TEST(AutoSchedule, SchedulesByHandCostWhatTheirOwnWorkersTake) {
  const auto cost = [](std::vector<LoopOver> loops, int64_t workers) {
    Blurs b = blurs(4);
    b.last.loops(std::move(loops));
    return predict_cost(b.p, {b.source}, {b.result}, sizes(2048), host_with(workers)).value().seconds();
  };
  const double serial = cost({{y, 16}}, 1);
  EXPECT_DOUBLE_EQ(cost({{y, 16}}, 8), serial) << "whatever other workers a run has";
  const double shared = cost({{y, 16}, {y, 256, 8}}, 8);
  EXPECT_LT(shared, serial);
  EXPECT_GT(shared * 8, serial);
}

TEST(AutoSchedule, RefusesModelsWithoutWorkers) {
  for (const int64_t workers : {-1, 0}) {
    Blurs b = blurs(2);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(64), host_with(workers));
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().to_string().find(std::to_string(workers) + " workers"), std::string::npos);
  }
}

TEST(AutoSchedule, StagesByThemselvesAreSharedAsWell) {
  Blurs b = blurs(1);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), host_with(2));
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(report->groups, std::vector<std::string>{"stage0: 1 stage as a whole, in bands of 1024 over y"});
}

TEST(AutoSchedule, WhatIsTooShortOrHasWindowsInOnePieceIsNotShared) {
  Blurs b = blurs(4);
  const auto small = auto_schedule(b.p, {b.source}, {b.result}, sizes(16), host_with(2));
  ASSERT_TRUE(small.ok()) << small.error().to_string();
  EXPECT_EQ(small->to_string().find("bands"), std::string::npos) << small->to_string();

  Pipeline p("no rings");
  BufferRef source = p.buffer("source", kI32, 2), mid = p.buffer("mid", kI32, 2), result = p.buffer("result", kI32, 2);
  const KernelHandle sum = window_sum<int32_t>({0, -1}, {0, 1});
  const KernelHandle without = make_kernel(
      "sum", [sum](CallContext& c) { return sum->run(c); }, false);
  p.stage("first", without).reads(source, {x, {y - 1, y + 1}}).writes(mid, {x, y});
  p.stage("second", without).reads(mid, {x, {y - 1, y + 1}}).writes(result, {x, y});
  const auto whole = auto_schedule(p, {source}, {result}, sizes(8192), host_with(2));
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  for (const std::string& group : whole->groups)
    EXPECT_TRUE(group.find("as a whole") != std::string::npos || group.find("bands") == std::string::npos) << group;
}

TEST(AutoSchedule, NamesTheSizeThatIsMissing) {
  Blurs b = blurs(2);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}}, CostModel::host());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().to_string().find("result."), std::string::npos) << report.error().to_string();
}

}  // namespace
}  // namespace tenon::program
