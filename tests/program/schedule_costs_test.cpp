// Predicted costs of schedules (program/schedule/auto_schedule.hpp).
#include <tenon/program/schedule/auto_schedule.hpp>

#include <cmath>

#include <program/schedule_chains.hpp>

namespace tenon::program {
namespace {

// Windows of half of L2 and more: their cost is what the model states.
TEST(ScheduleCosts, WindowsAreLostBeyondWhatIsSure) {
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

// For a chain of 8 stages over `extent` floats in pieces of `step`: the share of its memory time that prefetching 4 KB
// ahead saves.
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

// Transfers of prefetched pieces continue while the stages work in L1; for longer pieces, increasingly less.
TEST(ScheduleCosts, PiecesThatAreFetchedAheadAreHidden) {
  constexpr int64_t kExtent = int64_t{1} << 24;
  const double all = saved_by_fetching_ahead(1024, kExtent);
  EXPECT_GT(all, 0.1);
  EXPECT_NEAR(saved_by_fetching_ahead(512, kExtent), all, 1e-3);
  EXPECT_NEAR(saved_by_fetching_ahead(1024 + 1024 / 12, kExtent), all / 2, 0.1 * all) << "half a sixth longer";
  EXPECT_EQ(saved_by_fetching_ahead(2048, kExtent), 0);
}

// Source and result have 8 bytes per index; L3 certainly holds 16 MB, and nothing of 32.
TEST(ScheduleCosts, OnlyWhatComesFromMainMemoryIsHidden) {
  EXPECT_EQ(saved_by_fetching_ahead(1024, int64_t{1} << 20), 0);
  const double half = saved_by_fetching_ahead(1024, int64_t{3} << 20),
               all = saved_by_fetching_ahead(1024, int64_t{1} << 23);
  EXPECT_GT(half, 0);
  EXPECT_LT(half, 0.8 * all);
  EXPECT_NEAR(saved_by_fetching_ahead(1024, int64_t{4} << 20), all, 1e-3);
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

// There are six calls per 8 bytes of an index. Hints for so many bytes that they wait for one another hide less, and
// what is prefetched needs room in L2 beside an iteration's results.
TEST(ScheduleCosts, WhatIsFetchedAheadMustBeShortAndFitBesideAnIteration) {
  const auto gained = [](int64_t step) { return gained_by_fetching(step, model_that_fetches(0.2)); };
  const double all = gained(512);
  EXPECT_GT(all, 0);
  EXPECT_NEAR(gained(256), all, 1e-3 * all) << "341 bytes a call, and 682";
  EXPECT_LT(gained(4096), all) << "32 KB and what is fetched are more than half of L1";
  EXPECT_EQ(gained(65536), 0) << "512 KB and as much again are all of L2";
}

// Stages that only read from main memory, or only write to it, wait longer than passes that do both: the ends of
// strips, but no single stages. Prefetching hides some of that, too.
TEST(ScheduleCosts, EndsThatAreApartTakeLonger) {
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

// A result is read by the next call, before all of the next iteration's bytes have arrived: the more calls share these,
// the less is evicted. Pieces of 8 KB together with their readers' are half of L1.
TEST(ScheduleCosts, OfWhatIsFetchedOnlyWhatTwoCallsFetchPushesResultsOut) {
  const auto seconds = [](int stages, int64_t ahead) {
    Blurs b = points(stages);
    b.last.loops({{x, 2048, 1, ahead}});
    const auto cost = predict_cost(b.p, {b.source}, {b.result},
                                   {{"result.min0", 0}, {"result.extent0", int64_t{4} << 20}}, model_that_fetches());
    EXPECT_TRUE(cost.ok()) << cost.error().to_string();
    return cost->memory_seconds;
  };
  const double gained = seconds(8, 0) - seconds(8, 1);
  EXPECT_GT(gained, 0);
  EXPECT_GT(seconds(16, 0) - seconds(16, 1), 2 * gained) << "half as much is pushed out";
  EXPECT_EQ(seconds(2, 1), seconds(2, 0)) << "all of it lies beside them";
}

// Rows of the source that the previous strip has read come from where they still are.
TEST(ScheduleCosts, RowsThatStripsReadAgainAreCounted) {
  const CostModel model = CostModel::host();
  const auto saved_by_taller = [&](int64_t side, std::vector<LoopOver> loops) {
    const auto seconds = [&](int64_t rows) {
      Blurs b = blurs(1);
      loops.back().step = rows;
      b.last.loops(loops);
      const auto cost = predict_cost(b.p, {b.source}, {b.result}, sizes(side), model);
      EXPECT_TRUE(cost.ok()) << cost.error().to_string();
      return cost->memory_seconds;
    };
    return seconds(1) - seconds(2);
  };
  const auto source_from = [&](int64_t side, size_t level) {
    return static_cast<double>(side * (side + 2)) * sizeof(int32_t) / model.memories[level].bytes_per_second;
  };
  EXPECT_NEAR(saved_by_taller(512, {{y, 1}}), source_from(512, 0), 1e-12) << "2 KB a row, and as much is made";
  EXPECT_NEAR(saved_by_taller(4096, {{x, 256}, {y, 1}}), source_from(4096, 1), 1e-12) << "32 KB in a row of tiles";
}

// The larger the hidden part, the cheaper the schedule; if nothing is hidden, the hints are a cost.
TEST(ScheduleCosts, FetchingAheadCostsWhatHintsCostAndSavesWhatIsHidden) {
  const auto cost = [](double part, int64_t ahead) {
    Blurs b = blurs(6);
    b.last.loops({{y, 4, 1, ahead}});
    const auto found = predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model_that_fetches(part));
    EXPECT_TRUE(found.ok()) << found.error().to_string();
    return *found;
  };
  EXPECT_EQ(cost(0, 1).memory_seconds, cost(0, 0).memory_seconds);
  EXPECT_NEAR(cost(0, 1).dispatch_seconds - cost(0, 0).dispatch_seconds, 6 * 512 * 3e-9, 1e-12);
  const double half = cost(0, 0).memory_seconds - cost(0.4, 1).memory_seconds;
  EXPECT_GT(half, 0);
  EXPECT_NEAR(cost(0, 0).memory_seconds - cost(0.8, 1).memory_seconds, 2 * half, 1e-9);
}

// The gain of prefetching if only hints cost anything: data evicted from one level are found equally fast in the next,
// and nothing waits.
CostModel model_of_alike_caches() {
  CostModel model = model_that_fetches(0.2);
  for (CostModel::Memory& m : model.memories) m.latency_seconds = 0;
  for (size_t i = 0; i + 2 < model.memories.size(); ++i)
    model.memories[i].bytes_per_second = model.memories[2].bytes_per_second;
  return model;
}

// There are six calls per 8 bytes of an index; of an L2 of 64 KB, half is certain, and 48 KB hold half of the excess.
TEST(ScheduleCosts, WhatIsFetchedHasWhatIsLeftOfTheSecondLevel) {
  CostModel model = model_of_alike_caches();
  const auto gained = [&](int64_t step) { return gained_by_fetching(step, model); };
  EXPECT_NEAR(gained(3840) / gained(960), 1 - 2 * 0.3, 1e-3) << "1280 bytes a call, and two doublings more";
  const auto alone = [](double step) { return 1 - 0.3 * std::log2(8 * step / 6 / 1280); };
  EXPECT_NEAR(gained(3072) / gained(2048), alone(3072) / alone(2048), 1e-3);
  model.memories[1].bytes = 64 << 10;
  EXPECT_NEAR(gained(3072) / gained(2048), 0.5 * alone(3072) / alone(2048), 1e-3);
}

// Hints that wait for one another delay the work, even if there is far more transfer time than work that could hide it.
TEST(ScheduleCosts, HintsThatWaitHideLessOfShortWork) {
  CostModel model = model_of_alike_caches();
  model.fetched_part = 1;
  for (size_t i = 0; i + 1 < model.memories.size(); ++i) model.memories[i].bytes_per_second = 200e9;
  EXPECT_NEAR(gained_by_fetching(3840, model) / gained_by_fetching(960, model), 1 - 2 * 0.3, 1e-3);
}

// Down columns, each doubling of the bytes that a call prefetches, from 1280 on, loses more than along rows.
TEST(ScheduleCosts, PiecesOfColumnsHideLessTheMoreHintsACallHas) {
  const auto gained = [](int64_t rows) {
    const auto seconds = [&](int64_t ahead) {
      Blurs b = blurs(3);
      b.last.loops({{y, rows, 1, ahead}, {x, 128}});
      return predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model_of_alike_caches())->memory_seconds;
    };
    return seconds(0) - seconds(1);
  };
  const double doublings = std::log2(2 * 8 * 512.0 / 3 / 1280);
  EXPECT_NEAR(gained(8) / gained(2), 1 - 0.6 * doublings, 4e-3);
  EXPECT_NEAR(gained(1) / gained(2), 1, 4e-3) << "less than 1280 bytes";
}

// Of the additional time of separate ends, the processor hides nearly half by itself if pieces are prefetched.
TEST(ScheduleCosts, OfEndsThatAreApartAPartIsHiddenUnasked) {
  static constexpr int64_t kExtent = int64_t{1} << 24;
  const auto saved = [](double apart) {
    const auto seconds = [&](double ahead) {
      CostModel model = CostModel::host();
      model.ahead_bytes = ahead;
      model.apart = apart;
      Blurs b = points(8);
      b.last.loops({{x, 1024}});
      return predict_cost(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", kExtent}}, model)
          ->memory_seconds;
    };
    return seconds(0) - seconds(4096);
  };
  const double way = 8.0 * kExtent / CostModel::host().memories.back().bytes_per_second;
  EXPECT_NEAR(saved(2) - saved(1), 0.45 * way, 1e-3 * way);
}

// Down columns, stages of several resolutions take longer than predicted, whatever is prefetched.
TEST(ScheduleCosts, StagesOfOtherResolutionsFetchNothingDownColumns) {
  const auto gained = [](const std::vector<LoopOver>& loops) {
    const auto seconds = [&](int64_t ahead) {
      Pipeline p("halves");
      BufferRef source = p.buffer("source", kI32, 2), half = p.buffer("half", kI32, 2),
                result = p.buffer("result", kI32, 2);
      p.stage("halve", window_sum<int32_t>({0, 0}, {1, 1}))
          .reads(source, {{2 * x, 2 * x + 1}, {2 * y, 2 * y + 1}})
          .writes(half, {x, y});
      std::vector<LoopOver> with = loops;
      with.front().ahead = ahead;
      p.stage("twice", window_sum<int32_t>({0, 0}, {0, 0}))
          .reads(half, {floordiv(x, 2), floordiv(y, 2)})
          .writes(result, {x, y})
          .loops(with);
      return predict_cost(p, {source}, {result}, sizes(4096), model_of_alike_caches())->memory_seconds;
    };
    return seconds(0) - seconds(1);
  };
  EXPECT_GT(gained({{x, 128}, {y, 4}}), 0);
  EXPECT_EQ(gained({{y, 4}, {x, 128}}), 0);
}

// An additional call in each iteration moves the results; with hints only for what is read, a part of the time is
// hidden.
TEST(ScheduleCosts, ResultsPastTheCachesCostACallAndHideWhatTheModelSays) {
  const auto cost = [](double part, int64_t side, int64_t width = 0) {
    Blurs b = blurs(3);
    std::vector<LoopOver> loops{{y, 2}};
    if (width > 0) loops.insert(loops.begin(), {x, width});
    loops.front().ahead = 1;
    loops.front().non_temporal = part >= 0;
    b.last.loops(loops);
    CostModel model = model_of_alike_caches();
    model.apart = 1.5;
    model.non_temporal_part = std::max(part, 0.0);
    return *predict_cost(b.p, {b.source}, {b.result}, sizes(side), model);
  };
  const CostModel model = model_that_fetches();
  EXPECT_NEAR(cost(0, 2048).dispatch_seconds - cost(-1, 2048).dispatch_seconds, 1024 * model.seconds_per_call, 1e-12);
  const auto gained = [&](int64_t side, int64_t width = 0) {
    return cost(0, side, width).memory_seconds - cost(0.2, side, width).memory_seconds;
  };
  const double far = model.memories.back().bytes_per_second, near = model.memories[2].bytes_per_second;
  const double way = 4.0 * 4096 * (4096 + 4096 + 6) / far;
  const double doublings = std::log2(2 * 16384 / 4.0 / 1280);  // of what is read, in four calls
  EXPECT_NEAR(gained(4096), 0.2 * (1 - 0.3 * doublings) * 1.5 * way, 2e-3 * way) << "nothing of it is near";
  // In tiles two rows of four have been read before.
  const double of_tiles = std::log2(2 * 2 * 4096 / 4.0 / 1280);
  EXPECT_NEAR(gained(4096, 1024), 0.2 * (1 - 0.3 * of_tiles) * 1.5 * way, 2e-3 * way);
  // The caches hold it all. What is read is found there, and the results go to the largest memory nevertheless.
  const double in = 4.0 * 512 * (512 + 6), out = 4.0 * 512 * 512;
  EXPECT_NEAR(gained(512), out / (in + out) * 0.2 * 1.5 * (in / near + out / far), 1e-9);
}

// If nothing more is hidden, results are stored non-temporally only for less traffic, and not if it is not less.
TEST(ScheduleCosts, ResultsGoPastTheCachesForAShorterWayToo) {
  const auto goes = [](double way) {
    CostModel model = model_of_alike_caches();
    model.non_temporal_way = way;
    Blurs b = blurs(3);
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(4096), model);
    return report->groups.back().find("non-temporal") != std::string::npos;
  };
  EXPECT_TRUE(goes(0.5));
  EXPECT_FALSE(goes(1));
  EXPECT_FALSE(goes(1.2));
}

// Rows of 127 lines, of 127 and a half, and of 128, in four pieces each: a line shared by two pieces is read and
// written once more, and down columns twice.
TEST(ScheduleCosts, PiecesPastTheCachesThatShareLinesReadThem) {
  constexpr int64_t kRows = 8192;
  CostModel model = model_that_fetches();
  model.non_temporal_part = 0.7;
  const auto shared = [&](LoopOver inner, const LoopOver& outer) {
    inner.ahead = 1;
    inner.non_temporal = true;
    const auto seconds = [&](int64_t width) {
      Blurs b = rows_of_points(3);
      b.last.loops({inner, outer});
      const SymbolValues sizes{
          {"result.min0", 0}, {"result.extent0", width}, {"result.min1", 0}, {"result.extent1", kRows}};
      return predict_cost(b.p, {b.source}, {b.result}, sizes, model)->memory_seconds;
    };
    return seconds(2040) - (seconds(2032) + seconds(2048)) / 2;
  };
  const double once = 4 * kRows * 2 * 64 / model.memories.back().bytes_per_second;
  EXPECT_NEAR(shared({x, 512}, {y, 1}), once, 1e-3 * once);
  EXPECT_NEAR(shared({y, 1}, {x, 512}), 2 * once, 1e-3 * once);
}

// Vectors of a row that are not aligned to cache lines are loaded from two lines; those of other rows are aligned
// alike.
TEST(ScheduleCosts, LoadsAlongRowsCountTwice) {
  const auto seconds = [](const Windows& windows) {
    Pipeline p("windows");
    BufferRef source = p.buffer("source", kI32, 2), mid = p.buffer("mid", kI32, 2),
              result = p.buffer("result", kI32, 2);
    p.stage("first", window_sum<int32_t>({0, 0}, {0, 0})).reads(source, {x, y}).writes(mid, {x, y});
    p.stage("last", window_sum<int32_t>({0, 0}, {0, 0})).reads(mid, windows).writes(result, {x, y});
    CostModel model = CostModel::host();
    for (CostModel::Memory& m : model.memories) m.bytes_per_second *= &m == model.memories.data() ? 1 : 1e6;
    return predict_cost(p, {source}, {result}, sizes(2048), model)->memory_seconds;
  };
  const double point = seconds({x, y});
  EXPECT_NEAR(seconds({x, {y - 1, y + 1}}) / point, 3, 0.01);
  EXPECT_NEAR(seconds({{x - 1, x + 1}, y}) / point, 5, 0.01);
  EXPECT_NEAR(seconds({{x - 1, x + 1}, {y - 1, y + 1}}) / point, 15, 0.05);
}

// In a row that is aligned to a cache line, one of three loads and the stores are within lines; in pieces of it they
// are not.
TEST(ScheduleCosts, PiecesOfRowsWithWindowsAlongThemLieBetweenLines) {
  const auto seconds = [](const Window& along, const std::vector<LoopOver>& loops) {
    Pipeline p("windows");
    BufferRef source = p.buffer("source", kI32, 2), mid = p.buffer("mid", kI32, 2),
              result = p.buffer("result", kI32, 2);
    p.stage("first", window_sum<int32_t>({0, 0}, {0, 0})).reads(source, {x, y}).writes(mid, {x, y});
    p.stage("last", window_sum<int32_t>({0, 0}, {0, 0}))
        .reads(mid, {along, {y - 1, y + 1}})
        .writes(result, {x, y})
        .loops(loops);
    CostModel model = CostModel::host();
    for (CostModel::Memory& m : model.memories) m.bytes_per_second *= &m == model.memories.data() ? 1 : 1e6;
    model.memories.front().bytes = 1024;  // it holds no piece: loads alone take time
    return predict_cost(p, {source}, {result}, sizes(2048), model)->memory_seconds;
  };
  const std::vector<LoopOver> rows{{y, 4}}, tiles{{x, 512}, {y, 4}};
  EXPECT_NEAR(seconds({x - 1, x + 1}, tiles) / seconds({x - 1, x + 1}, rows), (1 + 15 + 1 + 3) / 16.0, 1e-3);
  EXPECT_NEAR(seconds(x, tiles) / seconds(x, rows), 1, 1e-3);
}

// Traffic through L2 overlaps with loads from L1, except for a fifth of the shorter one.
TEST(ScheduleCosts, LoadsDoNotHideAllThatMoves) {
  const auto seconds = [](double first, double second) {
    Blurs b = blurs(12);
    b.last.loops({{y, 2}});
    CostModel model = CostModel::host();
    model.memories[0].bytes_per_second = first;
    model.memories[1].bytes_per_second = second;
    return predict_cost(b.p, {b.source}, {b.result}, sizes(1024), model)->memory_seconds;
  };
  const double slow = seconds(1e9, 100e9), slower = seconds(1e9, 50e9), alone = seconds(1e9, 1e15);
  EXPECT_GT(slow, alone);
  EXPECT_NEAR(slower - alone, 2 * (slow - alone), 0.01 * (slow - alone));
  // Two of its rows are read again by the next two of the first stage: from L2, and beside nothing.
  const double again = 1024 * 1048 * sizeof(int32_t) * 2 / (1046 / 512.0) * (1 / 50e9 - 1 / 100e9);
  const double other = seconds(1e15, 50e9) - seconds(1e15, 100e9) - again;
  EXPECT_NEAR(slower - slow - again, 0.2 * other, 0.02 * other);
}

// While loads from L1 take longer than the traffic through windows, the next whole rows arrive by themselves, except
// for a fifth; nothing does if loads are faster, and no pieces of rows do.
TEST(ScheduleCosts, LoadsHideTheWayOfWholeRows) {
  const auto part_seen = [](double first, const std::vector<LoopOver>& loops) {
    const auto seconds = [&](double main_memory) {
      Blurs b = blurs(3);
      b.last.loops(loops);
      CostModel model = CostModel::host();
      model.memories.front().bytes_per_second = first;
      model.memories.back().bytes_per_second = main_memory;
      return predict_cost(b.p, {b.source}, {b.result}, sizes(4096), model)->memory_seconds;
    };
    const double way = (4096.0 * 4096 + 4096 * (4096 + 6)) * sizeof(int32_t) / 10e9;
    return (seconds(10e9) - seconds(1e18)) / way;
  };
  const std::vector<LoopOver> rows{{y, 2}}, tiles{{x, 512}, {y, 2}};
  EXPECT_NEAR(part_seen(1e9, rows), 0.2, 1e-3);
  EXPECT_NEAR(part_seen(1e15, rows), 1, 1e-3);
  EXPECT_NEAR(part_seen(1e9, tiles), 1, 1e-3);
}

// Tiles along rows have a cost for each piece of a row of a stage; columns and whole rows have no such pieces.
TEST(ScheduleCosts, PiecesOfRowsInTilesAreCounted) {
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

// A separate stage loads the previous one's results as often as its windows cover them.
TEST(ScheduleCosts, LoadsOfEarlierResultsAreCounted) {
  const auto seconds = [](double smallest) {
    Blurs b = blurs(2);
    CostModel model = CostModel::host();
    model.memories.front().bytes_per_second = smallest;
    return predict_cost(b.p, {b.source}, {b.result}, sizes(2048), model)->memory_seconds;
  };
  EXPECT_NEAR(seconds(100e9) - seconds(200e9), 3 * 2048 * 2050 * sizeof(int32_t) / 200e9, 1e-9);
}

// Hints are for the next iteration, wherever it is: the last tile of a row has those for the first one of the next row.
// Along rows they are also for rows that the previous row of tiles has read.
TEST(ScheduleCosts, FetchingAheadIsPredictedToGainInOneLoopAndInTwo) {
  const auto gained_of = [](const auto& chain, const std::vector<LoopOver>& loops, int64_t side) {
    const auto seconds = [&](int64_t ahead) {
      Blurs b = chain();
      std::vector<LoopOver> with = loops;
      with.front().ahead = ahead;
      b.last.loops(with);
      return predict_cost(b.p, {b.source}, {b.result}, sizes(side), model_that_fetches(0.2))->memory_seconds;
    };
    return seconds(0) - seconds(1);
  };
  const auto gained = [&](const std::vector<LoopOver>& loops, int64_t side) {
    return gained_of([] { return blurs(3); }, loops, side);
  };
  EXPECT_GT(gained({{y, 2}}, 2048), 0);
  EXPECT_GT(gained({{y, 4}, {x, 128}}, 2048), 0);
  EXPECT_GT(gained({{y, 4}, {x, 128}}, 2100), 0) << "the last column is cut";
  const std::vector<LoopOver> quarters{{x, 512}, {y, 4}}, halves{{x, 1024}, {y, 2}}, whole{{x, 2048}, {y, 1}};
  EXPECT_GT(gained(halves, 2048), 0);
  EXPECT_GT(gained(quarters, 2048), gained(halves, 2048)) << "a half more, and once more";
  EXPECT_NEAR(gained(whole, 2048) / gained({{y, 1}}, 2048), 1, 1e-3) << "one tile a row";
  const auto points = [&](const std::vector<LoopOver>& loops) {
    return gained_of([] { return rows_of_points(8); }, loops, 2048);
  };
  EXPECT_NEAR(points(halves) / points(quarters), 1, 1e-3) << "tiles";
  EXPECT_NEAR(points(whole) / points(quarters), 1, 1e-3) << "one tile a row";
}

// For data held by the memory before the largest, hints hide what the model states for it; if hints reduce traffic, the
// time is shorter by as much, and a part of the rest is hidden.
TEST(ScheduleCosts, WhatHintsMakeOfAWayIsWhatTheModelSays) {
  const auto seconds = [](const CostModel& model, int64_t ahead, int64_t side) {
    Blurs b = rows_of_points(8);
    b.last.loops({{.index = y, .step = 1, .ahead = ahead}});
    return predict_cost(b.p, {b.source}, {b.result}, sizes(side), model)->memory_seconds;
  };
  CostModel model = model_of_alike_caches();
  const auto gained = [&](int64_t side) { return seconds(model, 0, side) - seconds(model, 1, side); };
  constexpr int64_t kNearby = 1024, kFar = 4096;  // 8 MB of L3's 16 sure ones, and 128
  model.fetched_part = 0.1;
  EXPECT_EQ(gained(kNearby), 0) << "none of it is in the largest memory";
  model.fetched_part_nearby = 0.2;
  const double nearby = 2 * 4.0 * kNearby * kNearby / model.memories[2].bytes_per_second;
  EXPECT_NEAR(gained(kNearby), 0.2 * nearby, 1e-3 * nearby);
  model.fetched_way_nearby = 0.75;
  EXPECT_NEAR(gained(kNearby), (0.25 + 0.2 * 0.75) * nearby, 1e-3 * nearby);
  const double before = gained(kFar), far = 2 * 4.0 * kFar * kFar / model.memories[3].bytes_per_second;
  model.fetched_way = 0.5;
  // Of 4 KB a call, of 1280 without a loss: a row of 16 KB is read and one is written in eight calls.
  const double kept = 1 - 0.3 * std::log2(4096 / 1280.0);
  EXPECT_NEAR(gained(kFar) - before, kept * (0.5 - 0.1 * 0.5) * far, 1e-2 * far);
}

// Down columns, where the next piece of a row is not contiguous.
TEST(ScheduleCosts, HintedPiecesDownColumnsWait) {
  const auto more = [](const LoopOver& inner, const LoopOver& outer) {
    const auto seconds = [&](double of_piece) {
      Blurs b = rows_of_points(8);
      LoopOver hinting = inner;
      hinting.ahead = 1;
      b.last.loops({hinting, outer});
      CostModel model = model_of_alike_caches();
      model.fetched_part = 1;
      model.seconds_per_hinted_piece = of_piece;
      return predict_cost(b.p, {b.source}, {b.result}, sizes(4096), model)->memory_seconds;
    };
    return seconds(10e-9) - seconds(0);
  };
  EXPECT_NEAR(more({y, 2}, {x, 512}), 8 * 4096 * 10e-9, 1e-9);
  EXPECT_EQ(more({x, 512}, {y, 2}), 0);
}

// Two stages pass on 32 KB in steps of 4096 elements, and as many are read and written outside.
TEST(ScheduleCosts, WhatPassesPushesOutWhatIsHandedOn) {
  const auto seconds = [](double sure, int64_t step) {
    Blurs b = points(3);
    b.last.loops({{x, step}});
    CostModel model = CostModel::host();
    model.memories.front().bytes = 48 << 10;
    model.memories.front().sure_bytes = sure;
    return predict_cost(b.p, {b.source}, {b.result}, {{"result.min0", 0}, {"result.extent0", 1 << 16}}, model)
        ->memory_seconds;
  };
  const double nearest = 1 / 190e9, next = 1 / 73e9;
  EXPECT_NEAR(seconds(40 << 10, 4096) - seconds(40 << 10, 2048), 16 * 32768 * (next - nearest), 1e-9);
}

// Pieces of rows and calls cost what the model states for one, times their number.
TEST(ScheduleCosts, PiecesAndCallsAreCounted) {
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
  EXPECT_NEAR(waits, (4096 + 6) * 4 * 1e-6 / 4, 1e-9) << "four pieces of each row of the source, side by side";
  strips.last.loops({{x, 1024}});
  const SymbolValues all{{"result.min0", 0}, {"result.extent0", 1 << 20}};
  EXPECT_NEAR(cost(strips, all, 0, 1e-6) - cost(strips, all, 0, 0), 4 * 1024 * 1e-6, 1e-9);
}

}  // namespace
}  // namespace tenon::program
