// The tile of a work group: its size for different machines, and that its traversals of panels fetch each element once,
// from adjacent addresses, into different banks. No device is needed.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include <support_lib/environment.hpp>
#include <support_lib/random_tensor.hpp>

#include "opencl/compute/group_tile.hpp"
#include "opencl/emitters/emitters.hpp"

namespace tenon::opencl::testing {
namespace {

using tenon::testing::pick;

constexpr int64_t kBanks = 32;

class GroupTileTest : public ::testing::Test {
 protected:
  // targets/opencl-gpu.yaml on a card of 100 units.
  ComputeTarget card() const { return {description_, **jitter_table(), 64, 4, 32 << 10, 100}; }

 private:
  TargetDescription description_;
};

TEST_F(GroupTileTest, OfLargeMatricesIsEightByEightSumsOfEachItem) {
  const GroupTile tile = choose_group_tile({4096, 4096, 4096}, 1, kF32, card());
  EXPECT_EQ(tile.rows, 8);
  EXPECT_EQ(tile.vectors * tile.lanes, 8);
  EXPECT_EQ(tile.block_rows(), 64);
  EXPECT_EQ(tile.columns(), 64);
  EXPECT_EQ(tile.depth, 16);
  EXPECT_TRUE(tile.ahead);
  // Extents that are known only at run time are assumed to be large.
  const GroupTile unknown = choose_group_tile({}, 1, kF32, card());
  EXPECT_EQ(unknown.block_rows(), 64);
  EXPECT_EQ(unknown.columns(), 64);
}

TEST_F(GroupTileTest, FitsTheExtentsAndTheUnits) {
  // 8 blocks of 64 x 64 would leave most of 100 units without work.
  const GroupTile last_layers = choose_group_tile({512, 49, 4608}, 1, kF32, card());
  EXPECT_LT(last_layers.block_rows() * last_layers.columns(), 64 * 64);
  EXPECT_GT(last_layers.jobs(512, 49, 1), 50);
  // A tile does not exceed the extents by much, since work on rows that do not exist is wasted.
  EXPECT_LE(choose_group_tile({4, 50176, 27}, 1, kF32, card()).block_rows(), 4);
  EXPECT_LE(choose_group_tile({1000000, 8, 64}, 1, kF32, card()).columns(), 8);
  EXPECT_LE(choose_group_tile({4096, 4096, 3}, 1, kF32, card()).depth, 4);
}

TEST_F(GroupTileTest, KeepsTheBoundsOfTheTarget) {
  ComputeTarget little = card();
  little.local_bytes = 4 << 10;
  EXPECT_LE(choose_group_tile({}, 1, kF32, little).local_bytes(kF32), 2 << 10);
  ComputeTarget few = card();
  few.tiling.registers = 16;  // room for the sums only
  const GroupTile bare = choose_group_tile({}, 1, kF32, few);
  EXPECT_LE(bare.rows * bare.vectors, 16);
  ComputeTarget narrow = card();
  narrow.tiling.rows = 4, narrow.tiling.vectors = 1, narrow.tiling.depth = 5;
  const GroupTile small = choose_group_tile({}, 1, kF32, narrow);
  EXPECT_LE(small.rows, 4);
  EXPECT_EQ(small.vectors, 1);
  EXPECT_EQ(small.depth, 4) << "a power of two";
}

TEST_F(GroupTileTest, NeedsSeveralItemsAndLocalMemory) {
  EXPECT_TRUE(works_in_groups(card()));
  ComputeTarget none = card();
  none.tiling.local = false;
  EXPECT_FALSE(works_in_groups(none));
  ComputeTarget alone = card();
  alone.work_group = 1;
  EXPECT_FALSE(works_in_groups(alone));
}

TEST_F(GroupTileTest, FetchesAheadWhereThereAreRegisters) {
  ComputeTarget target = card();
  target.tiling.exact = true, target.tiling.rows = 8, target.tiling.vectors = 2;
  EXPECT_TRUE(choose_group_tile({}, 1, kF32, target).ahead);
  EXPECT_EQ(choose_group_tile({}, 1, kF32, target).depth, 16);
  target.tiling.registers = 20;
  EXPECT_TRUE(choose_group_tile({}, 1, kF32, target).ahead);
  EXPECT_EQ(choose_group_tile({}, 1, kF32, target).depth, 8) << "half as deep";
  target.tiling.registers = 16;
  EXPECT_FALSE(choose_group_tile({}, 1, kF32, target).ahead);
  EXPECT_EQ(choose_group_tile({}, 1, kF32, target).depth, 16);
}

// The line and step of the element that item `own` fetches in load `i`, if any, as in the code of define_group_tile().
std::optional<std::pair<int64_t, int64_t>> element(const PanelWalk& walk, const GroupTile& tile, int64_t lines,
                                                   int64_t own, int64_t i) {
  const int64_t first = own % walk.span, behind = own / walk.span;
  const int64_t line = (walk.along ? behind : first) + i % walk.passes * (walk.along ? walk.stride : walk.span);
  const int64_t k = (walk.along ? first : behind) + i / walk.passes * (walk.along ? walk.span : walk.stride);
  if (own >= walk.span * walk.stride || line >= lines || k >= tile.depth) return std::nullopt;
  return std::pair(line, k);
}

TEST_F(GroupTileTest, WalksFetchEachElementOnce) {
  const uint32_t seed = tenon::testing::first_seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    ComputeTarget target = card();
    target.work_group = pick(random, 2, round % 2 ? 300 : 64);
    target.tiling.depth = pick(random, 1, 20);
    const ProductExtents extents{pick(random, 1, 300), pick(random, 1, 300), pick(random, 1, 60)};
    const GroupTile tile = choose_group_tile(extents, 1, round % 3 ? kF32 : kF64, target);
    for (const int64_t lines : {tile.block_rows(), tile.columns()})
      for (const bool along : {false, true}) {
        const PanelWalk walk = PanelWalk::of(tile, lines, along);
        std::set<std::pair<int64_t, int64_t>> seen;
        for (int64_t own = 0; own < tile.group; ++own)
          for (int64_t i = 0; i < walk.loads(); ++i) {
            const auto at = element(walk, tile, lines, own, i);
            EXPECT_TRUE(!at || seen.insert(*at).second) << at->first << ", " << at->second;
          }
        EXPECT_EQ(static_cast<int64_t>(seen.size()), lines * tile.depth)
            << lines << " lines of " << tile.depth << " steps by " << tile.group << " items";
      }
  }
}

TEST_F(GroupTileTest, NeighboursFetchNeighboursAndStoreIntoDifferentBanks) {
  const GroupTile tile = choose_group_tile({}, 1, kF32, card());
  for (const bool along : {false, true}) {
    const PanelWalk walk = PanelWalk::of(tile, tile.columns(), along);
    for (int64_t i = 0; i < walk.loads(); ++i) {
      std::set<int64_t> banks, segments;
      for (int64_t own = 0; own < kBanks; ++own) {
        const auto at = element(walk, tile, tile.columns(), own, i);
        ASSERT_TRUE(at);
        banks.insert((at->second * tile.b_pitch() + at->first) % kBanks);
        // Segments of 8 elements: steps are contiguous in rows of 1024, or lines are.
        segments.insert((along ? at->first * 1024 + at->second : at->second * 1024 + at->first) / 8);
      }
      EXPECT_EQ(banks.size(), static_cast<size_t>(kBanks)) << "along " << along;
      EXPECT_EQ(segments.size(), 4u) << "along " << along;
    }
  }
}

}  // namespace
}  // namespace tenon::opencl::testing
