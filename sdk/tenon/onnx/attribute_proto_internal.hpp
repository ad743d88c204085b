// Conversion between AttributeProto and Attribute. Graph attributes are handled elsewhere: see import.cpp.
#pragma once
#include <onnx.pb.h>

#include <functional>

#include <tenon/ir/attribute.hpp>
#include <tenon/onnx/external_data_internal.hpp>
#include <tenon/support/result.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// The stated type; for files that state none (IR version 1), the type of the field that is filled.
format::AttributeProto::AttributeType type_of(const format::AttributeProto& proto);
bool holds_graphs(const format::AttributeProto& proto);

// Tensors are read by `tensor`, so that the caller can reuse those that occur again.
struct TensorSource {
  std::function<Result<Tensor>(const format::TensorProto&)> tensor;
  std::function<Result<Tensor>(const format::SparseTensorProto&)> sparse;
};
Result<Attribute> read_attribute(const format::AttributeProto& proto, const TensorSource& source);

}  // namespace tenon::onnx
