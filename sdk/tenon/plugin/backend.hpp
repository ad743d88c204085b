// The contribution of a target to the compiler: TargetBackend, and Plugin, which makes backends. This is the C++ side
// of the plugin seam; it is used only when the plugin was built against the same layout (see abi.h).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/layout_kernel.hpp>
#include <tenon/runtime/device.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>
#include <tenon/tensor/reorder.hpp>

namespace tenon {

class PassManager;

// Why a target leaves an operator to another one. Shown to users: a sentence with numbers.
struct Refusal {
  std::string reason;  // "kernel 33 exceeds 32 on target nvdla-small"
};

// One target, ready to compile for. The phases of compilation are
//   preparation        of the whole graph, before operators are placed
//   tensor selection   fuse into target operators, choose layouts
//   tensor scheduling  order operations, tile, place DMA
//   memory allocation  places in each memory space
//   code emission      operators to machine code, source or commands
// A backend may add passes to each of these phases; without passes the graph stays as it is. Used by one thread at a
// time; the executables that it makes do not depend on it.
class TENON_API TargetBackend {
 public:
  virtual ~TargetBackend() = default;
  virtual const TargetDescription& description() const = 0;
  const std::string& name() const { return description().name; }
  virtual std::shared_ptr<Device> device() const = 0;

  // nullopt: the target runs this operator. Called for each operator of the optimised graph, before partitioning; the
  // answer must not depend on neighbours.
  virtual std::optional<Refusal> refuses(const Op& op) const = 0;

  // The ways in which the target runs this operator of its part of the graph, in layouts. Empty: row-major only, or,
  // for an operator of Trait::layout_oblivious, any layout that operands and results share.
  virtual std::vector<LayoutKernel> layout_kernels(const Op&) const { return {}; }
  // The costs of reorders, in the unit of LayoutKernel::cost.
  virtual BandwidthTable layout_costs() const { return {}; }

  // Whether the target's code for this operator, which it does not refuse, can store a result a second time in less
  // time than a copy takes. Its part of the graph then lists the result among its outputs as often as the whole graph
  // does, and an executable fills each. Otherwise it is listed once, and runs copy it.
  virtual bool stores_again(const Op&) const { return false; }

  // Passes on the whole graph before operators are placed, when this target is among those requested: they legalise
  // what the target accepts only in another form, such as quantised models. They may change numbers; the caller of
  // compile() is told.
  virtual Result<void> add_prepare(PassManager&) { return {}; }

  virtual Result<void> add_tensor_sel(PassManager&) { return {}; }
  virtual Result<void> add_tensor_sched(PassManager&) { return {}; }
  virtual Result<void> add_mem_alloc(PassManager&) { return {}; }
  virtual Result<void> add_code_emit(PassManager&) { return {}; }
  // Compiles the graph, after the passes of the phases. Inputs and outputs keep their order, names and types.
  virtual Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) = 0;
  // `bytes` come from Executable::serialize of the same target and version. `owner` keeps them alive; they start at a
  // multiple of 64, so the executable may use them in place.
  virtual Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) {
    (void)bytes, (void)owner;
    return error(Code::unsupported, "target '", name(), "' does not store compiled code");
  }
};

// Made by a plugin's library when it is loaded. Called under the loader's lock.
class TENON_API Plugin {
 public:
  virtual ~Plugin() = default;
  // Registers operators, their evaluators and named passes of this plugin with the core. Called once, first.
  virtual Result<void> register_extensions() { return {}; }
  // nullopt: a device for this target is present. Otherwise why not ("no OpenCL platform found"): shown by `tenon
  // devices`.
  virtual std::optional<Refusal> unavailable(const TargetDescription&) { return std::nullopt; }
  virtual Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) = 0;
};

// The reference target, built in: every operator with an evaluator, on the host.
TENON_API Result<std::unique_ptr<TargetBackend>> create_reference_backend();

}  // namespace tenon
