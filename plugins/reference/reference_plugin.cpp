// The reference target as a plugin. It adds nothing, so that every test of the built-in reference can also be run
// through the plugin interface of a loaded library.
#include <tenon/plugin/plugin.hpp>
#include <tenon/plugin/reference_backend.hpp>

namespace {

class ReferencePlugin final : public tenon::Plugin {
 public:
  tenon::Result<std::unique_ptr<tenon::TargetBackend>> create_backend(
      const tenon::TargetDescription& description) override {
    TENON_OK(tenon::check_reference(description));
    return tenon::create_reference_backend(description);
  }
};

}  // namespace

TENON_PLUGIN(ReferencePlugin, "reference-plugin", "Tenon", "0.1.0", "reference-plugin")
