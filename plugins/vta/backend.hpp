// The targets of the plugin: fused integer operators as streams of instructions.
//
// Options of a target file, beside those of the machine (hardware.hpp):
//   double_buffer   false: one slot in each buffer, nothing overlaps. Default true
//   race_check      false: streams are not checked when they are compiled. Default true
//   trace           a file for the Chrome trace of the last run, by the embedded simulator. Default: none
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

#include "vta/passes/passes.hpp"

namespace tenon::vta {

// An error for a machine whose instructions cannot be encoded, or a driver library that cannot be opened. The driver is
// opened when the first graph is built.
Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description);

// What passes of this target go by.
Result<PassContext> pass_context(const TargetDescription& description);

// All passes of the four phases, as the compiler runs them: for tests, and for whoever wants streams without a model.
Result<void> run_phases(Graph& graph, const PassContext& context);

}  // namespace tenon::vta
