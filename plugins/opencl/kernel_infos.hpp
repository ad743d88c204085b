// What an executable tells of its kernels.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// One for each kernel that a run launches, in the graph's order: snippets, compute kernels, and compute kernels with
// the snippet behind them (fuse.hpp), under the label that a profile has. Bytes of extents that are not known are 0;
// moves, which no operator's arithmetic is in, are not told.
std::vector<KernelInfo> kernel_infos(const Graph& graph, const Compiler& compiler);

}  // namespace tenon::opencl
