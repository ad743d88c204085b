// The arguments of a program run, and its statistics.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::program {

// Memory for a declared buffer; the caller keeps it alive. `data` is the base as defined for BufferView.
struct BufferArgument {
  std::byte* data = nullptr;
  std::vector<DimView> dims;

  // A row-major tensor with its dims in order (dim 0 slowest), or reversed (dim 0 fastest, as x, y in pipelines). The
  // element type must be byte addressable.
  TENON_API static BufferArgument of(Tensor& tensor, bool reversed = false);
  // Dense, dim 0 fastest, minima 0 unless given.
  TENON_API static BufferArgument dense(void* data, ElementType element, const std::vector<int64_t>& extents,
                                        const std::vector<int64_t>& mins = {});
};

struct Arguments {
  std::map<std::string, BufferArgument, std::less<>> buffers;  // each declared buffer, by name
  SymbolValues scalars;                                        // each scalar parameter
};

// Counts of one stage, i.e. of all calls or copies with the same label that write the same buffers.
struct StageStatistics {
  int64_t calls = 0;     // that were made
  int64_t skipped = 0;   // that were not made, because a box to write was empty or the predicate was 0
  int64_t elements = 0;  // in the box of the first operand written, over all calls
  bool operator==(const StageStatistics&) const = default;
};

struct RunStatistics {
  // Allocations in order, in bytes as Allocation defines them, all slots together. What a compiled program has planned
  // into an arena counts as if it were allocated where the statement is executed.
  std::vector<int64_t> heap;
  std::vector<int64_t> stack;
  int64_t heap_peak = 0;  // most bytes live at a time; with parallel loops it may differ between runs
  int64_t stack_peak = 0;
  int64_t loop_iterations = 0;
  int64_t parallel_loops = 0;  // entered: parallel or pipelined, with more than one worker allowed
  // By "STAGE->BUFFER,BUFFER", the buffers as allocated or declared: calls, and copies and transfers.
  std::map<std::string, StageStatistics> stages, copies;
};

// Called for each call and copy that ran, in order; for loops with several workers when they end, one call at a
// time. `in_loop`: there may be more of the same statement.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void ran(std::string_view stage, double microseconds, bool in_loop) = 0;
};

// Optional arguments of a run of a bound program, beside its buffers.
struct RunWith {
  RunStatistics* statistics = nullptr;  // only when bound with them
  ParallelFor* pool = nullptr;          // replaces the pool of bind; loops keep to the threads stated there
  StageObserver* observer = nullptr;
  // Memory for its allocations, of BoundProgram::lendable_bytes(): used exclusively by the run, and undefined
  // afterwards.
  std::span<std::byte> arena = {};
};

}  // namespace tenon::program
