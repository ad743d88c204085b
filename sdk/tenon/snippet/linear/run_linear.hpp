// Runs a linear kernel on emulated lanes: the oracle of lowering, of passes on linear kernels and of register
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

// What an elementwise operator of Body makes of operands of `from` types, lane by lane: as the reference evaluators.
TENON_API Result<LaneBits> evaluate_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                          std::span<const LaneBits> operands, ElementType to);

// Memory that a kernel may touch.
struct LinearBuffer {
  void* data = nullptr;
  size_t bytes = 0;
  bool writable = false;
};

// One call with `words`. Before allocation each register is a variable of its own; afterwards registers of one place
// share their bits, and scratch registers are overwritten. Lanes that a partial load leaves out hold noise. `needs`,
// when given, says which results are written early: these destroy their place before operands are read. An access
// outside of `buffers` is an error naming the instruction, as is a store at another address than `aligned` says.
TENON_API Result<void> run_linear(const LinearKernel& kernel, std::span<const int64_t> words,
                                  std::span<const LinearBuffer> buffers, const NeedsFn& needs = nullptr);

}  // namespace tenon::snippet
