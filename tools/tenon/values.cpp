#include "values.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <tenon/onnx/test_data.hpp>
#include <tenon/tensor/npy.hpp>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kMostTolerance = 1e30;

// Reads .npy, or a protobuf file as `type` states (.pb).
Result<Datum> read_value(const std::string& path, const Type& type) {
  if (path.ends_with(".npy")) {
    TENON_TRY(tensor, read_npy(path));
    return Datum(std::move(tensor));
  }
  if (path.ends_with(".pb")) return read_test_data(path, type);
  return error(Code::invalid_argument, "'", path, "' is neither a .npy nor a .pb file");
}

}  // namespace

void InputOptions::add_to(CLI::App& command) {
  command.add_option("--data", data, "A folder with input_0.pb ... and output_0.pb ...")
      ->type_name("DIR")
      ->check(file_name());
  command.add_option("--input", files, "NAME=FILE: an input from a .pb or .npy file")->type_name("NAME=FILE");
  command.add_option("--seed", seed, "Seed of the inputs that are made when none are given")->check(cli::seed());
}

Result<TestData> InputOptions::read_data(const std::vector<ValueInfo>& inputs,
                                         const std::vector<ValueInfo>& outputs) const {
  TestData out;
  if (data.empty()) return out;
  std::error_code status;
  if (!fs::is_directory(data, status)) return error(Code::io, "'", data, "' is not a folder of test data");
  const auto read = [&](std::string_view prefix, const std::vector<ValueInfo>& values,
                        std::map<size_t, Datum>& into) -> Result<void> {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string path = str(data, "/", prefix, i, ".pb");
      if (!fs::exists(path, status)) continue;
      TENON_TRY(value, read_test_data(path, values[i].type), "reading ", path);
      into.emplace(i, std::move(value));
    }
    const std::string beyond = str(data, "/", prefix, values.size(), ".pb");
    if (fs::exists(beyond, status)) {
      return error(Code::invalid_argument, "'", beyond, "' is there, the model has ", values.size(), " such values");
    }
    return {};
  };
  TENON_OK(read("input_", inputs, out.inputs));
  TENON_OK(read("output_", outputs, out.outputs));
  return out;
}

namespace {

// The end of the name in "NAME=FILE". Names may contain '=', too: the longest matching name of an input is taken.
size_t name_end(const std::string& text, const std::vector<ValueInfo>& inputs) {
  std::optional<size_t> end;
  for (const ValueInfo& info : inputs)
    if (text.starts_with(info.name + "=")) end = std::max(end.value_or(0), info.name.size());
  return end.value_or(text.find('='));
}

}  // namespace

Result<std::vector<Datum>> InputOptions::gather(const ModelOptions& model, const std::vector<ValueInfo>& inputs,
                                                const TestData& given) const {
  std::map<std::string, std::string> named;
  for (const std::string& text : files) {
    const auto equals = name_end(text, inputs);
    if (equals == std::string::npos) return error(Code::invalid_argument, "--input '", text, "' should be NAME=FILE");
    if (!named.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      return error(Code::invalid_argument, "--input gives two files to '", text.substr(0, equals), "'");
  }
  std::vector<Datum> values;
  std::vector<size_t> missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& info = inputs[i];
    if (const auto file = named.find(info.name); file != named.end()) {
      TENON_TRY(value, read_value(file->second, info.type), "input '", info.name, "'");
      values.push_back(std::move(value));
      named.erase(file);
    } else if (const auto found = given.inputs.find(i); found != given.inputs.end()) {
      values.push_back(found->second);
    } else {
      values.emplace_back();
      if (!info.type.is_optional()) missing.push_back(i);
    }
  }
  if (!named.empty()) {
    std::vector<std::string> names;
    for (const ValueInfo& info : inputs) names.push_back(info.name);
    return error(Code::not_found, "--input names '", named.begin()->first, "'; the model's inputs are ", names);
  }
  if (!missing.empty() && data.empty() && files.empty()) return seeded_inputs(inputs, model, seed);
  if (!missing.empty()) {
    const std::string& name = inputs[missing[0]].name;
    return error(Code::not_found, "no value is given for input '", name, "': there is no --input ", name, "=FILE",
                 data.empty() ? "" : str(", and no ", data, "/input_", missing[0], ".pb"));
  }
  if (!model.dims.empty() && !inputs.empty())
    return error(Code::invalid_argument, "--dim '", model.dims[0],
                 "' is of seeded inputs, and all inputs are given: leave it out");
  return values;
}

void ToleranceOptions::add_to(CLI::App& command) {
  command.add_option("--rtol", rtol, "Relative tolerance of comparisons (default 1e-3)")
      ->check(number_in(0, kMostTolerance));
  command.add_option("--atol", atol, "Absolute tolerance of comparisons (default 1e-7)")
      ->check(number_in(0, kMostTolerance));
}

Tolerance ToleranceOptions::elements() const {
  Tolerance tolerance;
  if (rtol >= 0) tolerance.rtol = rtol;
  if (atol >= 0) tolerance.atol = atol;
  return tolerance;
}

}  // namespace tenon::cli
