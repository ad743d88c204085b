// The kernels of the reference: its evaluators, on buffers.
//
// They cover every operator with an evaluator whose types a program can express. Results are written where the program
// has planned them. For a part of an operator, boxes with gaps and ring buffers are packed into a workspace of the
// program. The wrapper allocates heap memory in its first call at a call site of a bound program, and later for
// operands whose memory or extents have changed since. Evaluators may allocate their own (matrix products and
// convolutions: their blocks; many others: a few short lists of extents).
#pragma once
#include <memory>

#include <tenon/irgen/kernel_source.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

// Stateless; one per process.
TENON_API const KernelSource& reference_kernels();

}  // namespace tenon::irgen
