// What passes do to a graph, done so that types, names and uses stay right.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// No effect but its results: unused, it may go. Regions count with all operators in them; operators without a
// definition may do anything. Random operators have no effect, though two of them differ.
TENON_API bool has_no_effect(const Op& op);
// No effect, and the same results whenever it runs on the same operands: equal ones may be shared, constant ones
// computed.
TENON_API bool is_repeatable(const Op& op);

// Every use of `old` becomes a use of `by`, which stands where all of them see it. What was known of old's type is kept
// with `by` (not when that is an input of a region: the declaration of the model stands), and old's name when `by` has
// none. Outputs of the graph keep their names. Types that contradict each other are Code::internal, and nothing
// changes.
TENON_API Result<void> replace_value(Value& old, Value& by);

// Erases `op` when it has no effect and nobody uses it, then the operators for which that made it true. `erasing` hears
// of each one before it goes.
TENON_API void erase_dead(Op& op, const std::function<void(Op&)>& erasing = {});

}  // namespace tenon
