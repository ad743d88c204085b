// Compiler: from bodies of snippets to OpenCL C, for one target. The walk of docs/snippets.md on one page. No device is
// needed for it.
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

// What one body became. Immutable.
struct CompiledSnippet {
  snippet::Body body;
  snippet::LinearKernel kernel;
  GroupForm form;
  std::string source;
  double cycles_per_element = 1;
};

struct CompilerOptions {
  int lanes = 16;          // of 32 bits in a vector; bodies with 64-bit values have half of them; a power of two, >= 4
  int64_t work_group = 1;  // items; several of them share the lanes of a snippet (group_form.hpp)
  size_t max_ports = 64;   // what a kernel may be called with
  bool fuse = true;        // snippets into the compute kernels before them
  int64_t local_bytes = 32 << 10, compute_units = 1;  // of the device
  Tiling tiling = {};                                 // of compute kernels (compute/compute.hpp)
  bool search = false;                                // measure which form of them is the fastest
  bool sub_groups = true;                             // fold by them where the device has them
  int64_t sub_group_size = 0;                         // SubGroups::size
  int64_t guard_zones = 0;                            // bytes around each buffer of a plan (guard_zones.hpp)
};

// Any thread.
class Compiler {
 public:
  Compiler(TargetDescription target, const codegen::JitterTable& table, const CompilerOptions& options)
      : target_(std::move(target)), table_(table), options_(options) {}

  Result<std::shared_ptr<const CompiledSnippet>> compile(const snippet::Body& body) const;
  // The source with the operator and instruction above each line.
  Result<std::string> listing(const snippet::Body& body) const;
  // The same of a compute kernel and the snippet behind it, if there is one; "" where extents must be known first.
  Result<std::string> listing(const Op& op, const std::optional<Epilogue>& epilogue) const;

  // Is there an emitter for this operator of a body (TokenizeOptions::can_emit)?
  bool can_emit(const codegen::Signature& signature) const;
  bool can_access(ElementType element) const;
  // Why code for this body cannot be made; "" when it can.
  std::string why_not(const snippet::Body& body) const;

  // A compute kernel as it is, and where a search is wanted, in other forms.
  Result<ComputeForms> forms(const irgen::KernelRequest& request, const std::optional<Epilogue>& epilogue) const;

  // Why nothing on the device runs the operator; "" when something does, or will once its deciding operands are known.
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

// A kernel of a program that runs on a device only: a snippet or a compute kernel.
struct DeviceKernel : program::Kernel {
  std::shared_ptr<const CompiledSnippet> code;
  std::vector<size_t> operands;  // of the body's inputs, then outputs: which operand of the call each is
  ComputeForms forms;            // of a compute kernel; one of several is chosen when extents are known
  Type result;                   // with an epilogue: of the operator before it
};
// Runs on no host.
std::shared_ptr<DeviceKernel> device_kernel(std::string name);

// Snippets, operators that are snippets by themselves, and compute kernels, as DeviceKernels; nothing else.
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
