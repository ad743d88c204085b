#include <tenon/program/exec/arenas_internal.hpp>

#include <algorithm>

#include <tenon/runtime/arena_plan.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program::detail {
namespace {

// Plans one space of one region.
void plan_space(std::vector<PlannedBlock*>& blocks, ArenaRegion& region, const std::string& space) {
  std::vector<Lifetime> lives;
  size_t align = kAlignBytes;
  for (const PlannedBlock* b : blocks) {
    align = std::max(align, static_cast<size_t>(b->align));
    lives.push_back({static_cast<size_t>(b->bytes), static_cast<size_t>(b->first), static_cast<size_t>(b->last)});
  }
  const ArenaPlan plan = plan_arena(lives, align);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i]->offset = static_cast<int64_t>(plan.offsets[i]);
  // A worker's part is aligned at its end, so that the next one begins aligned.
  region.bytes[space] = static_cast<int64_t>((plan.bytes + align - 1) / align * align);
  region.bound[space] = static_cast<int64_t>(plan.lower_bound_bytes);
}

}  // namespace

void plan_arenas(std::vector<PlannedBlock>& blocks, std::vector<ArenaRegion>& regions) {
  for (size_t r = regions.size(); r-- > 0;) {
    std::map<std::string, std::vector<PlannedBlock*>> by_space;
    for (PlannedBlock& b : blocks)
      if (b.region == static_cast<int32_t>(r) && b.first <= b.last) by_space[b.space].push_back(&b);
    std::vector<std::pair<ArenaRegion*, PlannedBlock>> inner;
    for (size_t i = r + 1; i < regions.size(); ++i) {
      if (regions[i].outer != static_cast<int32_t>(r)) continue;
      for (const auto& [space, bytes] : regions[i].bytes)
        inner.push_back(
            {&regions[i], {-1, space, bytes * regions[i].workers, 1, regions[i].first, regions[i].last, 0, 0}});
    }
    for (auto& [region, block] : inner) by_space[block.space].push_back(&block);
    for (auto& [space, list] : by_space) plan_space(list, regions[r], space);
    for (const auto& [region, block] : inner) region->offset[block.space] = block.offset;
  }
}

}  // namespace tenon::program::detail
