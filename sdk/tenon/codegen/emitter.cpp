#include <tenon/codegen/emitter.hpp>

namespace tenon::codegen {

EmitContext::~EmitContext() = default;
Emitter::~Emitter() = default;

std::string_view register_file_name(RegisterFile file) {
  constexpr std::array<std::string_view, kRegisterFiles> kNames{"vector", "mask", "general"};
  return kNames[static_cast<size_t>(file)];
}

}  // namespace tenon::codegen
