// The layouts in which the reference runs operators, as a description states them: so that a YAML file makes a target
// that takes NCHW only, NHWC only, or channels in blocks.
//
//   layouts: {activation: "NHWC", weight: "OHWI"}            # of all operators that have activations
//   operators: {Conv: {layouts: ["NCHW{16c}", "NCHW"]}}      # of one, any of these
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/layout_kernel.hpp>
#include <tenon/target/description.hpp>

namespace tenon {

// A kernel for each layout that the description states for the operator's activations; none where it states none, or
// where they are of another rank. Costs are the bytes of operands and results. With a weight that is padded, too, a
// Conv, or a MatMul of matrices, works on padded channels and needs zeros there; pooling takes padding as it comes; all
// others read and write elements alone.
std::vector<LayoutKernel> reference_layout_kernels(const TargetDescription& description, const Op& op);

}  // namespace tenon
