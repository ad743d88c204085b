// The plugin x86.so: the targets x86-avx2 and x86-avx512.
#include <tenon/plugin/plugin.hpp>

#include "x86/backend.hpp"
#include "x86/isa.hpp"

namespace {

class X86Plugin final : public tenon::Plugin {
 public:
  std::optional<tenon::Refusal> unavailable(const tenon::TargetDescription& description) override {
    const tenon::x86::Isa isa = tenon::x86::isa_of(description);
    if (!tenon::x86::machine_has(isa))
      return tenon::Refusal{tenon::str("this machine has no ", tenon::x86::isa_name(isa))};
    if (tenon::x86::has_vbmi(description) && !tenon::x86::machine_has_vbmi())
      return tenon::Refusal{tenon::str("this machine has no ", tenon::x86::kVbmi)};
    return std::nullopt;
  }
  tenon::Result<std::unique_ptr<tenon::TargetBackend>> create_backend(
      const tenon::TargetDescription& description) override {
    return tenon::x86::create_backend(description);
  }
};

}  // namespace

TENON_PLUGIN(X86Plugin, "x86", "Tenon", "0.1.0", "x86-avx2 x86-avx512")
