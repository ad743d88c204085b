// Strips on the kernels of the reference: their speeds, so that chains run in strips where that pays.
#pragma once
#include <cstdint>

#include <tenon/irgen/strips.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::irgen {

// For strip_grouping(): StripMode::automatic with the memories of `target` (those of a usual host where it has only
// one) and kernels that share `threads` threads. Measured by tests/bench/strips_bench; see docs/performance/graphs.md.
TENON_API StripOptions reference_strips(const TargetDescription& target, int64_t threads = 1);

}  // namespace tenon::irgen
