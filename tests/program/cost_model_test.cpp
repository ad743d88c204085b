// Cost models of targets and of the machine (program/schedule/auto_schedule.hpp).
#include <tenon/program/schedule/auto_schedule.hpp>

#include <gtest/gtest.h>

namespace tenon::program {
namespace {

MemorySpace space(const char* name, uint64_t bytes, std::optional<Bandwidth> bandwidth = {}) {
  MemorySpace m;
  m.name = name;
  m.size_bytes = bytes;
  m.bandwidth = bandwidth;
  return m;
}

// A memory without a stated speed must not make the next smaller one count as unlimited.
TEST(CostModel, KeepsMemoriesWithoutABandwidth) {
  TargetDescription target;
  target.memories = {space("dram", 1 << 30), space("l1", 32 << 10, Bandwidth{64, Bandwidth::Per::cycle}),
                     space("l2", 1 << 20, Bandwidth{80e9, Bandwidth::Per::second}), space("l3", 32 << 20)};
  const CostModel model = CostModel::of(target);
  ASSERT_EQ(model.memories.size(), 4u);
  EXPECT_EQ(model.memories[0].bytes_per_second, 80e9) << "without a clock nothing is said of L1";
  EXPECT_EQ(model.memories[1].bytes, 1 << 20);
  EXPECT_EQ(model.memories[2].bytes_per_second, model.memories[3].bytes_per_second);
  EXPECT_EQ(model.memories[3].bytes, 0) << "the largest holds anything";
  EXPECT_GT(model.memories[3].bytes_per_second, 0);
  target.clock_hz = 2'000'000'000;
  EXPECT_EQ(CostModel::of(target).memories[0].bytes_per_second, 128e9);
}

// A single memory says nothing about caches: with it alone, no strip would ever pay.
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

// The key that makes generated code prefetch makes loops over calls prefetch as well.
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

}  // namespace
}  // namespace tenon::program
