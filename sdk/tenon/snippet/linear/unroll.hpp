// Full unrolling of loops with a small, known trip count: iterations follow one another, with addresses in place of
// counters. For kernels whose params are known (CallPlan::write_known).
#pragma once
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

// Unrolls vector loops that run up to three times (those of several copies, and loops over rows: once) and tails whose
// lanes are known; removes loops that never run. The results are the same, bit for bit.
TENON_API void unroll_known_loops(LinearKernel& kernel);

}  // namespace tenon::snippet
