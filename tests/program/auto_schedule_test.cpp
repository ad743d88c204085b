#include <tenon/program/auto_schedule.hpp>

#include <random>
#include <regex>

#include <program/pipeline_support.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y");

struct Blurs {
  Pipeline p;
  BufferRef source, result;
  StageRef last;
  std::vector<StageRef> stages = {};
};

Blurs blurs(int stages) {
  Pipeline p("blurs");
  BufferRef source = p.buffer("source", kI32, 2), from = source;
  std::vector<StageRef> made;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 2);
    made.push_back(p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, -1}, {0, 1}))
                       .reads(from, {x, {y - 1, y + 1}})
                       .writes(to, {x, y}));
    from = to;
  }
  return {std::move(p), source, from, made.back(), made};
}

SymbolValues sizes(int64_t side) {
  return {{"result.min0", 0}, {"result.extent0", side}, {"result.min1", 0}, {"result.extent1", side}};
}

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

// Stages that read each element where they write it, over x.
Blurs points(int stages) {
  Pipeline p("points");
  BufferRef source = p.buffer("source", kI32, 1), from = source;
  std::optional<StageRef> last;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 1);
    last = p.stage("stage" + std::to_string(s), window_sum<int32_t>({0}, {0})).reads(from, {x}).writes(to, {x});
    from = to;
  }
  return {std::move(p), source, from, *last};
}

// The numbers in "... over x in steps of 2048, 16384 bytes of windows".
std::pair<int64_t, int64_t> step_and_windows(const std::string& group) {
  std::smatch found;
  if (!std::regex_search(group, found, std::regex(R"(steps of (\d+), (\d+) bytes)"))) return {0, 0};
  return {std::stoll(found[1]), std::stoll(found[2])};
}

// What a stage makes is read by the next one at once, and then no more: the first level is enough for any number of
// stages.
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

// Groups of any size by hand are not predicted to be cheaper, for more stages than are looked at in all ways.
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

// Stages that read each element where they write it, over rows.
Blurs rows_of_points(int stages) {
  Pipeline p("rows");
  BufferRef source = p.buffer("source", kI32, 2), from = source;
  std::vector<StageRef> made;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 2);
    made.push_back(p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, 0}, {0, 0}))
                       .reads(from, {x, y})
                       .writes(to, {x, y}));
    from = to;
  }
  return {std::move(p), source, from, made.back(), made};
}

// A loop over rows leaves rows whole: one that is longer than the first level is cut, too.
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

// In tiles and down columns what is fresh is handed on in the first level: where pieces of rows cost nothing they are
// cut, where they cost much rows are left whole.
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

// Windows that are half of the second level and more: what they cost is what the model says of it.
TEST(AutoSchedule, WindowsAreLostBeyondWhatIsSure) {
  const auto seconds = [](double sure) {
    CostModel model = CostModel::host();
    model.memories[1].sure_bytes = sure;
    Blurs b = blurs(12);
    b.last.loops({{y, 2}});
    const auto cost = predict_cost(b.p, {b.source}, {b.result}, sizes(4096), model);
    EXPECT_TRUE(cost.ok()) << cost.error().to_string();
    return cost->seconds();
  };
  const double half = seconds(512 << 10);
  EXPECT_DOUBLE_EQ(seconds(0), half);
  EXPECT_LT(seconds(1000 << 10), half);
  EXPECT_GT(seconds(256 << 10), half);
}

// Where windows of whole rows are more than the second level holds, and nobody waits for pieces of rows.
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

// The last stage has one of the two indices that those before it have: it can be in no loop over the other.
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

// Of what a chain of 8 stages over so many floats takes in memory in pieces of `step`, the part that fetching 4 KB ahead
// saves.
double saved_by_fetching_ahead(int64_t step, int64_t extent) {
  const auto seconds = [&](double ahead) {
    CostModel model = CostModel::host();
    model.ahead_bytes = ahead;
    Blurs b = points(8);
    b.last.loops({{x, step}});
    const auto cost =
        predict_cost(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", extent}}, model);
    EXPECT_TRUE(cost.ok()) << cost.error().to_string();
    return cost->memory_seconds;
  };
  return 1 - seconds(4096) / seconds(0);
}

// What is read in pieces that are fetched ahead goes on while the first level is worked in; of longer ones less and less.
TEST(AutoSchedule, PiecesThatAreFetchedAheadAreHidden) {
  constexpr int64_t kExtent = int64_t{1} << 24;
  const double all = saved_by_fetching_ahead(1024, kExtent);
  EXPECT_GT(all, 0.1);
  EXPECT_NEAR(saved_by_fetching_ahead(512, kExtent), all, 1e-3);
  EXPECT_NEAR(saved_by_fetching_ahead(1024 + 1024 / 12, kExtent), all / 2, 0.1 * all) << "half a sixth longer";
  EXPECT_EQ(saved_by_fetching_ahead(2048, kExtent), 0);
}

// Source and result are 8 bytes an index, and the third level is sure of 16 MB and has none of 32.
TEST(AutoSchedule, OnlyWhatComesFromMainMemoryIsHidden) {
  EXPECT_EQ(saved_by_fetching_ahead(1024, int64_t{1} << 20), 0);
  const double half = saved_by_fetching_ahead(1024, int64_t{3} << 20),
               all = saved_by_fetching_ahead(1024, int64_t{1} << 23);
  EXPECT_GT(half, 0);
  EXPECT_LT(half, 0.8 * all);
  EXPECT_NEAR(saved_by_fetching_ahead(1024, int64_t{4} << 20), all, 1e-3);
}

CostModel model_that_fetches(double part = 0.7) {
  CostModel model = CostModel::host();
  model.fetched_part = part;
  return model;
}

int64_t hints_in(const Blurs& b) {
  const std::string text = print(b.p.build({b.source}, {b.result}).value());
  const std::regex hint("prefetch ");
  return std::distance(std::sregex_iterator(text.begin(), text.end(), hint), std::sregex_iterator());
}

// Source and result of points are 8 bytes an index, and the third level has no part of them from 4 M indices on.
TEST(AutoSchedule, FarMemoryIsFetchedAheadWhereTheMachineDoesIt) {
  const auto hints = [](int64_t extent, const CostModel& model) {
    Blurs b = points(6);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", extent}}, model);
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->to_string().find("far memory fetched") != std::string::npos, hints_in(b) > 0) << report->to_string();
    return hints_in(b);
  };
  EXPECT_EQ(hints(int64_t{4} << 20, model_that_fetches()), 12) << "a portion of the source and of the result for each stage";
  EXPECT_EQ(hints(int64_t{4} << 20, CostModel::host()), 0);
  EXPECT_EQ(hints(int64_t{1} << 20, model_that_fetches()), 0) << "it all lies in the third level";
}

double gained_by_fetching(int64_t step, const CostModel& model) {
  const auto seconds = [&](int64_t ahead) {
    Blurs b = points(6);
    b.last.loops({{x, step, 1, ahead}});
    const auto cost =
        predict_cost(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", int64_t{4} << 20}}, model);
    EXPECT_TRUE(cost.ok()) << cost.error().to_string();
    return cost->memory_seconds;
  };
  return seconds(0) - seconds(1);
}

// Six calls go by for 8 bytes an index. Hints for so many bytes that they wait for one another hide less; and what is
// fetched needs room in the second level beside an iteration's results.
TEST(AutoSchedule, WhatIsFetchedAheadMustBeShortAndFitBesideAnIteration) {
  const auto gained = [](int64_t step) { return gained_by_fetching(step, model_that_fetches(0.2)); };
  const double all = gained(768);
  EXPECT_GT(all, 0);
  EXPECT_NEAR(gained(512), all, 1e-3 * all) << "682 bytes a call, and 1 KB";
  EXPECT_NEAR(gained(1536), 0.9 * all, 1e-3 * all) << "2 KB";
  EXPECT_LT(gained(4096), 0.9 * all) << "32 KB and what is fetched are more than half of the first level";
  EXPECT_EQ(gained(65536), 0) << "512 KB and as much again are all of the second level";
}

// What only reads from main memory, and what only writes to it, waits longer for it than passes that do both: of strips
// the ends, of stages by themselves none. Fetching ahead hides of that, too.
TEST(AutoSchedule, EndsThatAreApartTakeLonger) {
  CostModel apart = model_that_fetches();
  apart.apart = 2;
  const auto seconds = [](int64_t step, const CostModel& model) {
    Blurs b = points(6);
    if (step > 0) b.last.loops({{x, step}});
    return predict_cost(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", int64_t{4} << 20}}, model)
        ->memory_seconds;
  };
  const double way = 8.0 * (int64_t{4} << 20) / apart.memories.back().bytes_per_second;
  EXPECT_NEAR(seconds(1024, apart) - seconds(1024, model_that_fetches()), way, 1e-3 * way);
  EXPECT_EQ(seconds(0, apart), seconds(0, model_that_fetches()));
  EXPECT_GT(gained_by_fetching(768, apart), 1.5 * gained_by_fetching(768, model_that_fetches()));
}

// Every part more of the way that is hidden makes schedules cheaper; without any, hints are paid for.
TEST(AutoSchedule, FetchingAheadCostsWhatHintsCostAndSavesWhatIsHidden) {
  const auto cost = [](double part, int64_t ahead) {
    Blurs b = blurs(6);
    b.last.loops({{y, 4, 1, ahead}});
    const auto found = predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model_that_fetches(part));
    EXPECT_TRUE(found.ok()) << found.error().to_string();
    return *found;
  };
  EXPECT_EQ(cost(0, 1).memory_seconds, cost(0, 0).memory_seconds);
  EXPECT_NEAR(cost(0, 1).dispatch_seconds - cost(0, 0).dispatch_seconds, 6 * 512 * 1e-9, 1e-12);
  const double half = cost(0, 0).memory_seconds - cost(0.4, 1).memory_seconds;
  EXPECT_GT(half, 0);
  EXPECT_NEAR(cost(0, 0).memory_seconds - cost(0.8, 1).memory_seconds, 2 * half, 1e-9);
}

// Tiles along rows cost something for each piece of a row of a stage; columns and whole rows have no such pieces.
TEST(AutoSchedule, PiecesOfRowsInTilesAreCounted) {
  const auto more = [](const std::vector<LoopOver>& loops) {
    const auto seconds = [&](double per_piece) {
      Blurs b = blurs(2);
      b.last.loops(loops);
      CostModel model = CostModel::host();
      model.seconds_per_piece = per_piece;
      return predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model)->dispatch_seconds;
    };
    return seconds(1e-6) - seconds(0);
  };
  EXPECT_NEAR(more({{x, 256}, {y, 8}}), 8 * (2048 + 2050) * 1e-6, 1e-9);
  EXPECT_EQ(more({{y, 8}, {x, 256}}), 0);
  EXPECT_EQ(more({{y, 8}}), 0);
}

// A stage by itself loads what the one before has made as often as its windows cover it.
TEST(AutoSchedule, LoadsOfEarlierResultsAreCounted) {
  const auto seconds = [](double smallest) {
    Blurs b = blurs(2);
    CostModel model = CostModel::host();
    model.memories.front().bytes_per_second = smallest;
    return predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model)->memory_seconds;
  };
  EXPECT_NEAR(seconds(100e9) - seconds(200e9), 3 * 2048 * 2050 * sizeof(int32_t) / 200e9, 1e-9);
}

// Hints are for the next iteration of the inner loop: the first tile of a row has none.
TEST(AutoSchedule, FetchingAheadIsPredictedToGainWhereAnIterationFollows) {
  const auto gained = [](const std::vector<LoopOver>& loops, int64_t side) {
    const auto seconds = [&](int64_t ahead) {
      Blurs b = blurs(3);
      std::vector<LoopOver> with = loops;
      with.front().ahead = ahead;
      b.last.loops(with);
      return predict_cost(b.p, {b.source}, {b.result}, sizes(side), model_that_fetches(0.2))->memory_seconds;
    };
    return seconds(0) - seconds(1);
  };
  EXPECT_GT(gained({{y, 4}}, 2048), 0);
  EXPECT_GT(gained({{y, 4}, {x, 128}}, 2048), 0);
  EXPECT_GT(gained({{y, 4}, {x, 128}}, 2100), 0) << "the last column is cut";
  const double quarters = gained({{x, 512}, {y, 4}}, 2048), halves = gained({{x, 1024}, {y, 2}}, 2048);
  EXPECT_GT(halves, 0);
  EXPECT_NEAR(halves / quarters, 0.5 / 0.75, 1e-3) << "tiles";
  EXPECT_EQ(gained({{x, 2048}, {y, 4}}, 2048), 0);
}

TEST(AutoSchedule, ShortRowsStayWhole) {
  Blurs b = rows_of_points(4);
  const SymbolValues all{{"result.min0", 0}, {"result.extent0", 256}, {"result.min1", 0}, {"result.extent1", 4096}};
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, all, CostModel::host());
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  ASSERT_EQ(report->groups.size(), 1u) << report->to_string();
  EXPECT_NE(report->groups[0].find("over y in steps of"), std::string::npos) << report->to_string();
}

// What pieces of rows and calls cost is what the model says of one, as often as there are any.
TEST(AutoSchedule, PiecesAndCallsAreCounted) {
  const auto cost = [](const Blurs& b, const SymbolValues& all, double latency, double per_call) {
    CostModel model = CostModel::host();
    for (CostModel::Memory& m : model.memories) m.latency_seconds = latency;
    model.seconds_per_call = per_call;
    const auto predicted = predict_cost(b.p, {b.source}, {b.result}, all, model);
    EXPECT_TRUE(predicted.ok()) << predicted.error().to_string();
    return predicted->seconds();
  };
  Blurs columns = blurs(3), strips = points(4);
  columns.last.loops({{y, 8}, {x, 1024}});
  const double waits = cost(columns, sizes(4096), 1e-6, 0) - cost(columns, sizes(4096), 0, 0);
  EXPECT_NEAR(waits, (4096 + 6) * 4 * 1e-6, 1e-9) << "four pieces of each row of the source";
  strips.last.loops({{x, 1024}});
  const SymbolValues all{{"result.min0", 0}, {"result.extent0", 1 << 20}};
  EXPECT_NEAR(cost(strips, all, 0, 1e-6) - cost(strips, all, 0, 0), 4 * 1024 * 1e-6, 1e-9);
}

// A few stages that read points or windows of the one before, some an earlier one as well; some results are outputs.
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
    EXPECT_NEAR(again->seconds(), report->automatic.seconds(), 0.02 * again->seconds())
        << "seed " << seed << "\n" << report->to_string();
    EXPECT_TRUE(d.p.build({d.source}, d.outputs).ok()) << "seed " << seed;
  }
}

// All ways to cut a chain, in strips of some sizes.
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
            << "seed " << seed << ", cuts " << cuts << ", steps of " << step << "\n" << report->to_string();
      }
  }
}

MemorySpace space(const char* name, uint64_t bytes, std::optional<Bandwidth> bandwidth = {}) {
  MemorySpace m;
  m.name = name;
  m.size_bytes = bytes;
  m.bandwidth = bandwidth;
  return m;
}

// A memory that states no speed is no reason to take the next smaller one for as large as any.
TEST(CostModel, KeepsMemoriesWithoutABandwidth) {
  TargetDescription target;
  target.memories = {space("dram", 1 << 30), space("l1", 32 << 10, Bandwidth{64, Bandwidth::Per::cycle}),
                     space("l2", 1 << 20, Bandwidth{80e9, Bandwidth::Per::second}), space("l3", 32 << 20)};
  const CostModel model = CostModel::of(target);
  ASSERT_EQ(model.memories.size(), 4u);
  EXPECT_EQ(model.memories[0].bytes_per_second, 80e9) << "without a clock nothing is said of the first level";
  EXPECT_EQ(model.memories[1].bytes, 1 << 20);
  EXPECT_EQ(model.memories[2].bytes_per_second, model.memories[3].bytes_per_second);
  EXPECT_EQ(model.memories[3].bytes, 0) << "the largest holds anything";
  EXPECT_GT(model.memories[3].bytes_per_second, 0);
  target.clock_hz = 2'000'000'000;
  EXPECT_EQ(CostModel::of(target).memories[0].bytes_per_second, 128e9);
}

// One memory says nothing of what is near: with it alone no strip would ever pay.
TEST(CostModel, OfATargetThatStatesNoCachesIsThatOfTheMachine) {
  TargetDescription target;
  for (int stated = 0; stated < 2; ++stated) {
    const CostModel model = CostModel::of(target), machine = CostModel::of_machine();
    ASSERT_EQ(model.memories.size(), machine.memories.size()) << stated << " memories";
    for (size_t i = 0; i < model.memories.size(); ++i)
      EXPECT_EQ(model.memories[i].bytes_per_second, machine.memories[i].bytes_per_second) << stated << " memories";
    target.memories = {space("host", 1ull << 36)};
  }
  target.memories.push_back(space("l1", 32 << 10, Bandwidth{80e9, Bandwidth::Per::second}));
  EXPECT_EQ(CostModel::of(target).seconds_per_call, CostModel().seconds_per_call) << "nothing is measured";
  EXPECT_EQ(CostModel::of(target).memories[0].bytes_per_second, 80e9);
}

// The key that says so to generated code says it to loops over calls.
TEST(CostModel, FetchesAheadWhereGeneratedCodeDoes) {
  TargetDescription target;
  target.memories = {space("dram", 1 << 30), space("l1", 32 << 10, Bandwidth{64, Bandwidth::Per::cycle})};
  EXPECT_EQ(CostModel::of(target).fetched_part, 0);
  target.memories[1].prefetch_reads = 16;
  EXPECT_EQ(CostModel::of(target).fetched_part, 0) << "of the largest memory";
  target.memories[0].prefetch_reads = 16;
  EXPECT_GT(CostModel::of(target).fetched_part, 0);
}

TEST(CostModel, WaitsAsLongAsTheTargetSays) {
  TargetDescription target;
  target.memories = {space("l1", 32 << 10), space("dram", 1 << 30)};
  target.memories[1].latency_cycles = 300;
  EXPECT_EQ(CostModel::of(target).memories[1].latency_seconds, 0) << "without a clock nothing is said";
  target.clock_hz = 3'000'000'000;
  EXPECT_DOUBLE_EQ(CostModel::of(target).memories[1].latency_seconds, 100e-9);
  EXPECT_EQ(CostModel::of(target).memories[0].latency_seconds, 0);
}

TEST(CostModel, OfTheMachineIsMeasuredOnce) {
  const CostModel model = CostModel::of_machine(), again = CostModel::of_machine();
  ASSERT_EQ(model.memories.size(), CostModel::host().memories.size());
  for (size_t i = 0; i < model.memories.size(); ++i) {
    EXPECT_GT(model.memories[i].bytes_per_second, 0) << model.memories[i].name;
    EXPECT_EQ(model.memories[i].bytes_per_second, again.memories[i].bytes_per_second);
    EXPECT_EQ(model.memories[i].bytes == 0, i + 1 == model.memories.size()) << "the largest holds anything";
    if (i == 0 || model.memories[i].bytes == 0) continue;
    EXPECT_GT(model.memories[i].bytes, model.memories[i - 1].bytes);
  }
  EXPECT_GT(model.seconds_per_call, 0);
  EXPECT_GE(model.seconds_per_window, 0);
  EXPECT_GE(model.seconds_per_row, 0);
}

TEST(AutoSchedule, NamesTheSizeThatIsMissing) {
  Blurs b = blurs(2);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}}, CostModel::host());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().to_string().find("result."), std::string::npos) << report.error().to_string();
}

}  // namespace
}  // namespace tenon::program
