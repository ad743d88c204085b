// Tensors all of whose elements are one.
#pragma once
#include <tenon/support/export.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Two elements or more, all of them the same bits; texts: equal.
TENON_API bool is_splat(const Tensor& tensor);

// Its first element as a tensor of rank 0. Not of texts or of none.
TENON_API Result<Tensor> first_element(const Tensor& tensor);

}  // namespace tenon
