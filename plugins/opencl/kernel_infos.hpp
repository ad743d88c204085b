// Information about the kernels of an executable.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// One entry for each kernel that a run launches, in the graph's order: snippets, compute kernels, and compute kernels
// with the snippet fused to them (fuse.hpp), under the label that profiles use. Bytes of unknown extents are 0. Moves
// are not included, because they do no operator's arithmetic.
std::vector<KernelInfo> kernel_infos(const Graph& graph, const Compiler& compiler);

}  // namespace tenon::opencl
