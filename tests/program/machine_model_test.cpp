#include <tenon/program/schedule/machine_readings.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <support_lib/spoilt.hpp>
#include <thread>

#include <tenon/program/schedule/machine_probe_internal.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/str.hpp>

namespace tenon::program {
namespace {

namespace fs = std::filesystem;

constexpr CacheBytes kCaches{48 << 10, 1 << 20, 32 << 20};

struct Hinted {
  HintedNames names;
  double hidden, way;
};
constexpr Hinted kHinted[] = {{kFetched, 0.7, 0.9}, {kFetchedNearby, 0.4, 0.95}, {kNonTemporal, 0.6, 0.8}};

// A machine that copies within a cache at one speed until a part of it is full, and then at the speed of the next one.
struct Machine {
  std::array<double, 3> rates{400e9, 200e9, 90e9};
  double memory_rate = 40e9, sure_part = 1, ahead = 6 << 10;

  double rate(size_t bytes) const {
    for (size_t i = 0; i < kCaches.size(); ++i)
      if (static_cast<double>(bytes) <= sure_part * static_cast<double>(kCaches[i])) return rates[i];
    return memory_rate;
  }
  Readings readings() const {
    Readings out;
    for (const size_t bytes : pass_sizes(kCaches)) {
      out[pass_name(bytes)] = 1 / rate(bytes);
      if (bytes > kCaches[1]) out[mostly_name(bytes)] = 1 / rate(bytes);
    }
    for (size_t i = 0; i < kCaches.size(); ++i)
      out[wait_name(waited_bytes(kCaches, i))] = 1e-9 * static_cast<double>(1 + 5 * i);
    out[wait_name(region_bytes(kCaches))] = 150e-9;
    for (const size_t piece : kPieceBytes) out[hidden_name(piece)] = static_cast<double>(piece) <= ahead ? 0.6 : 0.05;
    for (const auto& [names, hidden, way] : kHinted)
      out[std::string(names.hidden)] = hidden, out[std::string(names.way)] = way;
    out[std::string(kPieceApart)] = 40e-9;
    out[std::string(kRowApart)] = 17e-9, out[std::string(kRowTogether)] = 10e-9;
    out[std::string(kDisturbed)] = 0;
    out[std::string(kCall)] = 2e-9, out[std::string(kCallWithWindows)] = 2.5e-9;
    out[std::string(kPassByTwo)] = 1 / (1.25 * memory_rate);
    out[std::string(kJoined)] = 1e-6, out[std::string(kWoken)] = 5e-6;
    return out;
  }
};

TEST(MachineModel, SaysWhatIsRead) {
  const CostModel m = model_of(Machine().readings(), kCaches);
  ASSERT_EQ(m.memories.size(), 4u);
  for (size_t i = 0; i < kCaches.size(); ++i) {
    EXPECT_EQ(m.memories[i].bytes, static_cast<double>(kCaches[i])) << i;
    EXPECT_DOUBLE_EQ(m.memories[i].bytes_per_second, Machine().rates[i]) << i;
    EXPECT_DOUBLE_EQ(m.memories[i].latency_seconds, 1e-9 * static_cast<double>(1 + 5 * i)) << i;
  }
  EXPECT_EQ(m.memories[0].sure_bytes, 7.0 / 8 * (48 << 10));
  EXPECT_EQ(m.memories[1].sure_bytes, 7.0 / 8 * (1 << 20));
  EXPECT_EQ(m.memories[2].sure_bytes, 22 << 20)
      << "all is found of up to 28 MB, which others may use: on average of 22";
  EXPECT_EQ(m.memories[3].bytes, 0);
  EXPECT_DOUBLE_EQ(m.memories[3].bytes_per_second, 40e9);
  EXPECT_DOUBLE_EQ(m.memories[3].latency_seconds, 150e-9);
  EXPECT_EQ(m.ahead_bytes, 6 << 10);
  EXPECT_EQ(m.fetched_part, 0.7);
  EXPECT_EQ(m.fetched_way, 0.9);
  EXPECT_EQ(m.seconds_per_hinted_piece, 40e-9);
  EXPECT_EQ(m.fetched_part_nearby, 0.4);
  EXPECT_EQ(m.fetched_way_nearby, 0.95);
  EXPECT_EQ(m.non_temporal_part, non_temporal_kernel()->finish ? 0.6 : 0);
  EXPECT_EQ(m.non_temporal_way, non_temporal_kernel()->finish ? 0.8 : 1);
  EXPECT_NEAR(m.seconds_per_row, 0.4 * 3.5e-9, 1e-15) << "one is read and one is written, others beside them";
  EXPECT_NEAR(m.seconds_per_call, 5e-9, 1e-15) << "and what a kernel does before its first element";
  EXPECT_GT(m.apart, 1);
  EXPECT_NEAR(m.seconds_per_window, 0.5e-9, 1e-15);
  EXPECT_DOUBLE_EQ(m.workers_of_largest, 1.25);
  EXPECT_EQ(m.seconds_to_share, 5e-6) << "of threads that sleep, if that is more";
}

TEST(MachineModel, WorkersCostWhatCallingThemTakesAtMost) {
  Readings readings = Machine().readings();
  readings[std::string(kJoined)] = 7e-6;
  EXPECT_EQ(model_of(readings, kCaches).seconds_to_share, 7e-6);
  // Two threads are measured, and neither is taken to have less than it has alone.
  readings[std::string(kPassByTwo)] = 1 / 200e9;
  EXPECT_EQ(model_of(readings, kCaches).workers_of_largest, 2);
  readings[std::string(kPassByTwo)] = 1 / 20e9;
  EXPECT_EQ(model_of(readings, kCaches).workers_of_largest, 1);
}

// Without a second thread, nothing is measured for workers.
TEST(MachineModel, WithoutReadingsWorkersAreAsStated) {
  Readings readings = Machine().readings();
  for (const std::string_view name : {kPassByTwo, kJoined, kWoken}) readings.erase(std::string(name));
  const CostModel m = model_of(readings, kCaches), host = CostModel::host();
  EXPECT_EQ(m.workers_of_largest, host.workers_of_largest);
  EXPECT_EQ(m.seconds_to_share, host.seconds_to_share);
}

TEST(MachineModel, ACacheThatOthersUseCountsAsFarAsItIsFast) {
  Machine machine;
  machine.sure_part = 0.3;  // passes within half of a cache are as slow as in the next one
  const CostModel m = model_of(machine.readings(), kCaches);
  EXPECT_EQ(m.memories[2].bytes, 10 << 20) << "half of 16 are 8 of 9.6 MB, and nothing of 10, 12 and 14 is found";
  EXPECT_EQ(m.memories[2].sure_bytes, 8 << 20);
  EXPECT_DOUBLE_EQ(m.memories[2].bytes_per_second, 90e9);
  machine.sure_part = 0.7;
  const double sure = model_of(machine.readings(), kCaches).memories[1].sure_bytes;
  EXPECT_GE(sure, 5.0 / 8 * (1 << 20));
  EXPECT_LT(sure, 6.0 / 8 * (1 << 20)) << "it is as slow as the next one";
}

// Between measured parts, the speed is interpolated linearly: nine tenths are reached half way to eight.
TEST(MachineModel, ACacheIsSureToWhereItCeasesToBeAsFast) {
  Readings readings = Machine().readings();
  readings[pass_name(6 * (128 << 10))] = 1 / (0.8 * 200e9);
  readings[pass_name(7 * (128 << 10))] = 1 / (0.5 * 200e9);
  readings[pass_name(5 * (6 << 10))] = 1 / (0.8 * 400e9);
  EXPECT_NEAR(model_of(readings, kCaches).memories[0].sure_bytes, 4.5 * (6 << 10), 1);
  EXPECT_NEAR(model_of(readings, kCaches).memories[1].sure_bytes, 5.5 * (128 << 10), 1);
  readings[pass_name(6 * (128 << 10))] = 1 / (0.9 * 200e9);
  EXPECT_NEAR(model_of(readings, kCaches).memories[1].sure_bytes, 6 * (128 << 10), 1);
}

TEST(MachineModel, OfTheLargestCacheLessIsFoundTheMoreIsGoneThrough) {
  constexpr double kMegabyte = 1 << 20;
  Readings readings = Machine().readings();
  for (const int megabytes : {16, 20, 24, 28}) {
    const double lost = (megabytes - 12) / 20.0;
    readings[mostly_name(static_cast<size_t>(megabytes) << 20)] = (1 - lost) / 90e9 + lost / 40e9;
  }
  const CostModel::Memory largest = model_of(readings, kCaches).memories[2];
  EXPECT_NEAR(largest.sure_bytes, 12 * kMegabyte, 1);
  EXPECT_EQ(largest.bytes, 32 * kMegabyte);
  EXPECT_DOUBLE_EQ(largest.bytes_per_second, 90e9) << "of what is found, not of half of it";
}

// The median of the passes counts (three times out of four), not the quietest, which counts for the other figures.
TEST(MachineModel, WhatOthersMostlyLeaveOfTheLargestCacheCounts) {
  constexpr double kMegabyte = 1 << 20;
  Readings readings = Machine().readings();
  const auto mostly = [&](int megabytes, double found) {
    readings[mostly_name(static_cast<size_t>(megabytes) << 20)] = found / 90e9 + (1 - found) / 40e9;
  };
  mostly(8, 0.75);
  for (const int megabytes : {16, 20, 24, 28}) mostly(megabytes, 0.01);
  const CostModel::Memory third = model_of(readings, kCaches).memories[2];
  EXPECT_EQ(third.bytes, 16 * kMegabyte) << "from there on it is main memory";
  EXPECT_NEAR(third.sure_bytes, (16 - 8 / 0.75) * kMegabyte, 1);
  EXPECT_DOUBLE_EQ(third.bytes_per_second, 90e9);
  mostly(8, 0.01);
  const CostModel::Memory none = model_of(readings, kCaches).memories[2];
  EXPECT_EQ(none.bytes, 16 * kMegabyte);
  EXPECT_EQ(none.sure_bytes, 2 * kMegabyte) << "an eighth is";
}

// Fitted to measured schedules, not timed: docs/performance/lessons/cost-model.md.
TEST(MachineModel, SomeOfItIsNotTimed) {
  const CostModel m = model_of(Machine().readings(), kCaches);
  EXPECT_EQ(m.apart, 1.6);
  EXPECT_EQ(m.seconds_per_piece, 6e-9);
}

TEST(MachineModel, WhatIsHiddenIsNoMoreThanAllAndNoChance) {
  Readings readings = Machine().readings();
  const auto parts = [&](double read) {
    for (const Hinted& hinted : kHinted) readings[std::string(hinted.names.hidden)] = read;
    const CostModel m = model_of(readings, kCaches);
    return std::array{m.fetched_part, m.fetched_part_nearby, m.non_temporal_part};
  };
  const double past = non_temporal_kernel()->finish ? 1 : 0;
  EXPECT_EQ(parts(0.25), (std::array{0.25, 0.25, past * 0.25}));
  EXPECT_EQ(parts(1.3), (std::array{1.0, 1.0, past}));
  EXPECT_EQ(parts(0.15), (std::array{0.0, 0.0, past * 0.15})) << "non-temporal the way is another one, too";
}

// The least of main memory's tries beside what passes within the cache take three times of four: nothing would be
// found.
TEST(MachineModel, MainMemoryIsWhatItMostlyIsToo) {
  Readings readings = Machine().readings();
  for (auto& [name, seconds] : readings)
    if (name.ends_with(kMostly)) seconds *= 1.5;
  readings[mostly_name(region_bytes(kCaches))] = 3 / 40e9;
  EXPECT_GT(model_of(readings, kCaches).memories[2].sure_bytes, 16 << 20);
}

TEST(MachineModel, PiecesThatAreFetchedFitTheSmallestCache) {
  const auto of = [](size_t smallest) { return fetched_piece_bytes({smallest, 1 << 20, 32 << 20}); };
  EXPECT_EQ(of(64 << 10), 10u << 10);
  EXPECT_EQ(of(48 << 10), 8u << 10) << "four of them are two thirds";
  EXPECT_EQ(of((48 << 10) - 64), 7u << 10);
  EXPECT_EQ(of(32 << 10), 5u << 10);
  EXPECT_EQ(of(1 << 20), kPieceBytes.back()) << "none longer is timed";
  EXPECT_EQ(of(16 << 10), kPieceBytes.front()) << "none shorter is timed";
}

TEST(MachineModel, WhatIsNotReadIsThatOfTheUsualMachine) {
  const CostModel usual = CostModel::host(), none = model_of({}, kCaches);
  for (size_t i = 0; i < usual.memories.size(); ++i) {
    EXPECT_EQ(none.memories[i].bytes_per_second, usual.memories[i].bytes_per_second) << i;
    EXPECT_EQ(none.memories[i].latency_seconds, usual.memories[i].latency_seconds) << i;
  }
  EXPECT_EQ(none.seconds_per_call, usual.seconds_per_call);
  EXPECT_EQ(none.seconds_per_row, usual.seconds_per_row);
  EXPECT_EQ(none.ahead_bytes, usual.ahead_bytes);
  EXPECT_EQ(none.fetched_part, 0);
}

constexpr int64_t kMoment = MachineRecord::kMoment;
constexpr int kWanted = static_cast<int>(MachineRecord::kWanted);
Readings measured(double seconds, double disturbed) {
  return {{"a", seconds}, {"a mostly", seconds}, {"disturbed", disturbed}};
}

TEST(MachineRecord, WhatOthersOnlySlowIsTheBetterQuarterAndWhatTheyLeaveTheMedian) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) {
    EXPECT_FALSE(record.settled()) << i;
    record.add(measured(9 - i, 0), 0);
  }
  EXPECT_TRUE(record.settled());
  EXPECT_EQ(record.moments(), 1);
  EXPECT_EQ(record.readings().at("a"), 3);
  EXPECT_EQ(record.readings().at("a mostly"), 5);
}

// Non-temporal stores without a benefit cost main-memory traffic; omitting them loses what they gain.
TEST(MachineRecord, WhatIsGainedPastTheCachesIsWhatTheLeastQuarterSays) {
  MachineRecord record;
  const auto add = [&](double hidden, double way, int64_t when) {
    Readings readings = measured(1, 0);
    for (const HintedNames& names : {kNonTemporal, kFetched})
      readings[std::string(names.hidden)] = hidden, readings[std::string(names.way)] = way;
    record.add(std::move(readings), when);
  };
  const auto read = [&](const HintedNames& names) {
    const Readings readings = record.readings();
    return std::pair(readings.at(std::string(names.hidden)), readings.at(std::string(names.way)));
  };
  for (int i = 1; i <= 9; ++i) add(0.1 * i, 0.1 * i, 0);
  EXPECT_EQ(read(kFetched), std::pair(0.1 * 5, 0.1 * 5));
  EXPECT_EQ(read(kNonTemporal), std::pair(0.1 * 3, 0.1 * 7));
  for (int moment = 1; moment < 5; ++moment) add(1, 0.5, moment * kMoment);
  EXPECT_EQ(read(kNonTemporal), std::pair(1.0, 0.5)) << "in four moments of five";
}

TEST(MachineRecord, QuieterMeasurementsReplaceOthers) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(5, 0.5), 0);
  EXPECT_FALSE(record.settled()) << "they were disturbed";
  EXPECT_EQ(record.readings().at("a"), 5);
  record.add(measured(7, 0.9), 0);
  EXPECT_EQ(record.readings().at("a"), 5) << "it was disturbed more";
  for (int i = 0; i < kWanted / 2 + 1; ++i) {
    EXPECT_EQ(record.readings().at("a mostly"), 5);
    EXPECT_FALSE(record.settled());
    record.add(measured(1, MachineRecord::kQuiet), 0);
  }
  EXPECT_EQ(record.readings().at("a mostly"), 1);
}

// As many quiet ones as wanted: later ones of the same period change nothing, however quiet.
TEST(MachineRecord, QuietMeasurementsStay) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(2, MachineRecord::kQuiet / 2), 0);
  for (int i = 0; i < kWanted; ++i) record.add(measured(1, 0), kMoment - 1);
  EXPECT_EQ(record.readings().at("a"), 2);
}

TEST(MachineRecord, LoadThatStaysIsTakenForGranted) {
  MachineRecord record;
  while (!record.settled() && record.tried() < 100) record.add(measured(1, 0.5), 0);
  EXPECT_EQ(record.tried(), 2 * kWanted);
}

// All nine measurements were taken while others used shared resources.
TEST(MachineRecord, ABadMomentIsOutvotedByLaterOnes) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(2, 0), i);
  EXPECT_EQ(record.readings().at("a"), 2);
  record.add(measured(1, 0), kMoment);
  EXPECT_EQ(record.moments(), 2);
  EXPECT_EQ(record.readings().at("a"), 1) << "it can be done";
  EXPECT_EQ(record.readings().at("a mostly"), 2) << "one is as good as the other";
  record.add(measured(1, 0), 2 * kMoment);
  EXPECT_EQ(record.readings().at("a mostly"), 1) << "two of three";
  record.add(measured(2, 0), 3 * kMoment);
  record.add(measured(2, 0), 4 * kMoment);
  EXPECT_EQ(record.readings().at("a"), 1);
  EXPECT_EQ(record.readings().at("a mostly"), 2) << "three of five";
}

TEST(MachineRecord, MomentsReplaceOneAnotherOnceEachHasOneMeasurement) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(1, 0), i);
  for (int i = 1; i < kWanted; ++i) {
    EXPECT_EQ(record.moments(), i);
    record.add(measured(2, 0), i * kMoment + kWanted);
  }
  EXPECT_EQ(record.moments(), kWanted);
  EXPECT_EQ(record.readings().at("a"), 2) << "the third of nine";
  for (int i = kWanted; i < 2 * kWanted; ++i) record.add(measured(3, 0), i * kMoment + kWanted);
  EXPECT_EQ(record.moments(), kWanted);
  EXPECT_EQ(record.readings().at("a"), 3) << "the oldest have gone";
}

// Again after as long as the record has lasted: some thirteen times in a year.
TEST(MachineRecord, MeasurementsAreDueMoreAndMoreRarely) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) {
    EXPECT_TRUE(record.is_due(i)) << i;
    record.add(measured(1, 0), i);
  }
  std::vector<int64_t> hours;
  for (int64_t hour = 0; hour < 24 * 365; ++hour)
    if (const int64_t now = hour * kMoment + kWanted; record.is_due(now)) {
      EXPECT_FALSE(record.is_due(now - kMoment)) << hour;
      record.add(measured(1, 0), now);
      EXPECT_FALSE(record.is_due(now));
      hours.push_back(hour);
    }
  EXPECT_EQ(hours, (std::vector<int64_t>{1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 2047, 4095, 8191}));
}

// Later processes do not repeat a measurement that was disturbed by load.
TEST(MachineRecord, ADisturbedMeasurementIsDueAgainNoSooner) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(1, 0), 0);
  record.add(measured(9, 0.5), kMoment);
  EXPECT_EQ(record.moments(), 1) << "it was disturbed most";
  EXPECT_FALSE(record.is_due(kMoment + 1));
}

TEST(MachineRecord, AClockThatWasSetBackEndsNothing) {
  MachineRecord record;
  for (int i = 0; i < kWanted; ++i) record.add(measured(1, 0), 1000 * kMoment);
  EXPECT_TRUE(record.is_due(5 * kMoment));
  record.add(measured(1, 0), 5 * kMoment);
  EXPECT_EQ(record.moments(), 2);
  EXPECT_FALSE(record.is_due(5 * kMoment + 1));
  EXPECT_TRUE(record.is_due(6 * kMoment));
}

TEST(MachineRecord, TextSaysAllOfIt) {
  MachineRecord record;
  for (int i = 0; i < kWanted + 2; ++i) {
    const int64_t when = i / 2 * 2 * kMoment;
    record.add(Machine().readings(), when);
    const auto read = MachineRecord::from_text(record.to_text());
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    EXPECT_EQ(read->readings(), record.readings());
    EXPECT_EQ(read->tried(), record.tried());
    EXPECT_EQ(read->settled(), record.settled());
    EXPECT_EQ(read->moments(), record.moments());
    for (const int64_t later : {0 * kMoment, kMoment, 100 * kMoment})
      EXPECT_EQ(read->is_due(when + later), record.is_due(when + later)) << later;
    EXPECT_EQ(read->to_text(), record.to_text());
  }
}

TEST(MachineRecord, DamagedTextIsRefused) {
  MachineRecord record;
  record.add({{"a", 1e-9}, {"b", 2e-9}, {"disturbed", 0}}, 1000);
  const std::string text = record.to_text();
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(MachineRecord::from_text(text.substr(0, i)).ok()) << "cut after " << i;
    for (const char other : {'0', '\n', 'x', '\0'}) {
      std::string damaged = text;
      if (damaged[i] == other) continue;
      damaged[i] = other;
      EXPECT_FALSE(MachineRecord::from_text(damaged).ok()) << "byte " << i << " is " << int{other};
    }
  }
}

// The text up to the hash.
std::string body_of(const MachineRecord& record) {
  const std::string text = record.to_text();
  return text.substr(0, text.rfind('\n', text.size() - 2) + 1);
}

// With a valid hash.
TEST(MachineRecord, SpoiltTextsAreReadOrRefused) {
  tenon::testing::Spoilt texts{
      {}, {"measurement\t", "\t", "\n", "1e300", "1e-400", "-1", "nan", "inf", "x\t", "9999999999"}};
  MachineRecord record;
  for (size_t i = 0; i <= MachineRecord::kWanted; ++i) {
    texts.good.push_back(body_of(record));
    record.add({{"a", 1e-9}, {"b", 2e-9}, {"disturbed", 0.5}}, static_cast<int64_t>(i) * 1000);
  }
  tenon::testing::read_spoilt(texts, 5000, [](const std::string& body) {
    const auto read = MachineRecord::from_text(str(body, fnv1a(body), "\n"));
    if (!read.ok()) return false;
    EXPECT_GE(read->tried(), 0);
    const auto again = MachineRecord::from_text(read->to_text());
    EXPECT_TRUE(again.ok()) << again.error().to_string();
    if (again.ok()) {
      EXPECT_EQ(again->to_text(), read->to_text());
      EXPECT_EQ(again->readings(), read->readings());
    }
    return true;
  });
}

// Times are subtracted from each other, and tries are counted up.
TEST(MachineRecord, NumbersBeyondAllClocksAreRefused) {
  const std::string of_none = body_of(MachineRecord()), first_line = of_none.substr(0, of_none.find('\n'));
  const auto read = [&](const std::string& tried, const std::string& begun, const std::string& latest,
                        const std::string& when) {
    const std::string body = str(first_line, "\n", tried, "\n", begun, "\n", latest, "\nmeasurement\t", when, "\n");
    return MachineRecord::from_text(str(body, fnv1a(body), "\n")).ok();
  };
  const std::string latest = "9223372036854775807", before = "-9223372036854775808";
  EXPECT_TRUE(read("1", "0", latest, latest));
  EXPECT_FALSE(read("1", before, "0", "0"));
  EXPECT_FALSE(read("1", "0", before, "0"));
  EXPECT_FALSE(read("1", "0", "0", "-1"));
  EXPECT_FALSE(read("2147483647", "0", "0", "0"));
}

TEST(MachineRecord, TextOfAnotherVersionIsRefused) {
  MachineRecord record;
  record.add({{"a", 1e-9}, {"disturbed", 0}}, 1000);
  const std::string body = body_of(record);
  const auto read = [](const std::string& text) { return MachineRecord::from_text(str(text, fnv1a(text), "\n")); };
  EXPECT_TRUE(read(body).ok());
  const auto other = read("tenon-machine 0" + body.substr(body.find('\n')));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().to_string().find("another version"), std::string::npos) << other.error().to_string();
}

// Settled files are not measured again: without a new version, new readings would be missing for good.
TEST(MachineRecord, OtherReadingsAreThoseOfAnotherVersion) {
  std::string names;
  for (const auto& [name, seconds] : Machine().readings()) names += name + "\n";
  const std::string body = body_of(MachineRecord());
  constexpr std::pair<std::string_view, uint64_t> kStated{"tenon-machine 10", 0x316d8ce8f0cd9dc8};
  EXPECT_EQ(std::pair(std::string_view(body).substr(0, body.find('\n')), fnv1a(names)), kStated)
      << "if names are others, raise the version in machine_file.cpp; then state both here";
}

// A folder of the test's own; empty text: it does not exist (any more).
class WithFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text = (fs::temp_directory_path() / "tenon-machine-XXXXXX").string();
    ASSERT_NE(mkdtemp(text.data()), nullptr) << text << ": " << std::strerror(errno);
    folder_ = text;
  }
  ~WithFolder() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string folder_;
};

class RecordOfMachine : public WithFolder {
 protected:
  FileCache files() const { return {folder_, {.folder = "machine", .suffix = ".readings"}}; }
  MachineRecord record(const CacheBytes& caches = kCaches) {
    return record_of_machine(files(), caches, now_, [&](const CacheBytes&) {
      ++measurements_;
      Readings readings = Machine().readings();
      readings["disturbed"] = disturbed_;
      return readings;
    });
  }
  fs::path file() const { return fs::directory_iterator(folder_ + "/machine")->path(); }

  int measurements_ = 0;
  int64_t now_ = 1000;
  double disturbed_ = 0;
};

TEST_F(RecordOfMachine, IsMeasuredUntilItIsSettled) {
  int processes = 0, before = -1;
  for (; before != measurements_ && processes < 20; ++processes) before = measurements_, record();
  EXPECT_EQ(measurements_, static_cast<int>(MachineRecord::kWanted));
  EXPECT_EQ(processes, kWanted + 1) << "none waits for more than one of them";
  EXPECT_TRUE(record().settled());
  EXPECT_EQ(record().readings().at(std::string(kCall)), Machine().readings().at(std::string(kCall)));
}

TEST_F(RecordOfMachine, IsMeasuredOnceMoreWhenAMomentHasPassed) {
  while (!record().settled()) {}
  record();
  EXPECT_EQ(measurements_, kWanted);
  now_ += kMoment;
  EXPECT_EQ(record().moments(), 2);
  EXPECT_EQ(measurements_, kWanted + 1);
  EXPECT_EQ(record().moments(), 2);
  EXPECT_EQ(measurements_, kWanted + 1) << "by one process, and not by the next";
}

TEST_F(RecordOfMachine, GoesOnAfterLoad) {
  disturbed_ = 0.5;
  for (int i = 0; i < kWanted; ++i) EXPECT_FALSE(record().settled());
  disturbed_ = 0;
  for (int i = 1; i <= kWanted; ++i) EXPECT_EQ(record().settled(), i == kWanted);
}

TEST_F(RecordOfMachine, OtherCachesAreAnotherMachine) {
  const int once = record().tried();
  EXPECT_EQ(record().tried(), 2 * once);
  EXPECT_EQ(record({32 << 10, 1 << 20, 32 << 20}).tried(), once);
}

TEST_F(RecordOfMachine, FilesThatAreGoneOrDamagedAreMeasuredAnew) {
  const int once = record().tried();
  std::ofstream(file(), std::ios::app) << "x";
  EXPECT_EQ(record().tried(), once) << "nothing of the damaged file is taken";
  fs::remove(file());
  EXPECT_EQ(record().tried(), once);
  chmod(file().c_str(), 0622);
  EXPECT_EQ(record().tried(), once) << "others may have written it";
}

TEST_F(RecordOfMachine, WithoutAFolderItIsMeasuredEachTime) {
  folder_.clear();
  const int once = record().tried();
  EXPECT_EQ(record().tried(), once);
  EXPECT_EQ(measurements_, 2 * once);
}

class CachesOfMachine : public WithFolder {
 protected:
  void cache(int index, const std::string& level, const std::string& type, const std::string& size) const {
    const fs::path at = fs::path(folder_) / ("index" + std::to_string(index));
    fs::create_directory(at);
    std::ofstream(at / "level") << level << "\n";
    std::ofstream(at / "type") << type << "\n";
    std::ofstream(at / "size") << size << "\n";
  }
  CacheBytes read() const { return cache_bytes_in(folder_, kCaches); }
};

TEST_F(CachesOfMachine, AreThoseOfData) {
  cache(0, "1", "Data", "32K");
  cache(1, "1", "Instruction", "64K");
  cache(2, "2", "Unified", "2048K");
  cache(3, "3", "Unified", "16384K");
  EXPECT_EQ(read(), (CacheBytes{32 << 10, 2 << 20, 16 << 20}));
}

TEST_F(CachesOfMachine, WhatIsNotStatedIsLeft) {
  EXPECT_EQ(read(), kCaches) << "no files";
  cache(0, "1", "Data", "32K");
  cache(1, "2", "Unified", "2 MB");
  cache(2, "4", "Unified", "65536K");
  cache(4, "3", "Unified", "16384K");
  EXPECT_EQ(read(), (CacheBytes{32 << 10, kCaches[1], kCaches[2]})) << "no number, no such level, behind a gap";
  EXPECT_EQ(cache_bytes_in(fs::path(folder_) / "none", kCaches), kCaches);
}

// While asleep, a try has no processor, as while another thread has it.
TEST(Probe, WhatOtherThreadsShareTakesWhatTheClockSays) {
  constexpr std::chrono::milliseconds kAway{5};
  const auto seconds = [&](bool shared) {
    detail::Probe probe("away", 1, 1, [&] { std::this_thread::sleep_for(kAway); });
    if (shared) probe.is_shared();
    probe.take_round();
    EXPECT_EQ(probe.disturbed(), 1);
    return probe.seconds();
  };
  EXPECT_LT(seconds(false), 4e-3) << "those on the processor";
  EXPECT_GE(seconds(true), 5e-3);
}

// For the typical time, the first try at an address does not count, because data may be in no cache. A probe that does
// not move has only one such try.
TEST(Probe, TriesAtAPlaceThatHasBeenTriedCount) {
  const auto mostly = [](bool moves, int tries) {
    int done = 0;
    detail::Probe probe("slow at first", 1, tries, [&] {
      const double begin = detail::seconds_of(CLOCK_MONOTONIC), least = done++ == 0 ? 20e-3 : 1e-3;
      while (detail::seconds_of(CLOCK_MONOTONIC) - begin < least) {}
    });
    if (moves) probe.moves();
    for (int round = 0; round < 6; ++round) probe.take_round();
    return probe.mostly_seconds();
  };
  EXPECT_LT(mostly(false, 1), 15e-3);
  EXPECT_LT(mostly(true, 2), 15e-3);
}

// The readings are those that the model needs, in a plausible order.
TEST(ReadMachine, ReadsAllThatTheModelAsksFor) {
  const Readings wanted = Machine().readings(), read = read_machine(kCaches);
  for (const auto& [name, seconds] : wanted) EXPECT_TRUE(read.contains(name)) << name;
  EXPECT_EQ(read.size(), wanted.size());
  for (const auto& [name, seconds] : read) {
    const bool part = name == kDisturbed || name.starts_with(kHidden), times = name.starts_with(kWay);
    EXPECT_GE(seconds, part ? 0 : 1e-15) << name;
    EXPECT_LE(seconds, part ? 2 : times ? 10 : 1e-3) << name;
  }
  // Of a byte. Two threads are not much faster than twice one, and without a processor for each slower.
  const double faster = read.at(pass_name(region_bytes(kCaches))) / read.at(std::string(kPassByTwo));
  EXPECT_GT(faster, 1.0 / 32);
  EXPECT_LT(faster, 8);
}

}  // namespace
}  // namespace tenon::program
