// The compiled form: a program bound to shapes and scalars, as flat code that takes nothing from the heap while it
// runs.
//
//   TENON_TRY(bound, BoundProgram::bind(program, shapes, {.pool = &default_pool()}));
//   TENON_OK(bound.run(arguments));         // any number of times, with other memory of the same shapes
//
// All expressions become numbers, or registers that a loop steps by a constant. All allocations get places in one arena
// per memory space, by lifetime. Results, errors and statistics are those of the interpreter; an error that an
// expression can give (a division by zero) is one at bind when it cannot be told that it does not occur.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/program/ir/settled.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

struct BindOptions {
  // Runs parallel and pipelined loops, and is given to kernels; null: none, one thread. Outlives the bound program.
  ParallelFor* pool = nullptr;
  // Most workers of a loop, and the value of run.threads; 0: as many as the pool has.
  int64_t threads = 0;
  int64_t stack_bytes = 0;  // automatic allocations up to this count as stack
  // Count what RunStatistics has: then a run is slower and takes heap memory.
  bool statistics = false;
  // Sizes are planned by what they can be at most. An allocation whose size changes between iterations and that could
  // have more bytes than this gets a block of its own, which grows to what runs have needed.
  int64_t most_planned_bytes = int64_t{1} << 30;
  // With more than one thread, transfers of at least so many bytes go on beside the program, on a thread of the bound
  // program; shorter ones, which cost less than to hand them over, are done where they start. INT64_MAX: all are.
  int64_t beside_bytes = 64 << 10;
  // Runs bring the arena (RunWith::arena). One that brings none, or a smaller one, takes it from the heap, and keeps
  // it.
  bool arena_of_runs = false;
};

// Where an allocation lies, and when.
struct PlannedAllocation {
  BufferId buffer = -1;
  std::string space;
  int64_t offset = 0;  // bytes in the arena of its space
  int64_t bytes = 0;   // all slots and workers together
  int64_t first = 0;   // steps at which it is live, both included: statements count in the order of the text
  int64_t last = 0;
};

class TENON_API BoundProgram {
 public:
  // `shapes` has dims and scalars; its data pointers are not used. The program must have been verified; it is copied.
  static Result<BoundProgram> bind(const Program& program, const Arguments& shapes, const BindOptions& options = {});
  BoundProgram(BoundProgram&&) noexcept;
  BoundProgram& operator=(BoundProgram&&) noexcept;
  ~BoundProgram();

  // Memory of declared buffers (data pointers, in the order of Program::buffers without the local ones), of the shapes
  // that the program was bound to. One run at a time. `statistics` only when bound with them.
  Result<void> run(const std::vector<std::byte*>& buffers, RunStatistics* statistics = nullptr);
  Result<void> run(std::span<std::byte* const> buffers, const RunWith& with);
  // By name; dims must be those of the shapes.
  Result<void> run(const Arguments& arguments, RunStatistics* statistics = nullptr);

  // The calls that such a run makes, when that is all there is to it and no call wants other threads: to be made in
  // order, as often as wanted, on this memory. They hold until this bound program runs or settles again. Else none.
  Result<std::vector<SettledCall>> settle(std::span<std::byte* const> buffers, const RunWith& with);

  // The same code with arenas of its own, for a run at the same time.
  Result<BoundProgram> fork() const;

  // Sorted by step.
  const std::vector<PlannedAllocation>& plan() const;
  // Bytes of each space's arena, and what no plan could be below.
  const std::map<std::string, int64_t>& arena_bytes() const;
  const std::map<std::string, int64_t>& arena_lower_bound_bytes() const;
  // What RunWith::arena should have, aligned to kAlignBytes; 0 where runs cannot bring it: allocations lie in several
  // spaces, or want to be aligned to more.
  int64_t lendable_bytes() const;
  int64_t steps() const;
  // The code as text, one instruction a line, for people.
  std::string disassembly() const;

 private:
  struct Impl;
  explicit BoundProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::program
