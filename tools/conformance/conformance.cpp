#include "conformance.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::conformance {
namespace {

namespace fs = std::filesystem;

// ---- index.csv ----

struct IndexRow {
  std::string primary_op;
  bool random = false;
  Tolerance tolerance;
};
using Index = std::map<std::pair<std::string, std::string>, IndexRow>;  // by suite and name

double number_or(const std::string& text, double fallback) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? fallback : value;
}

Index read_index(const fs::path& path) {
  Index index;
  std::ifstream file(path);
  std::string line;
  std::map<std::string, size_t, std::less<>> columns;
  while (std::getline(file, line)) {
    const auto cells = split(line, ',');
    if (columns.empty()) {
      for (size_t i = 0; i < cells.size(); ++i) columns.emplace(cells[i], i);
      continue;
    }
    const auto cell = [&](std::string_view name) {
      const auto found = columns.find(name);
      return std::string(found != columns.end() && found->second < cells.size() ? cells[found->second]
                                                                                : std::string_view());
    };
    IndexRow row{cell("primary_op"), cell("random") == "yes", {}};
    row.tolerance.rtol = number_or(cell("rtol"), row.tolerance.rtol);
    row.tolerance.atol = number_or(cell("atol"), row.tolerance.atol);
    index.emplace(std::pair(cell("suite"), cell("name")), std::move(row));
  }
  return index;
}

// The given folder may be inside the one that has the index.
Index find_index(fs::path folder) {
  for (int levels = 0; levels < 3; ++levels) {
    if (fs::exists(folder / "index.csv")) return read_index(folder / "index.csv");
    folder = folder.parent_path();
  }
  return {};
}

// ---- Cases ----

Result<void> read_data_json(const fs::path& path, Tolerance& tolerance) {
  std::ifstream file(path);
  if (!file) return {};
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return error(Code::parse, "'", path.string(), "' is no JSON object");
  const auto read = [&](const char* key, double& out) {
    if (json.contains(key) && json[key].is_number()) out = json[key].get<double>();
  };
  read("rtol", tolerance.rtol);
  read("atol", tolerance.atol);
  return {};
}

std::vector<std::string> data_sets_of(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string light_output_of(const fs::path& model) {
  fs::path expected = model;
  expected.replace_filename(model.stem().string() + "_output_0.pb");
  return fs::exists(expected) ? expected.string() : std::string();
}

// Debian's libonnx-testdata is from ONNX 1.12; these cases were corrected later.
constexpr std::string_view kDebianFolder = "/usr/share/libonnx-testdata/data";
struct Fault {
  std::string_view name;
  std::string_view reason;
};
constexpr Fault kDebianFaults[] = {
    {"test_adam_multiple", "the model lacks the epsilon of 0.01 that the expected outputs were made with"},
    {"test_cast_FLOAT_to_BFLOAT16", "ONNX 1.12 cut bf16 off instead of rounding"},
    {"test_castlike_BFLOAT16_to_FLOAT", "the stored 'like' has another shape than the model declares"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded", "the stored 'like' has another shape than the model declares"},
    {"test_castlike_FLOAT_to_BFLOAT16", "the stored 'like' has another shape than the model declares"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "the stored 'like' has another shape than the model declares"},
    {"test_dft_inverse", "recorded in double precision, with zeros that f32 misses by rounding; later data are in f32"},
    {"test_resize_downsample_scales_cubic_align_corners", "ONNX 1.12 took the scaled length unrounded"},
    {"test_resize_downsample_scales_linear_align_corners", "ONNX 1.12 took the scaled length unrounded"},
};

std::string fault_of(const Case& one) {
  if (!one.model.starts_with(kDebianFolder)) return "";
  for (const Fault& fault : kDebianFaults) {
    if (fault.name == one.name) return std::string(fault.reason);
  }
  return "";
}

Result<void> add_case(Case found, const fs::path& json, const Index& index, std::vector<Case>& out) {
  const auto row = index.find(std::pair(found.suite, found.name));
  if (row != index.end()) {
    found.primary_op = row->second.primary_op;
    found.random = row->second.random;
    found.tolerance = row->second.tolerance;
  }
  TENON_OK(read_data_json(json, found.tolerance));
  found.fault = fault_of(found);
  out.push_back(std::move(found));
  return {};
}

// ---- Running ----

Outcome stopped(const Error& error, std::string ran_on = "") {
  return {error.code() == Code::unsupported ? Status::unsupported : Status::failed, error.to_string(),
          std::move(ran_on)};
}

Result<Datum> ramp(const Type& type) {
  const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
  if (!dims || type.element() != kF32)
    return error(Code::invalid_argument, "the input of a light model is ", type, ", not a static f32 tensor");
  TENON_TRY(tensor, Tensor::allocate(kF32, *dims));
  auto out = tensor.mutable_as<float>();
  for (size_t k = 0; k < out.size(); ++k)
    out[k] = static_cast<float>(static_cast<double>(k) / static_cast<double>(out.size()));
  return Datum(std::move(tensor));
}

Result<DataSet> light_data(const Graph& graph, const std::string& output) {
  const Region& body = graph.body();
  if (body.input_count() != 1 || body.output_count() != 1) {
    return error(Code::invalid_argument, "a light model has one input and one output, this one ", body.input_count(),
                 " and ", body.output_count());
  }
  DataSet set;
  TENON_TRY(input, ramp(body.input(0)->type()));
  TENON_TRY(expected, read_test_data(output, body.output(0)->type()));
  set.inputs.push_back(std::move(input));
  set.outputs.push_back(std::move(expected));
  return set;
}

bool has_random_op(const Graph& graph) {
  bool random = false;
  for_each_op(graph.body(), [&](const Op& op) { random = random || (op.def() && op.def()->has(Trait::random)); });
  return random;
}

// Before ONNX's test data could represent bf16, its bits were stored as u16.
Result<Datum> as_declared(Datum datum, const Type& type) {
  const bool stand_in =
      datum.is_tensor() && datum.tensor().element() == kU16 && type.is_tensor() && type.element() == kBF16;
  if (!stand_in) return datum;
  Tensor bits = datum.tensor();
  TENON_TRY(tensor, Tensor::share(kBF16, bits.dims(), bits.owner(), bits.mutable_data(), bits.bytes()));
  return Datum(std::move(tensor));
}

Result<std::vector<Datum>> read_values(const std::string& prefix, size_t count,
                                       const std::function<const Type&(size_t)>& type) {
  std::vector<Datum> out;
  for (size_t i = 0; i < count; ++i) {
    TENON_TRY(stored, read_test_data(str(prefix, i, ".pb"), type(i)));
    TENON_TRY(value, as_declared(std::move(stored), type(i)));
    out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

std::string_view status_name(Status status) {
  constexpr std::string_view kNames[] = {"passed", "failed", "unsupported"};
  return kNames[static_cast<size_t>(status)];
}

Result<std::string> default_folder(const std::string& beside) {
  std::vector<fs::path> places;
  if (const char* shared = std::getenv("TENON_SHARED")) places.push_back(fs::path(shared) / "onnx-backend-tests");
  places.push_back(fs::path(beside) / "onnx-backend-tests");
  places.emplace_back(kDebianFolder);
  std::string looked;
  for (const fs::path& place : places) {
    if (fs::is_directory(place)) return place.string();
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  return error(Code::not_found, "no ONNX backend cases in ", looked, "; set TENON_SHARED or install libonnx-testdata");
}

Result<std::vector<Case>> find_cases(const std::string& folder) {
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed);
  if (failed || !fs::is_directory(root)) return error(Code::not_found, "no folder '", folder, "'");
  const Index index = find_index(root);
  std::vector<Case> out;
  for (fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, failed), end; at != end;
       at.increment(failed)) {
    if (failed) return error(Code::io, "reading '", folder, "': ", failed.message());
    const fs::path path = at->path();
    if (path.extension() != ".onnx") continue;
    Case found;
    found.model = path.string();
    if (path.filename() == "model.onnx") {
      found.name = path.parent_path().filename().string();
      found.suite = path.parent_path().parent_path().filename().string();
      found.data_sets = data_sets_of(path.parent_path());
    } else {
      found.name = path.stem().string();
      found.suite = path.parent_path().filename().string();
      found.light_output = light_output_of(path);
    }
    if (found.data_sets.empty() && found.light_output.empty()) continue;
    TENON_OK(add_case(std::move(found), path.parent_path() / "data.json", index, out));
  }
  if (out.empty()) return error(Code::not_found, "no ONNX backend case under '", folder, "'");
  std::sort(out.begin(), out.end(),
            [](const Case& a, const Case& b) { return std::tie(a.suite, a.name) < std::tie(b.suite, b.name); });
  return out;
}

Result<DataSet> read_data_set(const Graph& graph, const std::string& folder) {
  const Region& body = graph.body();
  TENON_TRY(inputs, read_values(folder + "/input_", body.input_count(),
                                [&](size_t i) -> const Type& { return body.input(i)->type(); }));
  TENON_TRY(outputs, read_values(folder + "/output_", body.output_count(),
                                 [&](size_t i) -> const Type& { return body.output(i)->type(); }));
  return DataSet{std::move(inputs), std::move(outputs)};
}

std::string compare_outputs(std::span<const Datum> got, std::span<const Datum> expected, const Tolerance& tolerance,
                            bool random) {
  if (got.size() != expected.size()) return str(got.size(), " outputs, ", expected.size(), " expected");
  for (size_t i = 0; i < got.size(); ++i) {
    if (random) {
      if (!(got[i].type() == expected[i].type()))
        return str("output ", i, " is ", got[i].type(), ", ", expected[i].type(), " expected");
      continue;
    }
    const Comparison comparison = compare(got[i], expected[i], tolerance);
    if (!comparison.equal) return str("output ", i, ": ", comparison.difference);
  }
  return "";
}

Prepare interpreter() {
  return [](std::unique_ptr<Graph> graph) -> Result<Prepared> {
    TENON_TRY(made, Interpreter::prepare(*graph));
    std::shared_ptr<Graph> kept = std::move(graph);
    std::shared_ptr<Interpreter> runs = std::move(made);
    return Prepared{[kept, runs](std::span<const Datum> inputs) { return runs->run(inputs); }, "reference"};
  };
}

Outcome run_case(const Case& one, const Prepare& prepare) {
  if (!one.fault.empty()) return {Status::unsupported, one.fault, ""};
  auto graph = import_model(one.model);
  if (!graph.ok()) return stopped(graph.error());
  const bool random = one.random || has_random_op(**graph);
  // The data sets are read first, because preparation takes over the graph, which has their types.
  std::vector<DataSet> sets;
  const auto add_set = [&](Result<DataSet> set) {
    if (set.ok()) sets.push_back(*std::move(set));
    return set.ok() ? Result<void>() : Result<void>(std::move(set).error());
  };
  Result<void> read;
  if (!one.light_output.empty()) read = add_set(light_data(**graph, one.light_output));
  for (const std::string& folder : one.data_sets) {
    if (read.ok()) read = add_set(read_data_set(**graph, folder));
  }
  if (!read.ok()) return stopped(read.error());
  auto prepared = prepare(*std::move(graph));
  if (!prepared.ok()) return stopped(prepared.error());
  for (const DataSet& set : sets) {
    auto outputs = prepared->run(set.inputs);
    if (!outputs.ok()) return stopped(outputs.error(), prepared->ran_on);
    const std::string difference = compare_outputs(*outputs, set.outputs, one.tolerance, random);
    if (!difference.empty()) return {Status::failed, difference, prepared->ran_on};
  }
  return {Status::passed, "", prepared->ran_on};
}

}  // namespace tenon::conformance
