#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <tenon/runtime/memory_plan.hpp>

namespace tenon {
namespace {

using testing::HasSubstr;

const std::vector<ArenaSpace> kOne = {{.name = "scratchpad"}};

TEST(VerifyPlan, FindsWhatIsWrong) {
  const std::vector<MemoryBlock> blocks = {{.bytes = 8, .first = 0, .last = 2, .name = "x"},
                                           {.bytes = 8, .first = 2, .last = 3, .name = "y"}};
  const auto complaint = [&](std::vector<size_t> offsets, size_t bytes) {
    const auto sound = verify_plan(blocks, kOne, {std::move(offsets), {SpacePlan{bytes, 0, 0, {}}}});
    return sound.ok() ? std::string("sound") : sound.error().message();
  };
  EXPECT_EQ(complaint({0, 8}, 16), "sound");
  EXPECT_THAT(complaint({0, 4}, 16), HasSubstr("block 'x' of 8 bytes at offset 0 of 'scratchpad' overlaps block 'y'"));
  EXPECT_THAT(complaint({0, 8}, 15), HasSubstr("ends beyond the plan's 15 bytes"));
  EXPECT_THAT(complaint({0}, 16), HasSubstr("1 offsets"));
}

// Blocks and spaces that no planner took: what a caller put together from a file, say.
TEST(VerifyPlan, RefusesInvalidBlocksAndSpaces) {
  const auto complaint = [](const MemoryBlock& block, const ArenaSpace& space) {
    const std::vector<MemoryBlock> blocks = {block, {.bytes = 8, .last = 3, .name = "y"}};
    const std::vector<ArenaSpace> spaces = {space, {.name = "other"}};
    const auto sound = verify_plan(blocks, spaces, {{0, 8}, {SpacePlan{16, 0, 0, {}}, SpacePlan{16, 0, 0, {}}}});
    return sound.ok() ? std::string("sound") : sound.error().message();
  };
  const ArenaSpace plain = {.name = "a"}, banked = {.name = "a", .bank_bytes = 8};
  EXPECT_EQ(complaint({.bytes = 8, .last = 2, .bank = 0, .apart_from = {1}, .name = "x"}, banked), "sound");
  EXPECT_THAT(complaint({.bytes = 8, .name = "x"}, {.name = "a", .align_bytes = 0}),
              HasSubstr("space 'a' has an alignment of 0"));
  EXPECT_THAT(complaint({.bytes = 8, .align_bytes = 0, .name = "x"}, plain),
              HasSubstr("block 'x' of 8 bytes has an alignment of 0"));
  EXPECT_THAT(complaint({.bytes = 8, .bank = 0, .name = "x"}, plain),
              HasSubstr("block 'x' of 8 bytes must lie in bank 0 of 'a', which has banks of 0 bytes"));
  EXPECT_THAT(complaint({.bytes = 8, .apart_from = {1}, .name = "x"}, plain),
              HasSubstr("block 'x' of 8 bytes must share no bank with block 1"));
  EXPECT_THAT(complaint({.bytes = 8, .apart_from = {2}, .name = "x"}, banked),
              HasSubstr("block 'x' of 8 bytes must share no bank with block 2"));
  EXPECT_THAT(complaint({.bytes = 8, .space = 2, .name = "x"}, plain), HasSubstr("lies in space 2"));
}

// The rules, implemented independently, one by one and pair by pair.
bool sound(const std::vector<MemoryBlock>& blocks, const std::vector<ArenaSpace>& spaces, const MemoryPlan& plan) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MemoryBlock& a = blocks[i];
    const ArenaSpace& space = spaces[a.space];
    const size_t at = plan.offsets[i], last = at + std::max<size_t>(a.bytes, 1) - 1;
    if (at % a.align_bytes != 0 || at % space.align_bytes != 0 || (a.pinned && *a.pinned != at)) return false;
    if (a.bytes == 0) continue;
    if (last >= plan.spaces[a.space].bytes) return false;
    if (a.bank && (at / space.bank_bytes != *a.bank || last / space.bank_bytes != *a.bank)) return false;
    if (a.window_bytes > 0 && at / a.window_bytes != last / a.window_bytes) return false;
    for (size_t j = 0; j < i; ++j) {
      const MemoryBlock& b = blocks[j];
      if (b.space != a.space || b.bytes == 0 || a.last < b.first || b.last < a.first) continue;
      if (at < plan.offsets[j] + b.bytes && plan.offsets[j] <= last) return false;
    }
  }
  return true;
}

// Each mutant of a valid plan is judged as the rules judge it, and most of them violate one.
TEST(VerifyPlan, KillsMutants) {
  size_t broken = 0, kept = 0, refused = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::vector<ArenaSpace> spaces = {{.name = "a", .align_bytes = 4, .bank_bytes = 64}, {.name = "b"}};
    std::vector<MemoryBlock> blocks;
    for (size_t i = 0; i < 30; ++i) {
      const size_t first = random() % 15;
      blocks.push_back({.bytes = random() % 40, .first = first, .last = first + random() % 6, .space = random() % 2});
      if (random() % 5 == 0) blocks.back().align_bytes = 16;
      if (random() % 8 == 0) blocks.back().window_bytes = 64;
      if (blocks.back().space == 0 && random() % 8 == 0) blocks.back().bank = random() % 3;
    }
    const auto plan = plan_memory(blocks, spaces);
    if (!plan.ok()) {  // a bank with more than it holds
      ++refused;
      continue;
    }
    ASSERT_TRUE(sound(blocks, spaces, *plan));
    for (size_t mutation = 0; mutation < 200; ++mutation) {
      MemoryPlan mutant = *plan;
      const size_t i = random() % blocks.size(), j = random() % blocks.size();
      switch (random() % 4) {
        case 0: mutant.offsets[i] += 1 + random() % 8; break;
        case 1: mutant.offsets[i] -= std::min<size_t>(mutant.offsets[i], 4); break;
        case 2: mutant.offsets[i] = mutant.offsets[j]; break;
        default: std::swap(mutant.offsets[i], mutant.offsets[j]);
      }
      const bool right = sound(blocks, spaces, mutant);
      ASSERT_EQ(verify_plan(blocks, spaces, mutant).ok(), right)
          << "mutation " << mutation << ", blocks " << i << " and " << j;
      ++(right ? kept : broken);
    }
  }
  EXPECT_LT(refused, 60u);
  EXPECT_GT(broken, kept);
  EXPECT_GT(kept, 0u);
}

}  // namespace
}  // namespace tenon
