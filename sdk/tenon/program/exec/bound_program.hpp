// The compiled form: a program bound to shapes and scalars, as flat code that allocates no heap memory while it runs.
//
//   TENON_TRY(bound, BoundProgram::bind(program, shapes, {.pool = &default_pool()}));
//   TENON_OK(bound.run(arguments));         // any number of times, with other memory of the same shapes
//
// All expressions become numbers, or registers that a loop increments by a constant. All allocations get positions in
// one arena per memory space, by lifetime. Results, errors and statistics are those of the interpreter. Exception: an
// error that an expression may give (a division by zero) is reported by bind() unless it is proved not to occur.
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

// What runs do with the prefetch hints of a program (Prefetch, statement.hpp). Results are the same.
enum class HintPolicy : uint8_t {
  tried,   // follow them as long as timed runs, six in a row from time to time, show that this is faster
  always,  // follow them
};

struct BindOptions {
  // Runs parallel and pipelined loops, and is passed to kernels; null: none, one thread. Must outlive the bound
  // program.
  ParallelFor* pool = nullptr;
  // Maximum number of workers of a loop, and the value of run.threads; 0: as many as the pool has.
  int64_t threads = 0;
  int64_t stack_bytes = 0;  // automatic allocations up to this count as stack
  // Collect RunStatistics; a run is then slower and allocates heap memory.
  bool statistics = false;
  // Allocations are planned by their maximum size. One whose size changes between iterations and that could have more
  // bytes than this gets a block of its own, which grows to what runs have needed.
  int64_t most_planned_bytes = int64_t{1} << 30;
  // With more than one thread, transfers of at least this many bytes run concurrently with the program, on a thread of
  // the bound program. Shorter ones, which cost less than handing them over, run synchronously at their start.
  // INT64_MAX: all run synchronously.
  int64_t beside_bytes = 64 << 10;
  // Runs provide the arena (RunWith::arena). A run that provides none, or one that is too small, allocates one from the
  // heap and keeps it.
  bool arena_of_runs = false;
  HintPolicy hints = HintPolicy::tried;
};

// The place and lifetime of an allocation.
struct PlannedAllocation {
  BufferId buffer = -1;
  std::string space;
  int64_t offset = 0;  // bytes in the arena of its space
  int64_t bytes = 0;   // all slots and workers together
  int64_t first = 0;   // first and last step at which it is live, inclusive: statements are numbered in text order
  int64_t last = 0;
};

class TENON_API BoundProgram {
 public:
  // `shapes` has dims and scalars; its data pointers are not used. The program must have been verified; it is copied.
  static Result<BoundProgram> bind(const Program& program, const Arguments& shapes, const BindOptions& options = {});
  BoundProgram(BoundProgram&&) noexcept;
  BoundProgram& operator=(BoundProgram&&) noexcept;
  ~BoundProgram();

  // `buffers`: the memory of declared buffers (data pointers, in the order of Program::buffers without the local ones),
  // of the shapes that the program was bound to. One run at a time. `statistics` only when bound with them.
  Result<void> run(const std::vector<std::byte*>& buffers, RunStatistics* statistics = nullptr);
  Result<void> run(std::span<std::byte* const> buffers, const RunWith& with);
  // By name; dims must be those of the shapes.
  Result<void> run(const Arguments& arguments, RunStatistics* statistics = nullptr);
  // The buffers of such a run, valid until the next call.
  Result<std::span<std::byte* const>> pointers_of(const Arguments& arguments);

  // The calls that such a run makes, if it consists of nothing else and no call needs other threads: they can be
  // executed in order, any number of times, on this memory. They are valid until this bound program runs or settles
  // again. Otherwise none.
  Result<std::vector<SettledCall>> settle(std::span<std::byte* const> buffers, const RunWith& with);

  // The same code with arenas of its own, for a concurrent run.
  Result<BoundProgram> fork() const;

  // Sorted by step.
  const std::vector<PlannedAllocation>& plan() const;
  // Bytes of each space's arena, and the lower bound for any plan.
  const std::map<std::string, int64_t>& arena_bytes() const;
  const std::map<std::string, int64_t>& arena_lower_bound_bytes() const;
  // The size that RunWith::arena should have, aligned to kAlignBytes; 0 where runs cannot provide it, because
  // allocations are in several spaces or need a larger alignment.
  int64_t lendable_bytes() const;
  int64_t steps() const;
  // Whether the program has prefetch hints and runs follow them at present (HintPolicy).
  bool follows_hints() const;
  // The code as text, one instruction a line, for people.
  std::string disassembly() const;

 private:
  struct Impl;
  explicit BoundProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::program
