// The plugin vta.so: the targets vta-*, and any file that names the plugin and describes a machine.
#include <tenon/plugin/plugin.hpp>

#include "vta/backend.hpp"
#include "vta/hardware.hpp"
#include "vta/operators.hpp"

namespace {

class VtaPlugin final : public tenon::Plugin {
 public:
  tenon::Result<void> register_extensions() override { return tenon::vta::register_operators(); }
  std::optional<tenon::Refusal> unavailable(const tenon::TargetDescription& description) override {
    const auto hardware = tenon::vta::Hardware::of(description);
    if (hardware.ok()) return std::nullopt;
    return tenon::Refusal{hardware.error().message()};
  }
  tenon::Result<std::unique_ptr<tenon::TargetBackend>> create_backend(
      const tenon::TargetDescription& description) override {
    return tenon::vta::create_backend(description);
  }
};

}  // namespace

TENON_PLUGIN(VtaPlugin, "vta", "Tenon", "0.1.0", "vta-default vta-half vta-1x32x32 vta-2x16x16 vta-4x8x8")
