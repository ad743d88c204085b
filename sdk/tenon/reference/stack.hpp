// Joining tensors from slices and splitting them into slices: for loops and sequences.
#pragma once
#include <span>

#include <tenon/support/parallel.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Joins tensors of the same type and shape along a new axis, or along an existing one. At least one tensor.
Result<Tensor> stack(ParallelFor& parallel, std::span<const Tensor> parts, size_t axis);
Result<Tensor> concatenate(ParallelFor& parallel, std::span<const Tensor> parts, size_t axis);

// `length` slices of `tensor` along `axis`, from `begin` on.
Result<Tensor> slices(ParallelFor& parallel, const Tensor& tensor, size_t axis, int64_t begin, int64_t length);
// One slice, without the axis.
Result<Tensor> slice_at(ParallelFor& parallel, const Tensor& tensor, size_t axis, int64_t index);

}  // namespace tenon
