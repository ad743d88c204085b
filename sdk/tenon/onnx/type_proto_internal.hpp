// Conversion between TypeProto and Type.
#pragma once
#include <onnx.pb.h>

#include <tenon/support/result.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// An empty proto gives the unknown type. Maps, sparse tensors and opaque types are Code::unsupported.
Result<Type> read_type(const format::TypeProto& proto);
// Dims that are neither a number nor a plain symbol are left open, because ONNX cannot express them.
Result<void> write_type(const Type& type, format::TypeProto& out);

}  // namespace tenon::onnx
