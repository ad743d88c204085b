// The kernels of the reference: its evaluators, on buffers.
//
// Any operator with an evaluator whose types a program can say. Results are written where the program has planned them.
// For a part of an operator, boxes with gaps and rings are packed into a workspace of the program. The wrapper takes
// heap memory in its first call at a place of a bound program, and in later ones for operands whose memory or extents
// have changed since; what an evaluator takes for itself is its own affair (matrix products and convolutions: their
// blocks; many others: a few short lists of extents).
#pragma once
#include <memory>

#include <tenon/irgen/kernel_source.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

// Holds nothing: one for the process.
TENON_API const KernelSource& reference_kernels();

}  // namespace tenon::irgen
