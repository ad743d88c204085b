#include "vta/backend.hpp"

#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/limits.hpp>

#include "vta/device_op.hpp"
#include "vta/executable.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {
namespace {

using MakePass = Pass (*)(const PassContext&);
constexpr MakePass kTensorSel[] = {vta_legalise, vta_select, vta_pack};
constexpr MakePass kTensorSched[] = {vta_double_buffer, vta_tile, vta_insert_dma};
constexpr MakePass kMemAlloc[] = {vta_scratchpads, vta_dram};
constexpr MakePass kCodeEmit[] = {vta_encode};

Result<void> add_all(PassManager& passes, std::span<const MakePass> makers, const PassContext& context) {
  for (const MakePass make : makers) TENON_OK(passes.add(make(context)));
  return {};
}

class Backend final : public TargetBackend {
 public:
  Backend(PassContext context, ExecutableOptions options)
      : context_(std::move(context)), options_(std::move(options)) {}

  const TargetDescription& description() const override { return context_.target; }
  std::shared_ptr<Device> device() const override { return host_device(); }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (isa<Constant>(op)) return std::nullopt;
    if (auto refusal = limits_refuse(context_.target, op)) return refusal;
    const auto made = device_op(op, context_.hardware);
    if (!made.ok()) return Refusal{made.error().message()};
    const auto tiled = check_tiling(*made, context_.hardware);
    if (!tiled.ok()) return Refusal{tiled.error().message()};
    return std::nullopt;
  }

  // Also supports models that have scales of their own.
  Result<void> add_prepare(PassManager& passes) override { return passes.add("legalise-quantised"); }

  Result<void> add_tensor_sel(PassManager& passes) override { return add_all(passes, kTensorSel, context_); }
  Result<void> add_tensor_sched(PassManager& passes) override { return add_all(passes, kTensorSched, context_); }
  Result<void> add_mem_alloc(PassManager& passes) override { return add_all(passes, kMemAlloc, context_); }
  Result<void> add_code_emit(PassManager& passes) override { return add_all(passes, kCodeEmit, context_); }

  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    if (!driver_) {
      TENON_TRY(driver, open_driver(context_.target, context_.hardware, !options_.trace_file.empty()));
      driver_ = std::move(driver);
    }
    return make_executable(std::move(graph), context_.hardware, driver_, options_);
  }

  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", name(), "'");
    TENON_OK(verify(*graph), "a graph stored for target '", name(), "'");
    return build(std::move(graph));
  }

 private:
  const PassContext context_;
  const ExecutableOptions options_;
  std::shared_ptr<Driver> driver_;
};

}  // namespace

Result<PassContext> pass_context(const TargetDescription& description) {
  TENON_OK(register_operators());
  TENON_TRY(hardware, Hardware::of(description));
  TENON_TRY(double_buffer, description.options.boolean_or("double_buffer", true));
  TENON_TRY(check, description.options.boolean_or("race_check", true));
  return PassContext{description, hardware, double_buffer, check};
}

Result<void> run_phases(Graph& graph, const PassContext& context) {
  PassManager passes("all phases");
  for (const std::span<const MakePass> phase :
       {std::span<const MakePass>(kTensorSel), std::span<const MakePass>(kTensorSched),
        std::span<const MakePass>(kMemAlloc), std::span<const MakePass>(kCodeEmit)})
    TENON_OK(add_all(passes, phase, context));
  TENON_OK(passes.run(graph));
  return {};
}

Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) {
  TENON_TRY(context, pass_context(description));
  ExecutableOptions options;
  TENON_TRY(trace, description.options.text_or("trace", ""));
  options.trace_file = trace;
  return std::unique_ptr<TargetBackend>(std::make_unique<Backend>(std::move(context), std::move(options)));
}

}  // namespace tenon::vta
