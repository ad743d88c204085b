// What a run of a program is given, and what it tells.
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

// Memory for a declared buffer; the caller keeps it alive. `data` is the base as BufferView has it.
struct BufferArgument {
  std::byte* data = nullptr;
  std::vector<DimView> dims;

  // A row-major tensor with its dims as they are (dim 0 slowest), or reversed (dim 0 fastest, as x, y in pipelines).
  // The element type must be byte addressable.
  TENON_API static BufferArgument of(Tensor& tensor, bool reversed = false);
  // Dense, dim 0 fastest, minima 0 unless given.
  TENON_API static BufferArgument dense(void* data, ElementType element, const std::vector<int64_t>& extents,
                                        const std::vector<int64_t>& mins = {});
};

struct Arguments {
  std::map<std::string, BufferArgument, std::less<>> buffers;  // each declared buffer, by name
  SymbolValues scalars;                                        // each scalar parameter
};

// Counts of one stage, i.e. of all calls or copies with one label and the same buffers written.
struct StageStatistics {
  int64_t calls = 0;     // that were made
  int64_t skipped = 0;   // that were not, since a box to write was empty or the predicate 0
  int64_t elements = 0;  // in the box of the first operand written, over all calls
  bool operator==(const StageStatistics&) const = default;
};

struct RunStatistics {
  // Allocations in order, in bytes as Allocation defines them, all slots together. What a compiled program has planned
  // into an arena counts as if it were allocated where the statement is reached.
  std::vector<int64_t> heap;
  std::vector<int64_t> stack;
  int64_t heap_peak = 0;  // most bytes alive at a time; of parallel runs, it may differ between runs
  int64_t stack_peak = 0;
  int64_t loop_iterations = 0;
  int64_t parallel_loops = 0;  // entered: parallel or pipelined, with more than one worker allowed
  // By "STAGE->BUFFER,BUFFER", the buffers as allocated or declared: calls, and copies and transfers.
  std::map<std::string, StageStatistics> stages, copies;
};

// Is told of each call and copy that ran, in order; of loops with several workers, as they end, one at a time.
// `in_loop`: there may be more of the same statement.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void ran(std::string_view stage, double microseconds, bool in_loop) = 0;
};

// What a run of a bound program is given beside its buffers.
struct RunWith {
  RunStatistics* statistics = nullptr;  // only when bound with them
  ParallelFor* pool = nullptr;          // in place of the one of bind; loops keep to the threads told there
  StageObserver* observer = nullptr;
  // Memory for its allocations, where BoundProgram::lendable_bytes() fit: nobody else's during the run, and undefined
  // behind it.
  std::span<std::byte> arena = {};
};

}  // namespace tenon::program
