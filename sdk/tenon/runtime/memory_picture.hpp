// A memory plan for people.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <tenon/runtime/memory_plan.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// One HTML page that needs nothing else: for each space steps from left to right and addresses from the bottom up, a
// rectangle for each block (its name, bytes, offset, steps and rules when pointed at), the lower bound and the step
// with most live bytes as dashed lines. `plan` is sound for `blocks` and `spaces` (verify_plan). Names are escaped.
TENON_API std::string plan_to_html(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                                   const MemoryPlan& plan, std::string_view title = "Memory plan");

}  // namespace tenon
