// Changes to a graph that keep types, names and uses consistent.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Whether the operator has no side effects, so that it can be removed when unused. Regions count with all operators in
// them; operators without a definition may have any effect. Random operators have none, though two of them differ.
TENON_API bool has_no_effect(const Op& op);
// Whether it has no side effects and always gives the same results for the same operands, so that equal operators can
// be merged and constant ones evaluated.
TENON_API bool is_repeatable(const Op& op);

// Makes every use of `old` a use of `by`, which must be visible to all of them. `by` gets what was known of old's type
// (unless it is an input of a region: the declaration of the model takes precedence), and old's name when it has none.
// Outputs of the graph keep their names. Contradicting types are Code::internal, and nothing changes.
TENON_API Result<void> replace_value(Value& old, Value& by);

// Erases `op` if it has no side effects and no uses, then the operators that became unused by that. `erasing` is called
// with each of them before it is erased.
TENON_API void erase_dead(Op& op, const std::function<void(Op&)>& erasing = {});

}  // namespace tenon
