// The source of a graph's kernels for human readers, with the operators beside its lines.
#pragma once
#include <string>
#include <string_view>

#include <tenon/ir/graph.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// One section for each kernel, in order; a compute kernel and the snippet fused to it are one. In snippets, the
// operator and instruction are above the lines; in compute kernels, the operator and the values read and written are
// beside them. Kernels that can only be generated when a run knows more are omitted. `device`: its name.
Result<std::string> listing(const Region& body, const Compiler& compiler, std::string_view device);

}  // namespace tenon::opencl
