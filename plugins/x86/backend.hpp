// The targets of the plugin: snippets as machine code, movement as statements of programs, on the host's memory.
//
// Options of a target file:
//   fuse       false: every operator is a kernel of its own; to see what fusing is good for. Default true
//   contract   false: no a * b + c in one instruction, so that results have the bits of the operators one by one.
//   Default true
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::x86 {

// An error when the description's features are not those of an instruction set that code is made for.
Result<std::unique_ptr<TargetBackend>> create_backend(TargetDescription description);

}  // namespace tenon::x86
