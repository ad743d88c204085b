// Loops that are known to run a few times only, without the loops: one after the other, with addresses in place of
// counters. For kernels whose params are known (CallPlan::write_known).
#pragma once
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

// Vector loops that run up to three times (those of several copies, and loops over rows: once), tails whose lanes are
// known, and loops that never run. The results are the same, bit for bit.
TENON_API void write_out(LinearKernel& kernel);

}  // namespace tenon::snippet
