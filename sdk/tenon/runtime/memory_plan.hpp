// The memory plan: offsets for blocks of known size and lifetime, in one arena per memory space, fixed before a run.
//
//   blocks = {{.bytes = 4096, .first = 0, .last = 2, .name = "conv1"}, ...}
//   TENON_TRY(plan, plan_memory(blocks, spaces));
//   address of block i = base of its space + plan.offsets[i]
//
// Two blocks whose lifetimes share a step never share bytes. verify_plan checks what the planner promises.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct ArenaSpace {
  std::string name = "arena";
  size_t limit_bytes = SIZE_MAX;  // most that a plan may use
  size_t align_bytes = 1;         // of every offset in it
  size_t bank_bytes = 0;          // bank k is [k * bank_bytes, (k + 1) * bank_bytes); 0: no banks
};

struct MemoryBlock {
  size_t bytes = 0;  // 0: occupies nothing; any offset that its own rules allow is valid
  size_t first = 0;  // live from this step
  size_t last = 0;   // to this one, included
  size_t align_bytes = 1;
  size_t space = 0;                     // index of its ArenaSpace
  std::optional<size_t> pinned = {};    // its offset, when it is fixed by the caller
  size_t window_bytes = 0;              // does not cross a multiple of this, itself a multiple of the alignment; 0: may
  std::optional<size_t> bank = {};      // must lie in this bank
  std::vector<size_t> apart_from = {};  // blocks with which it shares no bank, whatever their lifetimes
  // Blocks that it may replace: one of them that dies at step `first` may have the same offset. Otherwise the entry has
  // no effect.
  std::vector<size_t> in_place_of = {};
  std::string name = {};  // for messages and pictures; may be empty
};

struct PlanOptions {
  // Some 20 ms for 1,000 blocks for which no plan at the lower bound is found; nearly nothing where one is found early.
  static constexpr size_t kSwift = 200;
  // For plans that are made once and used for long: up to about a second.
  static constexpr size_t kThorough = 200'000;

  uint64_t seed = 1;
  // Work limit of the searches that follow the greedy orders, in blocks examined per block: the same on every machine,
  // independent of time. The total is at most 28 million. 0: greedy orders only.
  size_t effort = kSwift;
};

struct SpacePlan {
  size_t bytes = 0;  // of the arena; a multiple of the greatest common divisor of all alignments
  // No plan needs less: live bytes at the worst step, counted with alignment, pinned blocks and banks.
  size_t lower_bound_bytes = 0;
  size_t peak_step = 0;  // where most bytes are live
  std::string order;     // the placing order that won
  bool optimal = false;  // at the lower bound, or proved the best by exhaustive search
  double efficiency() const {
    return bytes == 0 ? 1.0 : static_cast<double>(lower_bound_bytes) / static_cast<double>(bytes);
  }
};

struct MemoryPlan {
  std::vector<size_t> offsets;    // bytes from the start of the block's space, one per block
  std::vector<SpacePlan> spaces;  // as given
};

// Deterministic: the same blocks, spaces, seed and effort give the same plan on every machine.
// Code::invalid_argument: a block or space that is invalid, or pinned blocks that conflict.
// Code::resource_exhausted: a space is too small; the error names the step and the largest blocks live there.
TENON_API Result<MemoryPlan> plan_memory(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                                         const PlanOptions& options = {});

// Checks that `blocks` and `spaces` are valid, and every rule of theirs; the error names the first broken one. n log n
// plus the number of pairs of blocks live at the same time.
TENON_API Result<void> verify_plan(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                                   const MemoryPlan& plan);

}  // namespace tenon
