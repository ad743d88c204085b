#include <tenon/runtime/arena_plan.hpp>

#include <algorithm>

#include <tenon/runtime/memory_plan.hpp>

namespace tenon {
namespace {

// A tenth of a second at most, spent only where the bound is missed: networks of a few hundred blocks are searched
// thoroughly, graphs of many thousands briefly.
constexpr size_t kLooks = 2'000'000, kFewBlocks = 100;

size_t effort_for(size_t blocks) { return std::max(kLooks / std::max(blocks, kFewBlocks), PlanOptions::kSwift); }

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, size_t align) {
  std::vector<MemoryBlock> blocks;
  blocks.reserve(lifetimes.size());
  for (const Lifetime& life : lifetimes)
    blocks.push_back({.bytes = life.bytes, .first = life.first, .last = life.last});
  const ArenaSpace arena{.align_bytes = align};
  auto plan = plan_memory(blocks, std::span(&arena, 1), {.effort = effort_for(blocks.size())});
  if (!plan.ok()) return {std::vector<size_t>(lifetimes.size(), 0), SIZE_MAX, SIZE_MAX};
  return {std::move(plan->offsets), plan->spaces[0].bytes, plan->spaces[0].lower_bound_bytes};
}

}  // namespace tenon
