// The model zoo: real architectures built with Tenon's own builder, with seeded, well-scaled weights. Nothing is
// downloaded, and the same name, options and seed give the same model bit for bit.
//
//   TENON_TRY(graph, zoo::build("resnet50"));
//   std::vector<Datum> inputs = zoo::inputs(*graph, 1);
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::zoo {

// `tiny` has the structure of `full` with fewer channels, layers and pixels: for tests.
enum class Size : uint8_t { full, tiny };

struct Options {
  Size size = Size::full;
  int64_t batch = 1;  // 1 to 65536
  uint64_t seed = 1;
};

struct ModelInfo {
  std::string name, summary;
};
// In the order of the documentation.
std::vector<ModelInfo> models();

// Code::not_found, with a hint, for an unknown name.
Result<std::unique_ptr<Graph>> build(std::string_view name, const Options& options = {});

// One value per input: images (f32 of rank 4) are smooth shapes with noise and a deviation of about 1; other floats are
// uniform with deviation 1; indices are uniform below their limit. Every input must have a static shape.
Result<std::vector<Datum>> inputs(const Graph& graph, uint64_t seed);

// Writes FOLDER/model.onnx (large weights next to it as external data) and FOLDER/test_data_set_0/ with `inputs` and
// the reference's results for them. `progress` is called with a sentence per step.
using Progress = std::function<void(const std::string&)>;
Result<void> write(const Graph& graph, const std::vector<Datum>& inputs, const std::string& folder,
                   const Progress& progress = {});

}  // namespace tenon::zoo
