// Inside of the room: ports of a body that are parts of tensors: inputs that are results of Slice and Split operators
// at the begin of a subgraph, and outputs that whoever makes the body wants as such.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/canonical_space_internal.hpp>

namespace tenon::snippet {

// How result `result` of `op` lies in operand 0, by dims that are cut, innermost first; the others are whole. Nothing:
// it is no such part, or numbers are not known.
std::optional<std::vector<DimCut>> cuts_of(const Op& op, size_t result);

// The outermost axis of a value of dims from `dim` on; -1: they have none.
AxisId axis_from(const ValueAxes& axes, size_t dim);

}  // namespace tenon::snippet
