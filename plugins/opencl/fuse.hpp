// Selects the snippets that become epilogues of compute kernels (compute/epilogue.hpp): the group of both is one call.
//
//   Conv layer1/conv ─▶ snippet.Subgraph (bias, residual, Relu)   one launch, "Conv layer1/conv with snippet relu"
//
// The kernel's result must have no other use. Then groups never interfere with one another: values leave a group only
// through its snippet.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/irgen/from_graph.hpp>

#include "opencl/compiler.hpp"

namespace tenon::opencl {

// A compute operator and the snippet after it, as one kernel.
struct Fused {
  const Op* op = nullptr;
  const Op* behind = nullptr;
  size_t input = 0;            // the input of the snippet's body that is the result of `op`
  std::vector<size_t> others;  // the other operands of the snippet that its body reads
  std::shared_ptr<DeviceKernel> kernel;

  std::string stage() const;
};
// `ops`: operators in the graph's order.
std::vector<Fused> fuse_epilogues(std::span<const Op* const> ops, const Compiler& compiler);

// The compiler must outlive the result.
irgen::Grouping epilogue_grouping(const Compiler& compiler);

}  // namespace tenon::opencl
