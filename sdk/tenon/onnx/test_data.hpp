// The test data of ONNX models: files that hold one value each, and do not tell of what kind.
#pragma once
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

// The file's value, read as `type` says: a tensor, a sequence, or an optional (absent when it holds nothing). An
// unknown type is read as a tensor. The element types of tensors are the file's; the caller compares.
TENON_API Result<Datum> read_test_data(const std::string& path, const Type& type);
// In the form that such files have: a tensor as a TensorProto with raw data, a sequence as a SequenceProto, and what
// `type` calls an optional as an OptionalProto, whatever it holds. read_test_data() of this type gives it back.
TENON_API Result<void> write_test_data(const std::string& path, const Datum& value, const Type& type,
                                       const std::string& name = "");
TENON_API Result<void> write_test_data(const std::string& path, const Tensor& tensor, const std::string& name = "");

}  // namespace tenon
