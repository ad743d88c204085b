// Pricing shared by apply_choice and the solver.
#pragma once
#include <tenon/passes/layout_problem.hpp>
#include <tenon/passes/pbqp_internal.hpp>

namespace tenon::detail {

// What the users of one tensor need in one layout: nothing, the elements, or zero padding as well.
enum class Wanted : uint8_t { no, yes, zero };

inline double cost_of(const LayoutCosts& costs, LayoutAssignment::Made made, size_t to, Wanted wanted) {
  if (wanted == Wanted::no) return 0;
  const LayoutCosts::Pad& pad = costs.pads[to];
  const bool zero = wanted == Wanted::zero && pad.there;
  if (made.layout == to) return zero && !made.zero_pad ? pad.scrub : 0;
  return costs.reorder(made.layout, to) + (zero && !pad.zero_by_reorder ? pad.scrub : 0);
}

}  // namespace tenon::detail
