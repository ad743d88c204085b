// The calls and copies of one run of a program as a list, with numbers in place of expressions: for targets that
// enqueue work on a device, where nothing can be decided during the run.
#pragma once
#include <string>
#include <vector>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// A box of a declared buffer or of an allocation. The element at index x is at offset_bytes + sum over dims of
// place(x_d) * stride_d from the first byte of `root`.
struct FlatOperand {
  BufferId root = -1;
  int64_t offset_bytes = 0;
  ElementType element;
  std::vector<DimView> dims;
};

struct FlatStep {
  std::string stage;
  KernelHandle kernel;  // null: a copy
  // For a call, the operands in its order. For a copy, the destination, then the source. The source begins with the
  // element that the destination's first one gets, and has the destination's dims, with the source strides in bytes.
  std::vector<FlatOperand> operands;
};

struct FlatProgram {
  std::vector<FlatStep> steps;
  std::vector<int64_t> local_bytes;  // by BufferId, of allocations; 0 of other buffers
};

// Data pointers of `shapes` are not used. The program must be verified. Code::unsupported, naming the statement, for
// calls with scalars, transfers, and copies that pad or whose map is not linear.
TENON_API Result<FlatProgram> flatten(const Program& program, const Arguments& shapes);

}  // namespace tenon::program
