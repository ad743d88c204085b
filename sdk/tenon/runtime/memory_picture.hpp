// An HTML picture of a memory plan.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <tenon/runtime/memory_plan.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// One self-contained HTML page: for each space, steps from left to right and addresses from bottom to top, a rectangle
// for each block (its name, bytes, offset, steps and rules as a tooltip), and dashed lines for the lower bound and for
// the step with most live bytes. `plan` is valid for `blocks` and `spaces` (verify_plan). Names are escaped.
TENON_API std::string plan_to_html(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                                   const MemoryPlan& plan, std::string_view title = "Memory plan");

}  // namespace tenon
