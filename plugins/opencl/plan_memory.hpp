// PlanMemory: assigns device memory to the buffers of a program. Inputs, outputs and constants have memory of their
// own; intermediate values are in one arena, planned by lifetimes.
//
//   memory.find_roots();  memory.add_scratch(step, bytes, chunks) ...;  memory.plan_arena_of(plan);
//   memory.place(operand)
#pragma once
#include <unordered_map>
#include <vector>

#include <tenon/program/exec/flatten.hpp>
#include <tenon/runtime/arena_plan.hpp>

#include "opencl/device_plan.hpp"

namespace tenon::opencl {

// Not thread safe; all arguments must outlive it.
class PlanMemory {
 public:
  PlanMemory(const PlanSources& sources, const program::FlatProgram& flat);

  Result<void> find_roots();
  // Scratch memory of `pieces` pieces during a step. Returns its number, for scratch().
  size_t add_scratch(size_t step, size_t bytes, size_t pieces);
  // After everything was added: computes offsets, the plan's sizes, and its guard zones where these are requested.
  void plan_arena_of(DevicePlan& plan);

  MemoryPlace place(const program::FlatOperand& operand) const { return roots_.at(operand.root).place; }
  // In bytes from the begin of that memory.
  int64_t offset(const program::FlatOperand& operand) const;
  size_t scratch(size_t number, size_t piece) const { return offset_of(number) + piece * blocks_[number].stride; }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Root {
    MemoryPlace place;
    int64_t offset = 0;    // of a constant
    size_t block = kNone;  // in the arena
  };
  // A block of the arena: a root, or the scratch memory of a step.
  struct Block {
    program::BufferId root = -1;
    size_t step = 0;
    size_t bytes = 0, stride = 0, pieces = 1;
  };
  void use(program::BufferId root, size_t step);
  size_t add_block(const Block& block);
  Result<void> guard_port(program::BufferId root, const Type& type, const Result<Dims>& dims);
  void guard(GuardZones& zones, size_t block) const;
  size_t offset_of(size_t block) const { return offsets_[block] + zone_; }

  const PlanSources& from_;
  const program::FlatProgram& flat_;
  const size_t align_;  // of blocks
  const size_t zone_;   // bytes of a guard zone; 0: there are none
  std::unordered_map<program::BufferId, Root> roots_;
  std::vector<Block> blocks_;
  std::vector<Lifetime> lifetimes_;  // by block
  std::vector<size_t> offsets_;
};

}  // namespace tenon::opencl
