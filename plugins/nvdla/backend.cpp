#include "nvdla/backend.hpp"

#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/pass_manager.hpp>

#include "nvdla/executable.hpp"
#include "nvdla/operators.hpp"
#include "nvdla/passes.hpp"
#include "nvdla/select.hpp"

namespace tenon::nvdla {
namespace {

class Backend final : public TargetBackend {
 public:
  Backend(MachinePtr machine, Pass fuse) : machine_(std::move(machine)), fuse_(std::move(fuse)) {}

  const TargetDescription& description() const override { return machine_->description; }
  std::shared_ptr<Device> device() const override { return host_device(); }
  std::optional<Refusal> refuses(const Op& op) const override { return refusal(op, *machine_); }

  // Supports models with another element type than the machine's.
  Result<void> add_prepare(PassManager& passes) override {
    if (!machine_->hardware.half()) return passes.add("legalise-quantised");
    TENON_OK(passes.add(prepare_half_pass(machine_)));
    return passes.add("remove-dead");
  }
  Result<void> add_tensor_sel(PassManager& passes) override {
    TENON_OK(passes.add(select_pass(machine_)));
    TENON_OK(passes.add(fuse_));
    TENON_OK(passes.add("remove-dead"));
    return passes.add(lay_out_pass(machine_));
  }
  Result<void> add_tensor_sched(PassManager& passes) override { return passes.add(plan_pass(machine_)); }
  Result<void> add_mem_alloc(PassManager& passes) override { return passes.add(place_pass(machine_)); }
  Result<void> add_code_emit(PassManager& passes) override { return passes.add(encode_pass(machine_)); }

  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return make_executable(std::move(graph), machine_->hardware);
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", name(), "'");
    TENON_OK(verify(*graph), "a graph stored for target '", name(), "'");
    return build(std::move(graph));
  }

 private:
  const MachinePtr machine_;
  const Pass fuse_;
};

}  // namespace

Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) {
  TENON_OK(register_operators());
  TENON_TRY(hardware, Hardware::of(description));
  const auto machine = std::make_shared<const Machine>(Machine{description, hardware});
  TENON_TRY(fuse, fuse_pass(machine));
  return std::unique_ptr<TargetBackend>(std::make_unique<Backend>(machine, std::move(fuse)));
}

}  // namespace tenon::nvdla
