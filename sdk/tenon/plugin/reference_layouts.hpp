// The layouts in which the reference runs operators, as stated by a description: a YAML file can thus define a target
// that accepts only NCHW, only NHWC, or blocked channels.
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
// where they have another rank. Costs are the bytes of operands and results. Where a weight is padded as well, a Conv,
// or a MatMul of matrices, works on padded channels and requires zeros there; pooling accepts any padding; all other
// operators read and write elements only.
std::vector<LayoutKernel> reference_layout_kernels(const TargetDescription& description, const Op& op);

}  // namespace tenon
