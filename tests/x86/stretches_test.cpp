// The cache lines that one iteration of a loop accesses.
#include "x86/passes/internal.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <gtest/gtest.h>

namespace tenon::x86 {
namespace {

Instruction load(RegisterId base, int64_t displacement_bytes) {
  return {.op = "Load",
          .out = {0},
          .memory = Memory{.element = kF32, .base = base, .displacement_bytes = displacement_bytes}};
}

TEST(Stretches, AreOneForEachPointerInTheOrderOfTheFirstTouch) {
  LinearKernel kernel;
  kernel.lanes = 8;
  Stretches stretches;
  for (const auto& [base, at] : {std::pair{7, 32}, {3, 0}, {7, 0}, {7, 96}}) stretches.add(kernel, load(base, at));
  ASSERT_EQ(stretches.touched().size(), 2u);
  EXPECT_EQ(stretches.touched()[0].memory.base, 7);
  EXPECT_EQ(stretches.touched()[0].begin, 0);
  EXPECT_EQ(stretches.touched()[0].end, 128);
  EXPECT_FALSE(stretches.touched()[0].written);
  EXPECT_EQ(stretches.touched()[1].memory.base, 3);
  EXPECT_EQ(stretches.touched()[1].end, 32);
  stretches.clear();
  stretches.add(kernel, load(3, 64));
  ASSERT_EQ(stretches.touched().size(), 1u);
  EXPECT_EQ(stretches.touched()[0].begin, 64);
}

TEST(Stretches, TimeGrowsWithTheNumberOfPointers) {
  const auto milliseconds_for = [](int pointers) {
    LinearKernel kernel;
    Stretches stretches;
    const Instruction one = load(0, 0);
    const std::clock_t begin = std::clock();  // processor time, since other processes may use the machine
    for (int round = 0; round < 2; ++round)
      for (RegisterId base = 0; base < pointers; ++base) {
        Instruction next = one;
        next.memory->base = base;
        stretches.add(kernel, next);
      }
    EXPECT_EQ(stretches.touched().size(), static_cast<size_t>(pointers));
    return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double small = milliseconds_for(1000), large = milliseconds_for(50000);
  std::printf("1,000 pointers: %.2f ms, 50,000 pointers: %.2f ms\n", small, large);
  EXPECT_LT(large, 500 * std::max(small, 0.1));  // fifty times as many; quadratic growth would be 2,500
}

}  // namespace
}  // namespace tenon::x86
