// Where a new target starts: `tenon new-plugin NAME DIR` makes a copy of this under another name. It loads, runs one
// operator with a kernel of its own on the host's memory, and refuses all others politely. Each step below says what to
// put there; docs/writing-a-plugin.md walks through it.
//
// 1. The YAML beside this file holds every number of the device.
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

// 2. What an operator runs as. A call gives the operands, then the results, dense and of any extents: the runner around
//    it plans memory, cuts tensors into strips and calls threads. Several threads may call at once.
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

// One target, ready to compile for. Made when a user opens the target; used by one thread at a time.
class TemplateBackend final : public tenon::TargetBackend {
 public:
  explicit TemplateBackend(TargetDescription description) : description_(std::move(description)) {}

  const TargetDescription& description() const override { return description_; }

  // 3. Where tensors live. A device that works on the host's memory uses host_device(); one with memory of its own
  //    returns a tenon::Device of its own, always the same one.
  std::shared_ptr<tenon::Device> device() const override { return tenon::host_device(); }

  // 4. What the target runs. Answer per operator, without looking at its neighbours: nullopt takes it, a Refusal leaves
  //    it to the next target and shows its sentence in the placement report, so put the numbers in. Limits that the
  //    YAML states (kernel sizes, element types ...) need no code here.
  std::optional<Refusal> refuses(const Op& op) const override {
    if (!op.is("Abs")) return Refusal{tenon::str("target '", name(), "' has no kernel for operator '", op.name(), "'")};
    if (op.result()->type().element() != tenon::kF32)
      return Refusal{tenon::str("target '", name(), "' computes '", op.name(), "' in f32 only, not in ",
                                op.result()->type().element())};
    return tenon::limits_refuse(description_, op);
  }

  // 5. Passes. Fuse operators and choose layouts in add_tensor_sel(), order and tile in add_tensor_sched(), place
  //    buffers in add_mem_alloc(), make code in add_code_emit(). A phase without an override leaves the graph alone.

  // 6. The graph, after the passes, as something that runs; and again from what was stored of it. Inputs and outputs
  //    keep their order, names and types. A device with commands of its own has a tenon::Executable of its own instead,
  //    as examples/vendor_plugin does. It is asked only for operators that refuses() has taken.
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
  // 7. Operators and passes of your own, when the device has some: register_extensions() calls register_ops(),
  //    register_evaluator() and register_pass(). An evaluator makes them run everywhere, slowly, and gives tests an
  //    oracle.

  // 8. Is the device there? nullopt: yes. Otherwise the sentence that `tenon devices` shows: "no /dev/acme0".
  std::optional<Refusal> unavailable(const TargetDescription&) override { return std::nullopt; }

  // 9. What the YAML may say. A name that nobody reads, such as a misspelt one, is an error with its line and column.
  Result<std::unique_ptr<tenon::TargetBackend>> create_backend(const TargetDescription& description) override {
    TENON_OK(description.allow_names("memories", {"dram", "scratch"}));
    TENON_OK(description.allow_names("engines", {"matmul", "vector"}));
    TENON_OK(description.options.allow_keys({"queue_depth"}));
    return std::unique_ptr<tenon::TargetBackend>(std::make_unique<TemplateBackend>(description));
  }
};

}  // namespace

// 10. The one line that makes the library a plugin: class, name (the key `plugin` of the YAML), vendor, version, and
//     the names of its targets.
TENON_PLUGIN(TemplatePlugin, "template", "Tenon", "0.1.0", "template")
