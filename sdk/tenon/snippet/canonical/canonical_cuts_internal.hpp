// Inside the room: ports of a body that are parts of tensors: inputs that are results of Slice and Split operators at
// the beginning of a subgraph, and outputs for which the caller requests it.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/canonical_space_internal.hpp>

namespace tenon::snippet {

// How result `result` of `op` is placed in operand 0, by cut dims, innermost first; the other dims are whole. Nothing:
// it is no such part, or numbers are not known.
std::optional<std::vector<DimCut>> cuts_of(const Op& op, size_t result);

// The outermost axis of a value of dims from `dim` on; -1: they have none.
AxisId axis_from(const ValueAxes& axes, size_t dim);

}  // namespace tenon::snippet
