// The plugin opencl.so: targets opencl-cpu and opencl-gpu, and any file that names the plugin and a device.
#include <tenon/plugin/plugin.hpp>

#include "opencl/backend.hpp"
#include "opencl/device_info.hpp"

namespace {

class OpenclPlugin final : public tenon::Plugin {
 public:
  std::optional<tenon::Refusal> unavailable(const tenon::TargetDescription& description) override {
    const auto device = tenon::opencl::device_of(description);
    if (device.ok()) return std::nullopt;
    return tenon::Refusal{device.error().message()};
  }
  tenon::Result<std::unique_ptr<tenon::TargetBackend>> create_backend(
      const tenon::TargetDescription& description) override {
    return tenon::opencl::create_backend(description);
  }
};

}  // namespace

TENON_PLUGIN(OpenclPlugin, "opencl", "Tenon", "0.1.0", "opencl-cpu opencl-gpu")
