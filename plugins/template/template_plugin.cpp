// The starting point for a new target: `tenon new-plugin NAME DIR` makes a copy of this under another name. It loads,
// runs one operator with a kernel of its own on the host's memory, and refuses all others. Each numbered step says what
// to put there; docs/writing-a-plugin.md explains the steps.
//
// 1. The YAML file beside this one holds every number of the device.
#include <cmath>
#include <memory>
#include <utility>

#include <tenon/ir/graph.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/plugin/host_executable.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/plugin.hpp>
#include <tenon/program/ir/kernel.hpp>

namespace {

using tenon::Code;
using tenon::Op;
using tenon::Refusal;
using tenon::Result;
using tenon::TargetDescription;

// 2. The kernel of an operator. A call has the operands, then the results, dense and of any extents. The caller plans
//    memory, divides tensors into strips and manages threads; several threads may call at once.
Result<void> absolute(tenon::program::CallContext& call) {
  const tenon::program::BufferView &x = call.operands[0], &y = call.operands[1];
  const auto* from = reinterpret_cast<const float*>(x.base);
  auto* to = reinterpret_cast<float*>(y.base);
  for (int64_t i = 0, count = y.elements(); i < count; ++i) to[i] = std::fabs(from[i]);
  return {};
}

class TemplateKernels final : public tenon::irgen::KernelSource {
 public:
  std::string_view name() const override { return "template"; }
  Result<tenon::irgen::KernelChoice> kernel(const tenon::irgen::KernelRequest& request) const override {
    if (request.op.is("Abs"))
      return tenon::irgen::KernelChoice{.kernel = absolute_, .in_place = {{.result = 0, .operand = 0}}};
    return tenon::error(Code::unsupported, "no kernel for ", request.op.name());
  }

 private:
  tenon::program::KernelHandle absolute_ = tenon::program::make_kernel("absolute", absolute);
};

// One target, ready to compile for. Created when a user opens the target; used by one thread at a time.
class TemplateBackend final : public tenon::TargetBackend {
 public:
  explicit TemplateBackend(TargetDescription description) : description_(std::move(description)) {}

  const TargetDescription& description() const override { return description_; }

  // 3. The device on which tensors are stored. A device that works on the host's memory uses host_device(); one with
  //    memory of its own returns its own tenon::Device, always the same one.
  std::shared_ptr<tenon::Device> device() const override { return tenon::host_device(); }

  // 4. The operators that the target runs. Decide for each operator without looking at its neighbours: nullopt accepts
  //    it; a Refusal leaves it to the next target, and its sentence is shown in the placement report, so it should have
  //    the numbers. Limits in the YAML (kernel sizes, element types ...) need no code here.
  std::optional<Refusal> refuses(const Op& op) const override {
    if (!op.is("Abs")) return Refusal{tenon::str("target '", name(), "' has no kernel for operator '", op.name(), "'")};
    if (op.result()->type().element() != tenon::kF32)
      return Refusal{tenon::str("target '", name(), "' computes '", op.name(), "' in f32 only, not in ",
                                op.result()->type().element())};
    return tenon::limits_refuse(description_, op);
  }

  // 5. Passes. Fuse operators and choose layouts in add_tensor_sel(), order and tile in add_tensor_sched(), place
  //    buffers in add_mem_alloc(), generate code in add_code_emit(). A phase without an override changes nothing.

  // 6. build() makes an executable of the graph after the passes, load() of what was stored of one. Inputs and outputs
  //    keep their order, names and types. A device with commands of its own returns its own tenon::Executable instead,
  //    as in examples/vendor_plugin. The graph has only operators that refuses() has accepted.
  Result<std::unique_ptr<tenon::Executable>> build(std::unique_ptr<tenon::Graph> graph) override {
    return tenon::make_host_executable(std::move(graph), options());
  }
  Result<std::unique_ptr<tenon::Executable>> load(std::span<const std::byte> bytes,
                                                  std::shared_ptr<void> owner) override {
    return tenon::load_host_executable(bytes, std::move(owner), options());
  }

 private:
  tenon::HostExecutableOptions options() const {
    return {.target = name(), .kernels = std::make_shared<TemplateKernels>()};
  }
  TargetDescription description_;
};

class TemplatePlugin final : public tenon::Plugin {
 public:
  // 7. Operators and passes of your own, if the device has some: register_extensions() calls register_ops(),
  //    register_evaluator() and register_pass(). With an evaluator an operator runs on every target, slowly, and tests
  //    can compare with it.

  // 8. Whether the device exists. nullopt: yes. Otherwise the sentence that `tenon devices` shows: "no /dev/acme0".
  std::optional<Refusal> unavailable(const TargetDescription&) override { return std::nullopt; }

  // 9. The keys that the YAML may have. An unknown name, such as a misspelt one, is an error with its line and column.
  Result<std::unique_ptr<tenon::TargetBackend>> create_backend(const TargetDescription& description) override {
    TENON_OK(description.allow_names("memories", {"dram", "scratch"}));
    TENON_OK(description.allow_names("engines", {"matmul", "vector"}));
    TENON_OK(description.options.allow_keys({"queue_depth"}));
    return std::unique_ptr<tenon::TargetBackend>(std::make_unique<TemplateBackend>(description));
  }
};

}  // namespace

// 10. This line makes the library a plugin: class, name (the key `plugin` of the YAML), vendor, version, and the names
//     of its targets.
TENON_PLUGIN(TemplatePlugin, "template", "Tenon", "0.1.0", "template")
