// The targets of the plugin. Snippets become machine code, data movement becomes statements of programs; all memory is
// that of the host.
//
// Options of a target file:
//   fuse       false: each operator is a kernel of its own, to measure what fusion gains. Default true
//   contract   false: no a * b + c in one instruction, so that results have the bits of the separate operators.
//              Default true
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::x86 {

// An error when the description's features do not include an instruction set that code is generated for.
Result<std::unique_ptr<TargetBackend>> create_backend(TargetDescription description);

}  // namespace tenon::x86
