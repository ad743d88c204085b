// The targets of the plugin: fused integer operators as streams of instructions.
//
// Options of a target file, in addition to those of the machine (hardware.hpp):
//   double_buffer   false: one slot in each buffer, nothing overlaps. Default true
//   race_check      false: streams are not checked when they are compiled. Default true
//   trace           file for a Chrome trace of the last run by the embedded simulator. Default: none
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

#include "vta/passes/passes.hpp"

namespace tenon::vta {

// An error for a machine whose instructions cannot be encoded, or a driver library that cannot be opened. The driver
// itself is opened when the first graph is built.
Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description);

// The parameters of this target's passes.
Result<PassContext> pass_context(const TargetDescription& description);

// Runs all passes of the four phases, like the compiler: for tests, and for users who want streams without a model.
Result<void> run_phases(Graph& graph, const PassContext& context);

}  // namespace tenon::vta
