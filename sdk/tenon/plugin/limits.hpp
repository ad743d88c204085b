// The limits that a target's YAML states for operators (docs/target-yaml.md), for any backend's refuses().
#pragma once
#include <optional>
#include <string_view>

#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon {

// Why the limits that `description` states for operators of this name exclude `op` or one in its regions: "kernel 33
// exceeds 32 on target nvdla-small". Empty: no limit is exceeded, or none is stated. Checks the operator itself
// (`none`), the element types of all its operands and results, and each limited attribute; layouts are chosen later, so
// they are not checked.
//
// A word names the operator's attribute of that name, or else one of
//   kernel    the window: `kernel_shape`, else the spatial extents of the weights
//   stride    `strides`, 1 when absent              dilation  `dilations`, 1 when absent
//   pad       `pads`, 0 when absent; for `auto_pad`, the resulting padding
//   groups    `group`, 1 when absent
//   batch     extent 0 of the first operand         channels  extent 1 of the first operand and of the first result
//   dims      every extent of the first operand and of the first result
// Of several values each must satisfy the limit. Values known only to a run, such as an extent that is a symbol, are
// refused, and so is a word without a meaning for the operator: a limit that silently allows everything would be worse.
TENON_API std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op);

// The same by the limits stated for `stated_as`, of which `op` is another form: a fused or quantised one, or the
// target's own. Element types are checked only for the first operand and the results: what such a form adds (a bias in
// the type of accumulators) is up to the target.
TENON_API std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op,
                                               std::string_view stated_as);

// Returns an error at the first operator that `description` limits and that is not defined, or at the first word under
// an operator that is neither an attribute of it nor one of the words above with a meaning for it. The error names the
// nearest name that exists, and all of them. Called when targets are opened, with the operators of their plugin
// registered: a misspelt limit would silently allow everything, and one without meaning would refuse every operator of
// that name.
TENON_API Result<void> check_limits(const TargetDescription& description);

}  // namespace tenon
