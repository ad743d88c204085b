#include "values.hpp"

#include <filesystem>

#include <tenon/onnx/test_data.hpp>
#include <tenon/tensor/npy.hpp>

namespace tenon::cli {
namespace fs = std::filesystem;

Result<Datum> read_value(const std::string& path, const Type& type) {
  if (path.ends_with(".npy")) {
    TENON_TRY(tensor, read_npy(path));
    return Datum(std::move(tensor));
  }
  if (path.ends_with(".pb")) return read_test_data(path, type);
  return error(Code::invalid_argument, "'", path, "' is neither a .npy nor a .pb file");
}

Result<TestData> read_test_folder(const std::string& folder, const CompiledModel& model) {
  std::error_code status;
  if (!fs::is_directory(folder, status)) return error(Code::io, "'", folder, "' is not a folder of test data");
  TestData data;
  const auto read = [&](std::string_view prefix, const std::vector<ValueInfo>& values,
                        std::map<size_t, Datum>& into) -> Result<void> {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string path = str(folder, "/", prefix, i, ".pb");
      if (!fs::exists(path, status)) continue;
      TENON_TRY(value, read_test_data(path, values[i].type), "reading ", path);
      into.emplace(i, std::move(value));
    }
    const std::string beyond = str(folder, "/", prefix, values.size(), ".pb");
    if (fs::exists(beyond, status)) {
      return error(Code::invalid_argument, "'", beyond, "' is there, the model has ", values.size(), " such values");
    }
    return {};
  };
  TENON_OK(read("input_", model.inputs(), data.inputs));
  TENON_OK(read("output_", model.outputs(), data.outputs));
  return data;
}

}  // namespace tenon::cli
