// Tensors between TensorProto and Tensor.
#pragma once
#include <onnx.pb.h>

#include <string>

#include <tenon/onnx/external_data_internal.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// The element type of a TensorProto.DataType number, or an error saying which number is not one.
Result<ElementType> element_from_number(int32_t data_type);
// The number, or Code::unsupported for a type that ONNX lacks (i3, u17 ...).
Result<int32_t> number_of_element(ElementType element);

// Takes the elements out of `proto`: raw bytes become the tensor's own without a copy, other fields are freed once
// read. `external` may be null: then external data is refused.
Result<Tensor> take_tensor(format::TensorProto& proto, ExternalData* external);
// The dense form.
Result<Tensor> take_sparse_tensor(format::SparseTensorProto& proto, ExternalData* external);

// Everything but the elements: name, dims, type.
Result<void> write_tensor_header(const Tensor& tensor, const std::string& name, format::TensorProto& out);
// With the elements in raw_data (strings: string_data).
Result<void> write_tensor(const Tensor& tensor, const std::string& name, format::TensorProto& out);

}  // namespace tenon::onnx
