#include <tenon/runtime/arena_plan.hpp>

#include <tenon/runtime/memory_plan.hpp>

namespace tenon {

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, size_t align) {
  std::vector<MemoryBlock> blocks;
  blocks.reserve(lifetimes.size());
  for (const Lifetime& life : lifetimes) blocks.push_back({.bytes = life.bytes, .first = life.first, .last = life.last});
  const MemorySpace arena{.align_bytes = align};
  auto plan = plan_memory(blocks, std::span(&arena, 1));
  if (!plan.ok()) return {std::vector<size_t>(lifetimes.size(), 0), SIZE_MAX, SIZE_MAX};
  return {std::move(plan->offsets), plan->spaces[0].bytes, plan->spaces[0].lower_bound_bytes};
}

}  // namespace tenon
