#include <tenon/runtime/arena_plan.hpp>

#include <gtest/gtest.h>

#include <random>

namespace tenon {
namespace {

constexpr size_t kAlign = 64;
size_t rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Blocks that are live at the same step must not share bytes, and all must be inside the arena.
void expect_sound(const std::vector<Lifetime>& lives, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kAlign, 0u);
    EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool apart = plan.offsets[i] + rounded(lives[i].bytes) <= plan.offsets[j] ||
                         plan.offsets[j] + rounded(lives[j].bytes) <= plan.offsets[i];
      // Blocks without bytes take no place.
      EXPECT_TRUE(!together || apart || lives[i].bytes == 0 || lives[j].bytes == 0) << "blocks " << j << " and " << i;
    }
  }
  EXPECT_GE(plan.bytes, plan.lower_bound_bytes);
}

TEST(PlanArena, NothingTakesNothing) {
  const ArenaPlan plan = plan_arena({});
  EXPECT_EQ(plan.bytes, 0u);
  EXPECT_EQ(plan.lower_bound_bytes, 0u);
}

TEST(PlanArena, AChainNeedsTwoBlocks) {
  std::vector<Lifetime> lives;
  for (size_t i = 0; i < 10; ++i) lives.push_back({100, i, i + 1});
  const ArenaPlan plan = plan_arena(lives);
  expect_sound(lives, plan);
  EXPECT_EQ(plan.lower_bound_bytes, 256u);
  EXPECT_EQ(plan.bytes, 256u);
}

TEST(PlanArena, ALargeBlockTakesThePlaceOfSmallNeighbours) {
  const std::vector<Lifetime> lives = {{64, 0, 1}, {64, 0, 1}, {64, 0, 5}, {128, 2, 3}};
  const ArenaPlan plan = plan_arena(lives);
  expect_sound(lives, plan);
  EXPECT_EQ(plan.bytes, 192u);
}

TEST(PlanArena, RandomLivesAreSoundAndNearTheBound) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Lifetime> lives;
    for (size_t i = 0; i < 60; ++i) {
      const size_t first = random() % 50;
      lives.push_back({random() % 5000, first, first + random() % 8});
    }
    const ArenaPlan plan = plan_arena(lives);
    expect_sound(lives, plan);
    worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound_bytes));
  }
  EXPECT_LT(worst, 1.35);  // greedy placement of random lives; a real network's are far more regular
}

TEST(PlanArena, ManyBlocksStaySound) {
  std::mt19937_64 random(7);
  std::vector<Lifetime> lives;
  for (size_t i = 0; i < 2548; ++i) lives.push_back({1 + random() % 900, i, i + 1 + random() % 20});
  expect_sound(lives, plan_arena(lives));
}

TEST(PlanArena, IsDeterministic) {
  const std::vector<Lifetime> lives = {{10, 0, 3}, {300, 1, 2}, {70, 2, 4}, {10, 3, 4}};
  EXPECT_EQ(plan_arena(lives).offsets, plan_arena(lives).offsets);
}

}  // namespace
}  // namespace tenon
