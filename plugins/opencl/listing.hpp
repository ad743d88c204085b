// The source of a graph's kernels for a reader, with the operators beside its lines.
#pragma once
#include <string>
#include <string_view>

#include <tenon/ir/graph.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// Of each operator that is a kernel, in order; a compute kernel and the snippet in it are one. Lines of snippets have
// operator and instruction above them, those of compute kernels the operator, and the values that they read and write,
// beside them. Kernels that can only be made when a run knows more are left out. `device`: its name.
Result<std::string> listing(const Region& body, const Compiler& compiler, std::string_view device);

}  // namespace tenon::opencl
