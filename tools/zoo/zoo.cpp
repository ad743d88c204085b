#include "zoo.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include <tenon/onnx/export.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "architectures.hpp"
#include "quantize.hpp"
#include "random.hpp"

namespace tenon::zoo {
namespace {

struct Model {
  ModelInfo info;
  void (*describe)(Net&, const Options&);
  std::optional<Scheme> quantized = {};
};

const std::vector<Model>& table() {
  static const std::vector<Model> kModels = {
      {{"resnet18", "image classifier, residual blocks of 3x3 convolutions"}, resnet18},
      {{"resnet50", "image classifier, residual bottlenecks"}, resnet50},
      {{"mobilenet_v2", "image classifier, depthwise convolutions between linear bottlenecks"}, mobilenet_v2},
      {{"efficientnet_b0", "image classifier, depthwise convolutions, channel gates, swish"}, efficientnet_b0},
      {{"squeezenet", "image classifier, fire modules, no normalisation"}, squeezenet},
      {{"densenet121", "image classifier, each layer sees all before it"}, densenet121},
      {{"unet", "image segmentation, down and up again with skips"}, unet},
      {{"vit", "image classifier, a transformer over patches"}, vit},
      {{"bert", "text encoder, normalised after each sum"}, bert},
      {{"gpt", "text decoder, causal attention over a whole text"}, gpt},
      {{"gpt_decode", "text decoder, one more token with cached keys and values"}, gpt_decode},
      {{"lstm", "text classifier, bidirectional and forward LSTM"}, lstm},
      {{"resnet50_int8", "resnet50 in QDQ form, symmetric i8 activations"}, resnet50, Scheme::symmetric},
      {{"mobilenet_v2_int8", "mobilenet_v2 in QDQ form, asymmetric u8 activations"}, mobilenet_v2, Scheme::asymmetric},
  };
  return kModels;
}

constexpr int64_t kMaxBatch = 65536;
constexpr uint64_t kCalibrationSamples = 2;
// Smaller tensors are stored in the model's file.
constexpr size_t kExternalBytes = 1024;

Result<const Model*> find(std::string_view name) {
  std::vector<std::string> names;
  for (const Model& model : table()) {
    if (model.info.name == name) return &model;
    names.push_back(model.info.name);
  }
  const std::string near = nearest(name, names);
  return error(Code::not_found, "the zoo has no model '", name, "'",
               near.empty() ? "" : str("; did you mean '", near, "'?"), " It has ", names);
}

// ---- Inputs ----

// Smooth value noise: a coarse grid of random heights with linear interpolation.
double smooth(const Random& random, uint64_t stream, double y, double x) {
  const double fy = std::floor(y), fx = std::floor(x);
  const auto height = [&](double gy, double gx) {
    return random.uniform(stream << 32 | static_cast<uint64_t>(gy) << 16 | static_cast<uint64_t>(gx));
  };
  const double ty = y - fy, tx = x - fx;
  const double upper = height(fy, fx) * (1 - tx) + height(fy, fx + 1) * tx;
  const double lower = height(fy + 1, fx) * (1 - tx) + height(fy + 1, fx + 1) * tx;
  return upper * (1 - ty) + lower * ty;
}

// Shapes of a quarter and a sixteenth of the image's side, and fine noise.
void fill_image(Tensor& image, const Random& random) {
  const int64_t height = image.dim(2), width = image.dim(3), planes = image.dim(0) * image.dim(1);
  const auto pixels = image.mutable_as<float>();
  uint64_t at = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x, ++at) {
        const double v = static_cast<double>(y) / static_cast<double>(height);
        const double u = static_cast<double>(x) / static_cast<double>(width);
        const auto stream = static_cast<uint64_t>(plane) * 2 + 1;
        pixels[at] = static_cast<float>(2 * smooth(random, stream, 4 * v, 4 * u) +
                                        smooth(random, stream + 1, 16 * v, 16 * u) + 0.25 * random.uniform(at));
      }
    }
  }
}

int64_t limit_of(const Graph& graph, const std::string& input) {
  int64_t limit = 2;
  const auto found = graph.properties().find("metadata.limit." + input);
  if (found != graph.properties().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), limit);
  }
  return std::max<int64_t>(limit, 1);
}

Result<Tensor> input_tensor(const Graph& graph, const Value& input, uint64_t seed) {
  const auto dims = input.type().is_tensor() ? input.type().shape().static_dims() : std::nullopt;
  const ElementType element = input.type().is_tensor() ? input.type().element() : ElementType();
  if (!dims || (element != kF32 && element != kI64)) {
    return error(Code::unsupported, "no seeded value for an input of type ", input.type());
  }
  TENON_TRY(tensor, Tensor::allocate(element, *dims));
  const Random random(seed, input.name());
  uint64_t i = 0;
  if (element == kI64) {
    const int64_t limit = limit_of(graph, input.name());
    for (int64_t& v : tensor.mutable_as<int64_t>()) v = random.below(i++, limit);
  } else if (tensor.rank() == 4 && tensor.dim(1) <= 4) {
    fill_image(tensor, random);
  } else {
    for (float& v : tensor.mutable_as<float>()) v = static_cast<float>(random.uniform(i++) / kUniformDeviation);
  }
  return tensor;
}

}  // namespace

std::vector<ModelInfo> models() {
  std::vector<ModelInfo> out;
  for (const Model& model : table()) out.push_back(model.info);
  return out;
}

Result<std::vector<Datum>> inputs(const Graph& graph, uint64_t seed) {
  std::vector<Datum> out;
  for (size_t i = 0; i < graph.body().input_count(); ++i) {
    const Value& input = *graph.body().input(i);
    TENON_TRY(tensor, input_tensor(graph, input, seed), "input '", input.name(), "' of '", graph.name(), "'");
    out.emplace_back(std::move(tensor));
  }
  return out;
}

Result<std::unique_ptr<Graph>> build(std::string_view name, const Options& options) {
  TENON_TRY(model, find(name));
  if (options.batch < 1 || options.batch > kMaxBatch) {
    return error(Code::invalid_argument, "a batch of ", options.batch, " is outside 1 to ", kMaxBatch);
  }
  Net net(model->info.name, options.seed, {.fold_batch_norm = model->quantized.has_value()});
  model->describe(net, options);
  TENON_TRY(graph, net.finish());
  if (model->quantized) {
    std::vector<std::vector<Datum>> samples;
    for (uint64_t i = 1; i <= kCalibrationSamples; ++i) {
      TENON_TRY(sample, inputs(*graph, options.seed + i));
      samples.push_back(std::move(sample));
    }
    TENON_OK(quantize(*graph, samples, *model->quantized));
  }
  return graph;
}

namespace {

// Removes data of another model, which may have had more inputs or outputs than this one.
void remove_test_data(const std::string& folder) {
  std::error_code status;
  for (const std::string_view prefix : {"/input_", "/output_"}) {
    size_t i = 0;
    while (std::filesystem::remove(str(folder, prefix, i, ".pb"), status)) ++i;
  }
}

}  // namespace

Result<void> write(const Graph& graph, const std::vector<Datum>& inputs, const std::string& folder,
                   const Progress& progress) {
  const auto say = [&](const std::string& sentence) {
    if (progress) progress(sentence);
  };
  const std::string data = folder + "/test_data_set_0", model = folder + "/model.onnx";
  std::error_code status;
  std::filesystem::create_directories(data, status);
  if (status) return error(Code::io, "cannot make the folder '", data, "': ", status.message());
  remove_test_data(data);
  say(str("writing ", model));
  TENON_OK(export_model(graph, model, {.external_data_threshold = kExternalBytes}), "writing '", model, "'");
  say("running the reference for the expected outputs");
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  TENON_TRY(outputs, interpreter->run(inputs, default_pool()), "running '", graph.name(), "'");
  for (size_t i = 0; i < inputs.size(); ++i) {
    TENON_OK(write_test_data(str(data, "/input_", i, ".pb"), inputs[i].tensor(), graph.body().input(i)->name()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    TENON_OK(write_test_data(str(data, "/output_", i, ".pb"), outputs[i].tensor(), graph.body().output_name(i)));
  }
  return {};
}

}  // namespace tenon::zoo
