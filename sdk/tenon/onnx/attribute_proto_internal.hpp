// Attributes between AttributeProto and Attribute. Graphs are not attributes here: see import.cpp.
#pragma once
#include <onnx.pb.h>

#include <functional>

#include <tenon/ir/attribute.hpp>
#include <tenon/onnx/external_data_internal.hpp>
#include <tenon/support/result.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// The type that it states; for files that state none (IR version 1), the one whose field is filled.
format::AttributeProto::AttributeType type_of(const format::AttributeProto& proto);
bool holds_graphs(const format::AttributeProto& proto);

// Reads tensors with `tensor`, so that the caller may keep those that it meets again.
struct TensorSource {
  std::function<Result<Tensor>(const format::TensorProto&)> tensor;
  std::function<Result<Tensor>(const format::SparseTensorProto&)> sparse;
};
Result<Attribute> read_attribute(const format::AttributeProto& proto, const TensorSource& source);

}  // namespace tenon::onnx
