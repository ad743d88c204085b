// The limits that a target's YAML states for operators (docs/target-yaml.md), for any backend's refuses().
#pragma once
#include <optional>
#include <string_view>

#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon {

// Why what `description` states for operators of this name rules `op` out, one in its regions included: "kernel 33
// exceeds 32 on target nvdla-small". Nothing: no limit is broken, or none is stated. Asks the operator itself (`none`),
// the element types of all its operands and results, and each limited attribute; layouts are chosen later, so they are
// not asked.
//
// A word names the operator's attribute of that name, or else one of
//   kernel    the window: `kernel_shape`, else the spatial extents of the weights
//   stride    `strides`, 1 when absent              dilation  `dilations`, 1 when absent
//   pad       `pads`, 0 when absent; of `auto_pad`, what it comes to
//   groups    `group`, 1 when absent
//   batch     extent 0 of the first operand         channels  extent 1 of the first operand and of the first result
//   dims      every extent of the first operand and of the first result
// Of several values each must fit. What only a run tells, such as an extent that is a symbol, is refused, as is a word
// that the operator has no meaning for: a limit that silently allows everything would be worse.
TENON_API std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op);

// The same by what is stated for `stated_as`, of which `op` is another form: a fused or quantised one, or the target's
// own. Element types are asked of the first operand and of the results only: what such a form adds (a bias in the type
// of accumulators) is the target's affair.
TENON_API std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op,
                                               std::string_view stated_as);

// An error at the first operator that `description` limits and that nobody has defined, or at the first word under one
// that is neither an attribute of it nor one of those above that has a meaning for it; with the nearest that is there,
// and all that are. Asked when targets are opened, with the operators of their plugin registered: a misspelt limit
// would silently allow everything, and one without meaning refuse every operator of that name.
TENON_API Result<void> check_limits(const TargetDescription& description);

}  // namespace tenon
