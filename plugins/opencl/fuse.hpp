// Which snippets become epilogues of compute kernels (compute/epilogue.hpp): the group of both is one call.
//
//   Conv layer1/conv ─▶ snippet.Subgraph (bias, residual, Relu)   one launch, "Conv layer1/conv with snippet relu"
//
// The kernel's result must have no other use, so that groups never stand in one another's way: what leaves a group
// leaves it behind the snippet.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/irgen/from_graph.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// A compute operator and the snippet behind it, as one kernel.
struct Fused {
  const Op* op = nullptr;
  const Op* behind = nullptr;
  size_t input = 0;            // of the snippet's body: the result of `op`
  std::vector<size_t> others;  // operands of the snippet that its body reads else
  std::shared_ptr<DeviceKernel> kernel;

  std::string stage() const;
};
// Of operators in the graph's order.
std::vector<Fused> fuse_epilogues(std::span<const Op* const> ops, const Compiler& compiler);

// The compiler outlives what it returns.
irgen::Grouping epilogue_grouping(const Compiler& compiler);

}  // namespace tenon::opencl
