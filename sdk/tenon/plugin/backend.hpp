// What a target brings to the compiler: TargetBackend, and Plugin, which makes backends. This is the C++ side of the
// plugin seam; it is used only when the plugin was built against the same layout (see abi.h).
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

// Why a target leaves an operator to another one. Shown to users, so a sentence with numbers.
struct Refusal {
  std::string reason;  // "kernel 33 exceeds 32 on target nvdla-small"
};

// One target, ready to compile for. Compiling is the walk
//   preparation        of the whole graph, before operators are placed
//   tensor selection   fuse into target operators, choose layouts
//   tensor scheduling  order operations, tile, place DMA
//   memory allocation  places in each memory space
//   code emission      operators to machine code, source or commands
// A backend adds passes to any of the first phases; what it leaves out stays as the graph has it. Used by one thread at
// a time; the executables that it makes are free of it.
class TENON_API TargetBackend {
 public:
  virtual ~TargetBackend() = default;
  virtual const TargetDescription& description() const = 0;
  const std::string& name() const { return description().name; }
  virtual std::shared_ptr<Device> device() const = 0;

  // nullopt: the target runs this operator. Asked of each operator of the optimised graph, before partitioning; it must
  // not depend on neighbours.
  virtual std::optional<Refusal> refuses(const Op& op) const = 0;

  // The ways in which the target runs this operator of its part of the graph, in layouts. Empty: row-major only, or,
  // for an operator of Trait::layout_oblivious, any layout that is the same for operands and results.
  virtual std::vector<LayoutKernel> layout_kernels(const Op&) const { return {}; }
  // What reorders cost, in the unit of LayoutKernel::cost.
  virtual BandwidthTable layout_costs() const { return {}; }

  // Does the target's code of this operator, which it does not refuse, store a result a second time for less than a
  // copy takes? Its part of the graph then lists the result among its outputs as often as the whole graph does, and
  // an executable fills each. Else once, and runs copy it.
  virtual bool stores_again(const Op&) const { return false; }

  // What the whole graph goes through before operators are placed, when this target is among those wanted: legalising
  // what the target takes in another form only, such as quantised models. It may change numbers; whoever compiles is
  // told.
  virtual Result<void> add_prepare(PassManager&) { return {}; }

  virtual Result<void> add_tensor_sel(PassManager&) { return {}; }
  virtual Result<void> add_tensor_sched(PassManager&) { return {}; }
  virtual Result<void> add_mem_alloc(PassManager&) { return {}; }
  virtual Result<void> add_code_emit(PassManager&) { return {}; }
  // The graph, after the phases' passes, as an executable. Inputs and outputs keep their order, names and types.
  virtual Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) = 0;
  // From Executable::serialize of the same target and version. `owner` keeps `bytes` alive, which start at a multiple
  // of 64, so the executable may use them in place.
  virtual Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) {
    (void)bytes, (void)owner;
    return error(Code::unsupported, "target '", name(), "' does not store compiled code");
  }
};

// What a plugin's library makes once it is loaded. Called under the loader's lock.
class TENON_API Plugin {
 public:
  virtual ~Plugin() = default;
  // Operators, their evaluators and named passes of this plugin, registered with the core. Called once, first.
  virtual Result<void> register_extensions() { return {}; }
  // nullopt: a device for this target is there. Otherwise why not ("no OpenCL platform found"): shown by `tenon
  // devices`.
  virtual std::optional<Refusal> unavailable(const TargetDescription&) { return std::nullopt; }
  virtual Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) = 0;
};

// The reference target, built in: every operator that has an evaluator, on the host.
TENON_API Result<std::unique_ptr<TargetBackend>> create_reference_backend();

}  // namespace tenon
