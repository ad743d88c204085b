#include "vta/backend.hpp"

#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/limits.hpp>

#include "vta/device_op.hpp"
#include "vta/executable.hpp"

namespace tenon::vta {
namespace {

Result<ExecutableOptions> options_of(const TargetDescription& description) {
  ExecutableOptions options;
  TENON_TRY(double_buffer, description.options.boolean_or("double_buffer", true));
  TENON_TRY(check, description.options.boolean_or("race_check", true));
  TENON_TRY(trace, description.options.text_or("trace", ""));
  options.stream = {.tiling = {.double_buffer = double_buffer}, .check = check};
  options.trace_file = trace;
  return options;
}

class Backend final : public TargetBackend {
 public:
  Backend(TargetDescription description, const Hardware& hardware, ExecutableOptions options)
      : description_(std::move(description)), hardware_(hardware), options_(std::move(options)) {}

  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return host_device(); }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (isa<Constant>(op)) return std::nullopt;
    if (auto refusal = limits_refuse(description_, op)) return refusal;
    const auto made = device_op(op, hardware_);
    if (!made.ok()) return Refusal{made.error().message()};
    const auto tiled = check_tiling(*made, hardware_);
    if (!tiled.ok()) return Refusal{tiled.error().message()};
    return std::nullopt;
  }

  // Models with scales of their own, too.
  Result<void> add_prepare(PassManager& passes) override { return passes.add("legalise-quantised"); }

  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    if (!driver_) {
      TENON_TRY(driver, open_driver(description_, hardware_, !options_.trace_file.empty()));
      driver_ = std::move(driver);
    }
    return make_executable(std::move(graph), hardware_, driver_, options_);
  }

  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", name(), "'");
    TENON_OK(verify(*graph), "a graph stored for target '", name(), "'");
    return build(std::move(graph));
  }

 private:
  const TargetDescription description_;
  const Hardware hardware_;
  const ExecutableOptions options_;
  std::shared_ptr<Driver> driver_;
};

}  // namespace

Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) {
  TENON_TRY(hardware, Hardware::of(description));
  TENON_TRY(options, options_of(description), "the options of target '", description.name, "'");
  return std::unique_ptr<TargetBackend>(std::make_unique<Backend>(description, hardware, std::move(options)));
}

}  // namespace tenon::vta
