// Places blocks of known size and lifetime in one arena.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

// Live from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
};

struct ArenaPlan {
  std::vector<size_t> offsets;   // bytes, multiples of the alignment, one per lifetime
  size_t bytes = 0;              // size of the arena
  size_t lower_bound_bytes = 0;  // most bytes live at one step, sizes rounded up: no plan can need less
};

// plan_memory (memory_plan.hpp) for blocks without further rules. Deterministic. For sizes that no memory holds, both
// results are SIZE_MAX, which no allocation can satisfy.
TENON_API ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, size_t align = 64);

}  // namespace tenon
