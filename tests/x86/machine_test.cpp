#include "x86/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "x86/isa.hpp"

namespace tenon::x86 {
namespace {

TargetDescription stated() {
  TargetDescription target;
  target.memories = {
      {.name = "host", .size_bytes = 9, .prefetch_reads = 3, .prefetch_writes = 2, .prefetch_level = 2, .streams = 4},
      {.name = "l3", .size_bytes = 7, .prefetch_reads = 64, .prefetch_writes = 48},
      {.name = "l2", .size_bytes = 5},
      {.name = "l1", .size_bytes = 3}};
  return target;
}

TEST(Machine, TakesOverTheCachesOfACore) {
  TargetDescription expected = stated();
  expected.memories[2].size_bytes = 2000, expected.memories[3].size_bytes = 1000;
  EXPECT_EQ(described(stated(), {"GenuineIntel", 6, 1000, 2000}), expected);
  EXPECT_EQ(described(stated(), {"GenuineIntel", 6, 0, 0}), stated()) << "it does not say";
  EXPECT_EQ(described({}, {"GenuineIntel", 6, 1000, 2000}), TargetDescription()) << "none are added";
}

TEST(Machine, HasPermutationsOfBytes) {
  const Machine has{.vendor = "GenuineIntel", .family = 6, .has_vbmi = true};
  TargetDescription target = stated();
  target.features = {"avx2", "avx512f"};
  EXPECT_FALSE(has_vbmi(described(target, {"GenuineIntel", 6, 0, 0})));
  const TargetDescription made = described(target, has);
  EXPECT_TRUE(has_vbmi(made));
  EXPECT_EQ(described(made, has), made) << "once";
  target.features = {"avx2"};
  EXPECT_EQ(described(target, has), target) << "its vectors have 256 bits";
}

TEST(Machine, SaysHowLoopsWalk) {
  TargetDescription near = stated();
  near.memories[1].prefetch_reads = near.memories[1].prefetch_writes = 0;
  near.memories[0].prefetch_level = 1;
  EXPECT_EQ(described(stated(), {"AuthenticAMD", 0x1a, 0, 0}), near);
  TargetDescription older = near;
  older.memories[0].prefetch_reads = older.memories[0].prefetch_writes = 0, older.memories[0].streams = 2;
  older.memories[0].load_bytes = 32;
  EXPECT_EQ(described(stated(), {"AuthenticAMD", 0x19, 0, 0}), older);
  EXPECT_EQ(described(stated(), {"HygonGenuine", 0x18, 0, 0}), older);
  EXPECT_EQ(described(stated(), {"AuthenticAMD", 0x15, 0, 0}), stated()) << "before Zen";
  EXPECT_EQ(described(stated(), {"GenuineIntel", 0x1a, 0, 0}), stated());
}

TEST(Machine, RatesAreThoseOfWhatHoldsAsMuch) {
  program::CostModel model;
  model.memories = {{"L1", 4, 400}, {"L2", 6, 200}, {"memory", 0, 40}};
  const TargetDescription made = rated(stated(), model, 4.1e9);
  EXPECT_EQ(made.clock_hz, 4'100'000'000u);
  std::vector<double> rates;
  for (const MemorySpace& memory : made.memories) rates.push_back(memory.bandwidth->bytes_per_second(made.clock_hz));
  EXPECT_THAT(rates, testing::ElementsAre(40, 40, 200, 400)) << "host and l3 exceed all caches";
  EXPECT_EQ(rated(stated(), {}, 1e9).memories, stated().memories) << "nothing is known";
}

TEST(Machine, VectorsOf512BitsTakeBothUnitsBeforeZen5) {
  const auto macs = [](uint64_t lanes, const Machine& machine) {
    TargetDescription target;
    target.engines = {{.name = "fma", .macs_per_cycle = 2 * lanes, .lanes = lanes}};
    return described(target, machine).engines[0].macs_per_cycle;
  };
  EXPECT_EQ(macs(16, {"AuthenticAMD", 0x19, 0, 0}), 16u);
  EXPECT_EQ(macs(8, {"AuthenticAMD", 0x19, 0, 0}), 16u);
  EXPECT_EQ(macs(16, {"AuthenticAMD", 0x1a, 0, 0}), 32u);
  EXPECT_EQ(macs(16, {"GenuineIntel", 6, 0, 0}), 32u);
}

// The frequency is plausible, and the same for all callers.
TEST(Machine, HasAClock) {
  EXPECT_GT(clock_hz(), 0.2e9);
  EXPECT_LT(clock_hz(), 8e9);
  EXPECT_EQ(clock_hz(), clock_hz());
}

// Cache sizes that the processor reports, if any, are plausible.
TEST(Machine, SaysSomethingSensible) {
  const Machine& asked = machine();
  EXPECT_EQ(asked.vendor.size(), 12u);
  EXPECT_GT(asked.family, 0u);
  if (asked.l1_bytes > 0) {
    EXPECT_GE(asked.l1_bytes, 8u << 10);
    EXPECT_LE(asked.l1_bytes, 1u << 20);
  }
  if (asked.l2_bytes > 0) {
    EXPECT_GE(asked.l2_bytes, asked.l1_bytes);
    EXPECT_LE(asked.l2_bytes, 256u << 20);
  }
}

}  // namespace
}  // namespace tenon::x86
