// Conversion between TensorProto and Tensor.
#pragma once
#include <onnx.pb.h>

#include <string>

#include <tenon/onnx/external_data_internal.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// The element type of a TensorProto.DataType number; an error names an invalid number.
Result<ElementType> element_from_number(int32_t data_type);
// The number, or Code::unsupported for a type that ONNX lacks (i3, u17 ...).
Result<int32_t> number_of_element(ElementType element);

// Moves the elements out of `proto`: raw bytes become the tensor's own without a copy; other fields are freed once
// read. `external` may be null; external data is then refused.
Result<Tensor> take_tensor(format::TensorProto& proto, ExternalData* external);
// The same for a sparse tensor, in dense form.
Result<Tensor> take_sparse_tensor(format::SparseTensorProto& proto, ExternalData* external);

// Writes everything except the elements: name, dims, type.
Result<void> write_tensor_header(const Tensor& tensor, const std::string& name, format::TensorProto& out);
// Writes the tensor with its elements in raw_data (strings: string_data).
Result<void> write_tensor(const Tensor& tensor, const std::string& name, format::TensorProto& out);

}  // namespace tenon::onnx
