// Compiler: from the bodies of snippets to OpenCL C, for one target, in the stages of docs/snippets.md. Needs no
// device.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/target/description.hpp>

#include "opencl/compute/compute.hpp"
#include "opencl/compute/epilogue.hpp"
#include "opencl/compute/search.hpp"
#include "opencl/group_form.hpp"

namespace tenon::opencl {

// The result for one body. Immutable.
struct CompiledSnippet {
  snippet::Body body;
  snippet::LinearKernel kernel;
  GroupForm form;
  std::string source;
  double cycles_per_element = 1;
};

struct CompilerOptions {
  int lanes = 16;          // 32-bit lanes of a vector, a power of two >= 4; half of them in bodies with 64-bit values
  int64_t work_group = 1;  // work items; several of them share the lanes of a snippet (group_form.hpp)
  size_t max_ports = 64;   // the most arguments of a kernel
  bool fuse = true;        // fuses snippets into preceding compute kernels
  int64_t local_bytes = 32 << 10, compute_units = 1;  // of the device
  Tiling tiling = {};                                 // of compute kernels (compute/compute.hpp)
  bool search = false;                                // measures which of their forms is the fastest
  bool sub_groups = true;                             // reduces in sub-groups where the device has them
  int64_t sub_group_size = 0;                         // SubGroups::size
  int64_t guard_zones = 0;                            // bytes around each buffer of a plan (guard_zones.hpp)
};

// Any thread.
class Compiler {
 public:
  Compiler(TargetDescription target, const codegen::JitterTable& table, const CompilerOptions& options)
      : target_(std::move(target)), table_(table), options_(options) {}

  Result<std::shared_ptr<const CompiledSnippet>> compile(const snippet::Body& body) const;
  // The source, with the operator and instruction above each line.
  Result<std::string> listing(const snippet::Body& body) const;
  // The same for a compute kernel and the snippet fused with it, if any; "" where extents must be known first.
  Result<std::string> listing(const Op& op, const std::optional<Epilogue>& epilogue) const;

  // Whether there is an emitter for this operator of a body (TokenizeOptions::can_emit).
  bool can_emit(const codegen::Signature& signature) const;
  bool can_access(ElementType element) const;
  // The reason why code for this body cannot be generated; "" when it can.
  std::string why_not(const snippet::Body& body) const;

  // The compute kernel in its chosen form, and in others where a search is requested.
  Result<ComputeForms> forms(const irgen::KernelRequest& request, const std::optional<Epilogue>& epilogue) const;

  // The reason why nothing on the device can run the operator; "" when something can, or will be able to once its
  // deciding operands are known.
  std::string why_not(const Op& op) const;

  ComputeTarget compute_target() const {
    return {
        target_,         table_,      options_.work_group, options_.lanes, options_.local_bytes, options_.compute_units,
        options_.tiling, sub_groups()};
  }
  SubGroups sub_groups() const {
    return options_.sub_groups ? sub_groups_of(target_, options_.sub_group_size) : SubGroups();
  }
  const TargetDescription& target() const { return target_; }
  const CompilerOptions& options() const { return options_; }

 private:
  struct Lowered {
    snippet::LinearKernel kernel;
    GroupForm form;
  };
  Result<Lowered> lower(const snippet::Body& body) const;
  Result<std::string> write(const snippet::Body& body, const Lowered& lowered, bool comments) const;

  const TargetDescription target_;
  const codegen::JitterTable& table_;
  const CompilerOptions options_;
};

// A kernel of a program that runs only on a device: a snippet or a compute kernel.
struct DeviceKernel : program::Kernel {
  std::shared_ptr<const CompiledSnippet> code;
  std::vector<size_t> operands;  // the call's operand for each of the body's inputs, then outputs
  ComputeForms forms;            // for a compute kernel; one is chosen when extents are known
  Type result;                   // with an epilogue: the result of the operator before it
};
// A DeviceKernel cannot run on the host.
std::shared_ptr<DeviceKernel> device_kernel(std::string name);

// Makes DeviceKernels of snippets, single operators that can be snippets, and compute kernels; nothing else.
class DeviceKernels final : public irgen::KernelSource {
 public:
  explicit DeviceKernels(std::shared_ptr<const Compiler> compiler) : compiler_(std::move(compiler)) {}
  std::string_view name() const override { return compiler_->target().name; }
  Result<irgen::KernelChoice> kernel(const irgen::KernelRequest& request) const override;

 private:
  Result<irgen::KernelChoice> snippet(const irgen::KernelRequest& request, const snippet::Body& body) const;
  std::shared_ptr<const Compiler> compiler_;
};

}  // namespace tenon::opencl
