#include <map>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon {
namespace memory {
namespace {

bool may_coincide(std::span<const MemoryBlock> blocks, size_t a, size_t b) {
  const auto permits = [&](size_t dead, size_t born) {
    return blocks[dead].last == blocks[born].first && std::ranges::count(blocks[born].in_place_of, dead) > 0;
  };
  return permits(a, b) || permits(b, a);
}

}  // namespace

std::string describe(std::span<const MemoryBlock> blocks, size_t block) {
  return blocks[block].name.empty() ? str("block ", block) : str("block '", blocks[block].name, "'");
}

bool share_bank(const MemoryBlock& a, size_t a_offset, const MemoryBlock& b, size_t b_offset, size_t bank_bytes) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  return a_offset / bank_bytes <= (b_offset + b.bytes - 1) / bank_bytes &&
         b_offset / bank_bytes <= (a_offset + a.bytes - 1) / bank_bytes;
}

// A sweep over time, with the live blocks sorted by offset. These are disjoint except for blocks in one place, so only
// the nearest ones need checking.
std::optional<std::pair<uint32_t, uint32_t>> find_overlap(std::span<const MemoryBlock> blocks,
                                                          std::vector<uint32_t> chosen,
                                                          std::span<const size_t> offsets) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](uint32_t a, uint32_t b) { return blocks[a].first < blocks[b].first; });
  std::multimap<size_t, uint32_t> alive;                              // by offset
  std::multimap<size_t, std::multimap<size_t, uint32_t>::iterator> deaths;  // by last step
  for (const uint32_t i : chosen) {
    if (blocks[i].bytes == 0) continue;
    while (!deaths.empty() && deaths.begin()->first < blocks[i].first) {
      alive.erase(deaths.begin()->second);
      deaths.erase(deaths.begin());
    }
    const size_t begin = offsets[i], end = begin + blocks[i].bytes;
    auto near = alive.lower_bound(begin);
    if (near != alive.begin()) near = alive.lower_bound(std::prev(near)->first);
    for (; near != alive.end() && near->first < end; ++near) {
      const uint32_t other = near->second;
      if (offsets[other] + blocks[other].bytes <= begin) continue;
      if (offsets[other] != begin || !may_coincide(blocks, i, other)) return std::pair(other, i);
    }
    deaths.emplace(blocks[i].last, alive.emplace(begin, i));
  }
  return std::nullopt;
}

}  // namespace memory

namespace {

using memory::describe;

// The rules of one block on its own.
Result<void> verify_block(std::span<const MemoryBlock> blocks, size_t i, const ArenaSpace& space, size_t offset,
                          const SpacePlan& plan) {
  const MemoryBlock& block = blocks[i];
  const auto broken = [&](const auto&... parts) {
    return error(Code::invalid_argument, describe(blocks, i), " of ", block.bytes, " bytes at offset ", offset, " of '",
                 space.name, "' ", parts...);
  };
  const size_t end = offset + block.bytes;
  if (end < offset || (block.bytes > 0 && end > plan.bytes))
    return broken("ends beyond the plan's ", plan.bytes, " bytes");
  if (offset % block.align_bytes != 0 || offset % space.align_bytes != 0) {
    return broken("is not aligned to ", block.align_bytes, " and ", space.align_bytes, " bytes");
  }
  if (block.pinned && *block.pinned != offset) return broken("is pinned at ", *block.pinned);
  if (block.bytes == 0) return {};
  if (block.window_bytes > 0 && offset / block.window_bytes != (end - 1) / block.window_bytes) {
    return broken("crosses a multiple of its window of ", block.window_bytes, " bytes");
  }
  if (block.bank && (offset / space.bank_bytes != *block.bank || (end - 1) / space.bank_bytes != *block.bank)) {
    return broken("does not lie in bank ", *block.bank, " of ", space.bank_bytes, " bytes");
  }
  return {};
}

}  // namespace

Result<void> verify_plan(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                         const MemoryPlan& plan) {
  TENON_OK(memory::check_problem(blocks, spaces));  // alignments and banks, by which the offsets are divided
  if (plan.offsets.size() != blocks.size() || plan.spaces.size() != spaces.size()) {
    return error(Code::invalid_argument, "the plan has ", plan.offsets.size(), " offsets in ", plan.spaces.size(),
                 " spaces for ", blocks.size(), " blocks in ", spaces.size());
  }
  std::vector<std::vector<uint32_t>> by_space(spaces.size());
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    const MemoryBlock& block = blocks[i];
    const ArenaSpace& space = spaces[block.space];
    TENON_OK(verify_block(blocks, i, space, plan.offsets[i], plan.spaces[block.space]));
    for (const size_t other : block.apart_from) {
      if (!memory::share_bank(block, plan.offsets[i], blocks[other], plan.offsets[other], space.bank_bytes)) continue;
      return error(Code::invalid_argument, describe(blocks, i), " at offset ", plan.offsets[i], " shares a bank of '",
                   space.name, "' with ", describe(blocks, other), " at ", plan.offsets[other]);
    }
    by_space[block.space].push_back(i);
  }
  for (size_t s = 0; s < spaces.size(); ++s) {
    if (plan.spaces[s].bytes > spaces[s].limit_bytes) {
      return error(Code::resource_exhausted, "the plan of space '", spaces[s].name, "' takes ", plan.spaces[s].bytes,
                   " bytes, the space has ", spaces[s].limit_bytes);
    }
    if (plan.spaces[s].bytes < plan.spaces[s].lower_bound_bytes) {
      return error(Code::invalid_argument, "the plan of space '", spaces[s].name, "' takes ", plan.spaces[s].bytes,
                   " bytes, less than its lower bound of ", plan.spaces[s].lower_bound_bytes);
    }
    const auto overlap = memory::find_overlap(blocks, std::move(by_space[s]), plan.offsets);
    if (!overlap) continue;
    const auto [a, b] = *overlap;
    return error(Code::invalid_argument, describe(blocks, a), " of ", blocks[a].bytes, " bytes at offset ",
                 plan.offsets[a], " of '", spaces[s].name, "' overlaps ", describe(blocks, b), " of ", blocks[b].bytes,
                 " bytes at ", plan.offsets[b], "; both are alive at step ",
                 std::max(blocks[a].first, blocks[b].first));
  }
  return {};
}

}  // namespace tenon
