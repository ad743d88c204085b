// From a linear kernel to OpenCL C.
//
//   TENON_OK(snippet::allocate(kernel, variables_of(kernel), snippet::needs_of(table, target)));
//   TENON_TRY(source, assemble(kernel, {.ports = body_ports}, table, target));
#pragma once
#include <string>
#include <string_view>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/target/description.hpp>

#include "opencl/group_form.hpp"

namespace tenon::opencl {

// The kernel's name in every source, so that kernels that compute the same have equal sources.
inline constexpr std::string_view kSnippetKernel = "tenon_snippet";

// Registers are variables, as many as the kernel names, so nothing is ever spilled.
codegen::RegisterPool variables_of(const snippet::LinearKernel& kernel);

struct AssembleOptions {
  size_t ports = 0;  // of the kernel's body: inputs and outputs
  GroupForm form = {};
  bool comments = false;  // adds the operator and instruction above the lines generated from them
};

// `kernel` must be allocated. An error names the instruction that has no row.
Result<std::string> assemble(const snippet::LinearKernel& kernel, const AssembleOptions& options,
                             const codegen::JitterTable& table, const TargetDescription& target);

}  // namespace tenon::opencl
