// The reference target with a custom description: the limits that it states are refusals, so that any combination of
// targets can be tested on the host.
#pragma once
#include <memory>
#include <optional>

#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// An error for entries that the reference does not read: roles of layouts other than activation, weight and matrix, and
// options.
TENON_API Result<void> check_reference(const TargetDescription& description);

TENON_API std::unique_ptr<TargetBackend> create_reference_backend(TargetDescription description);
// The description of the reference without any file.
TENON_API TargetDescription reference_description();

// Why the reference cannot run `op`: no evaluator and no decomposition, of the operator or of one in its regions.
TENON_API std::optional<Refusal> reference_refuses(const Op& op);
// Whether an evaluator or a decomposition runs `op` itself, whatever its regions contain.
TENON_API bool reference_runs(const Op& op);

}  // namespace tenon
