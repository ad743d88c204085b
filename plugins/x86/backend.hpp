// The targets of the plugin: snippets as machine code, movement as statements of programs, on the host's memory.
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::x86 {

// An error when the description's features are not those of an instruction set that code is made for.
Result<std::unique_ptr<TargetBackend>> create_backend(TargetDescription description);

}  // namespace tenon::x86
