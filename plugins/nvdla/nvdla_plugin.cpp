// The plugin nvdla.so: the targets nvdla-*, and any file that names the plugin and describes a machine.
#include <tenon/plugin/plugin.hpp>

#include "nvdla/backend.hpp"
#include "nvdla/hardware.hpp"
#include "nvdla/operators.hpp"

namespace {

class NvdlaPlugin final : public tenon::Plugin {
 public:
  tenon::Result<void> register_extensions() override { return tenon::nvdla::register_operators(); }
  std::optional<tenon::Refusal> unavailable(const tenon::TargetDescription& description) override {
    const auto hardware = tenon::nvdla::Hardware::of(description);
    if (hardware.ok()) return std::nullopt;
    return tenon::Refusal{hardware.error().message()};
  }
  tenon::Result<std::unique_ptr<tenon::TargetBackend>> create_backend(
      const tenon::TargetDescription& description) override {
    return tenon::nvdla::create_backend(description);
  }
};

}  // namespace

TENON_PLUGIN(NvdlaPlugin, "nvdla", "Tenon", "0.1.0", "nvdla-full nvdla-small")
