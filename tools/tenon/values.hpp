// Inputs and expected outputs of a model, from files.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <tenon/model/compiled_model.hpp>
#include <tenon/support/result.hpp>

namespace tenon::cli {

// .npy, or a protobuf file read as `type` says (.pb).
Result<Datum> read_value(const std::string& path, const Type& type);

// DIR is an ONNX test-data folder: input_0.pb ... in the order of the model's inputs, output_0.pb ... likewise.
struct TestData {
  std::map<size_t, Datum> inputs, outputs;
};
Result<TestData> read_test_folder(const std::string& folder, const CompiledModel& model);

}  // namespace tenon::cli
