#include <tenon/plugin/reference_backend.hpp>

#include <utility>

#include <tenon/ir/op_def.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/irgen/reference_strips.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/plugin/host_executable.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/reference_layouts.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon {
namespace {

class ReferenceBackend final : public TargetBackend {
 public:
  explicit ReferenceBackend(TargetDescription description) : description_(std::move(description)) {}

  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return host_device(); }
  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = reference_refuses(op)) return refusal;
    return limits_refuse(description_, op);
  }
  std::vector<LayoutKernel> layout_kernels(const Op& op) const override {
    return reference_layout_kernels(description_, op);
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return make_host_executable(std::move(graph), options());
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    return load_host_executable(bytes, std::move(owner), options());
  }

 private:
  HostExecutableOptions options() const {
    // Stateless: never freed.
    std::shared_ptr<const irgen::KernelSource> kernels(std::shared_ptr<void>(), &irgen::reference_kernels());
    irgen::RunnerOptions runner{.threads = default_pool().threads()};
    runner.lower.grouping = irgen::strip_grouping(irgen::reference_strips(description_, runner.threads));
    return {.target = name(), .kernels = std::move(kernels), .runner = std::move(runner)};
  }
  TargetDescription description_;
};

}  // namespace

Result<void> check_reference(const TargetDescription& description) {
  TENON_OK(description.allow_names("layouts", {"activation", "weight", "matrix"}));
  return description.options.allow_keys({});
}

bool reference_runs(const Op& op) {
  return isa<Constant>(op) || find_evaluator(op.name()) || (op.def() && op.def()->decompose_fn());
}

std::optional<Refusal> reference_refuses(const Op& op) {
  if (!reference_runs(op)) {
    return Refusal{
        str("the reference has no evaluator for operator '", op.name(), "', and the operator no decomposition")};
  }
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Op& inner : op.region(i)) {
      if (auto refusal = reference_refuses(inner)) return refusal;
    }
  }
  return std::nullopt;
}

std::unique_ptr<TargetBackend> create_reference_backend(TargetDescription description) {
  return std::make_unique<ReferenceBackend>(std::move(description));
}

TargetDescription reference_description() {
  TargetDescription description;
  description.name = "reference";
  description.plugin = "reference";
  return description;
}

Result<std::unique_ptr<TargetBackend>> create_reference_backend() {
  return create_reference_backend(reference_description());
}

}  // namespace tenon
