// The test data of ONNX models: files with one value each, which do not state the kind of the value.
#pragma once
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

// Reads the file's value as `type` states: a tensor, a sequence, or an optional (absent when it is empty). For an
// unknown type, as a tensor. The element types of tensors are those of the file; the caller compares them.
TENON_API Result<Datum> read_test_data(const std::string& path, const Type& type);
// Writes the form that such files have: a tensor as a TensorProto with raw data, a sequence as a SequenceProto, and
// anything of optional `type` as an OptionalProto. read_test_data() with the same type gives it back.
TENON_API Result<void> write_test_data(const std::string& path, const Datum& value, const Type& type,
                                       const std::string& name = "");
TENON_API Result<void> write_test_data(const std::string& path, const Tensor& tensor, const std::string& name = "");

}  // namespace tenon
