#include <tenon/runtime/arena_plan.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon {
namespace {

struct Block {
  size_t bytes, first, last;
};

// Each block in `order` at the lowest offset that no block placed before, and alive at the same time, covers.
size_t place(const std::vector<Block>& blocks, const std::vector<size_t>& order, std::vector<size_t>& offsets) {
  size_t arena = 0;
  std::vector<size_t> placed;
  std::vector<std::pair<size_t, size_t>> taken;  // [begin, end) of blocks in the way
  for (const size_t at : order) {
    const Block& block = blocks[at];
    taken.clear();
    for (const size_t other : placed) {
      if (blocks[other].first <= block.last && block.first <= blocks[other].last) {
        taken.emplace_back(offsets[other], offsets[other] + blocks[other].bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    size_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + block.bytes) break;
      offset = std::max(offset, end);
    }
    offsets[at] = offset;
    placed.push_back(at);
    arena = std::max(arena, offset + block.bytes);
  }
  return arena;
}

// Blocks in order of birth, each into the smallest hole that holds it.
size_t place_in_time(const std::vector<Block>& blocks, const std::vector<size_t>& by_birth, std::vector<size_t>& offsets) {
  size_t arena = 0;
  std::map<size_t, size_t> holes;                       // offset -> bytes
  std::multimap<size_t, size_t> by_size;                // bytes -> offset
  std::multimap<size_t, size_t> deaths;                 // last step -> block
  const auto erase_size = [&](size_t bytes, size_t offset) {
    auto [from, to] = by_size.equal_range(bytes);
    by_size.erase(std::find_if(from, to, [&](const auto& entry) { return entry.second == offset; }));
  };
  const auto release = [&](size_t offset, size_t bytes) {
    auto next = holes.lower_bound(offset);
    if (next != holes.end() && next->first == offset + bytes) {
      bytes += next->second;
      erase_size(next->second, next->first);
      next = holes.erase(next);
    }
    if (next != holes.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        erase_size(before->second, before->first);
        holes.erase(before);
      }
    }
    holes.emplace(offset, bytes);
    by_size.emplace(bytes, offset);
  };
  for (const size_t at : by_birth) {
    const Block& block = blocks[at];
    while (!deaths.empty() && deaths.begin()->first < block.first) {
      const size_t dead = deaths.begin()->second;
      deaths.erase(deaths.begin());
      release(offsets[dead], blocks[dead].bytes);
    }
    deaths.emplace(block.last, at);
    if (auto hole = by_size.lower_bound(block.bytes); hole != by_size.end()) {
      const auto [bytes, offset] = *hole;
      by_size.erase(hole);
      holes.erase(offset);
      offsets[at] = offset;
      if (bytes > block.bytes) {
        holes.emplace(offset + block.bytes, bytes - block.bytes);
        by_size.emplace(bytes - block.bytes, offset + block.bytes);
      }
    } else {
      // No hole is large enough: grow, from the last hole when that touches the end.
      size_t offset = arena;
      if (!holes.empty()) {
        auto last = std::prev(holes.end());
        if (last->first + last->second == arena) {
          offset = last->first;
          erase_size(last->second, last->first);
          holes.erase(last);
        }
      }
      offsets[at] = offset;
      arena = offset + block.bytes;
    }
  }
  return arena;
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, size_t align) {
  std::vector<Block> blocks;
  size_t steps = 0;
  for (const Lifetime& life : lifetimes) {
    blocks.push_back({(life.bytes + align - 1) / align * align, life.first, life.last});
    steps = std::max(steps, life.last + 1);
  }
  ArenaPlan plan;
  plan.offsets.resize(blocks.size());

  std::vector<ptrdiff_t> change(steps + 1, 0);
  for (const Block& block : blocks) {
    change[block.first] += static_cast<ptrdiff_t>(block.bytes);
    change[block.last + 1] -= static_cast<ptrdiff_t>(block.bytes);
  }
  ptrdiff_t alive = 0;
  for (const ptrdiff_t step : change) {
    alive += step;
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, static_cast<size_t>(alive));
  }

  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto by_birth = [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; };
  std::stable_sort(order.begin(), order.end(), by_birth);
  plan.bytes = place_in_time(blocks, order, plan.offsets);
  if (blocks.size() > kExactPlacement) return plan;

  const auto by_size = [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; };
  const auto by_life = [&](size_t a, size_t b) {
    return blocks[a].last - blocks[a].first > blocks[b].last - blocks[b].first;
  };
  std::vector<size_t> offsets(blocks.size());
  const auto consider = [&](std::vector<size_t> candidate) {
    if (plan.bytes == plan.lower_bound_bytes) return;
    const size_t bytes = place(blocks, candidate, offsets);
    if (bytes < plan.bytes) plan.bytes = bytes, plan.offsets = offsets;
  };
  consider(order);
  auto sorted = order;
  std::stable_sort(sorted.begin(), sorted.end(), by_size);
  consider(sorted);
  sorted = order;
  std::stable_sort(sorted.begin(), sorted.end(), by_life);
  consider(sorted);
  return plan;
}

}  // namespace tenon
