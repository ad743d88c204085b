// Tensors whose elements are all equal.
#pragma once
#include <tenon/support/export.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Whether there are at least two elements, all with the same bits; strings: equal.
TENON_API bool is_splat(const Tensor& tensor);

// Its first element as a tensor of rank 0. An error for strings and for empty tensors.
TENON_API Result<Tensor> first_element(const Tensor& tensor);

}  // namespace tenon
