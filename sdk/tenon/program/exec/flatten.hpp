// The calls and copies of one run of a program as a list, with numbers in place of expressions: for targets that
// enqueue work on a device, where nothing is decided on the way.
#pragma once
#include <string>
#include <vector>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// A box of a declared buffer or of an allocation. The element at index x lies at offset_bytes + sum over dims of
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
  // Of a call, in its order. Of a copy: the destination, then the source; the latter begins with the element that the
  // destination's first one gets, and has the destination's dims, with the bytes by which the source moves along each.
  std::vector<FlatOperand> operands;
};

struct FlatProgram {
  std::vector<FlatStep> steps;
  std::vector<int64_t> local_bytes;  // by BufferId, of allocations; 0 of other buffers
};

// Data pointers of `shapes` are not used. The program is verified. Code::unsupported, with the statement: calls with
// scalars, transfers, copies that pad or whose map is not linear.
TENON_API Result<FlatProgram> flatten(const Program& program, const Arguments& shapes);

}  // namespace tenon::program
