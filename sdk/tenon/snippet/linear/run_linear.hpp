// Runs a linear kernel on emulated lanes: the oracle for lowering, for passes on linear kernels and for register
// allocation, without a machine. Slow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// The bits of one register's lanes, low bits first; booleans: 0 or 1.
using LaneBits = std::vector<uint64_t>;

// The result of an elementwise operator of Body on operands of `from` types, lane by lane, as the reference evaluators
// give it.
TENON_API Result<LaneBits> evaluate_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                          std::span<const LaneBits> operands, ElementType to);

// Memory that a kernel may touch.
struct LinearBuffer {
  void* data = nullptr;
  size_t bytes = 0;
  bool writable = false;
};

// Executes one call with `words`. Before allocation each register is a variable of its own. Afterwards registers with
// the same place share their bits, and scratch registers are overwritten. Lanes that a partial load leaves out hold
// noise. `needs`, when given, says which results are written early: these overwrite their place before operands are
// read. An access outside `buffers` is an error naming the instruction, and so is a store at an address that
// contradicts `aligned`.
TENON_API Result<void> run_linear(const LinearKernel& kernel, std::span<const int64_t> words,
                                  std::span<const LinearBuffer> buffers, const NeedsFn& needs = nullptr);

}  // namespace tenon::snippet
