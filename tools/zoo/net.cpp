#include "net.hpp"

#include <cmath>

#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>

#include "random.hpp"

namespace tenon::zoo {
namespace {

constexpr float kEpsilon = 1e-5f;
// Running statistics of a normalisation are near mean 0 and variance 1, which He's scaling gives.
constexpr double kMeanDeviation = 0.1, kVarianceDeviation = 0.15, kScaleDeviation = 0.1, kShiftDeviation = 0.2;

Attribute::Integers both(int64_t value) { return {value, value}; }
Attribute::Integers all_sides(int64_t value) { return {value, value, value, value}; }

// Subtracts its mean from each row. After a rectifier, all inputs are positive; filters that sum to zero respond to
// their differences, so that the output of a deep random network still depends on the input.
void centre_rows(std::span<float> values, size_t row_length) {
  for (size_t begin = 0; begin < values.size(); begin += row_length) {
    const auto row = values.subspan(begin, row_length);
    double sum = 0;
    for (const float v : row) sum += v;
    const double mean = sum / static_cast<double>(row_length);
    for (float& v : row) v = static_cast<float>(v - mean);
  }
}

}  // namespace

Net::Net(std::string name, uint64_t seed, Options options)
    : graph_(std::make_unique<Graph>(std::move(name))), seed_(seed), options_(options) {}

Net::Scope::Scope(Net& net, std::string_view part) : net_(net), length_(net.path_.size()) {
  net.path_ += part;
  net.path_ += '.';
}

std::string Net::path(std::string_view name) const { return path_ + std::string(name); }

int64_t Net::dim(const Value* x, int64_t axis) const {
  if (failed() || !x) return 1;
  const Shape& shape = x->type().shape();
  const auto at = static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis);
  TENON_CHECK(shape.ranked() && at < shape.dims().size() && shape[at].is_static(), "zoo: dim ", axis, " of '",
              x->name(), "' of type ", x->type());
  return shape[at].value();
}

// ---- Inputs, outputs, operators ----

Value* Net::input(std::string name, Dims dims) {
  return graph_->body().add_input(std::move(name), Type(kF32, Shape(dims)));
}

Value* Net::index_input(std::string name, Dims dims, int64_t limit) {
  graph_->properties()["metadata.limit." + name] = str(limit);
  return graph_->body().add_input(std::move(name), Type(kI64, Shape(dims)));
}

void Net::output(Value* value, std::string name) {
  if (failed()) return;
  value->set_name(name);  // an output with another name would be exported after an Identity
  graph_->body().add_output(value, std::move(name));
}

Result<std::unique_ptr<Graph>> Net::finish() {
  if (failed()) return *std::move(error_);
  put_constants_first(graph_->body());
  graph_->properties()["producer_name"] = "tenon-zoo";
  TENON_OK(verify(*graph_), "building '", graph_->name(), "'");
  return std::move(graph_);
}

std::vector<Value*> Net::ops(std::string_view kind, std::string_view name, std::vector<Value*> operands, size_t results,
                             Attributes attributes) {
  if (failed()) return std::vector<Value*>(results);
  Builder builder(graph_->body());
  builder.set_name_prefix(path(name));  // becomes the operator's label
  auto made = builder.ops(kind, operands, results, std::move(attributes));
  if (!made.ok()) {
    error_ = std::move(made).error().with_frame(str("building '", path(name), "' of '", graph_->name(), "'"));
    return std::vector<Value*>(results);
  }
  for (size_t i = 0; i < results; ++i) (*made)[i]->set_name(i == 0 ? path(name) : str(path(name), ".", i));
  return *std::move(made);
}

Value* Net::op(std::string_view kind, std::string_view name, std::vector<Value*> operands, Attributes attributes) {
  return ops(kind, name, std::move(operands), 1, std::move(attributes))[0];
}

// ---- Weights ----

Tensor Net::uniform(std::string_view name, Dims dims, double deviation, double mean) {
  auto made = Tensor::allocate(kF32, std::move(dims));
  TENON_CHECK(made.ok(), made.error().to_string());
  const Random random(seed_, path(name));
  const double reach = deviation / kUniformDeviation;
  uint64_t i = 0;
  for (float& v : made->mutable_as<float>()) v = static_cast<float>(mean + reach * random.uniform(i++));
  return *std::move(made);
}

Value* Net::constant(std::string_view name, Tensor value) {
  if (failed()) return nullptr;
  return Builder(graph_->body()).constant(std::move(value), path(name));
}
Value* Net::weight(std::string_view name, Dims dims, double deviation, double mean) {
  return constant(name, uniform(name, std::move(dims), deviation, mean));
}
Value* Net::scalar(std::string_view name, float value) { return constant(name, Tensor::scalar<float>(value)); }
Value* Net::ints(std::string_view name, std::vector<int64_t> values) {
  return constant(name, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

// ---- Convolutional layers ----

// A rectifier passes half of the energy, so the variance of the weights is 2 / fan-in. Filters over many channels are
// centred; small ones (depthwise) would lose their function.
Tensor Net::filters(std::string_view name, int64_t channels, int64_t inputs, ConvShape shape) {
  const int64_t fan_in = inputs / shape.groups * shape.kernel * shape.kernel;
  Tensor out = uniform(name, {channels, inputs / shape.groups, shape.kernel, shape.kernel},
                       std::sqrt(2.0 / static_cast<double>(fan_in)), 0);
  if (fan_in >= 64) centre_rows(out.mutable_as<float>(), static_cast<size_t>(fan_in));
  return out;
}

Value* Net::conv_with(std::string_view name, Value* x, Tensor filters, std::optional<Tensor> bias, ConvShape shape) {
  std::vector<Value*> operands{x, constant(str(name, ".weight"), std::move(filters))};
  if (bias) operands.push_back(constant(str(name, ".bias"), *std::move(bias)));
  return op("Conv", name, std::move(operands),
            {{"group", shape.groups},
             {"kernel_shape", both(shape.kernel)},
             {"pads", all_sides(shape.pad.value_or(shape.kernel / 2))},
             {"strides", both(shape.stride)}});
}

Value* Net::conv(std::string_view name, Value* x, int64_t channels, ConvShape shape, Activation then) {
  std::optional<Tensor> bias;
  if (shape.bias) bias = uniform(str(name, ".bias"), {channels}, kMeanDeviation, 0);
  Value* y = conv_with(name, x, filters(str(name, ".weight"), channels, dim(x, 1), shape), std::move(bias), shape);
  return activation(str(name, ".activation"), y, then);
}

Value* Net::batch_norm(std::string_view name, Value* x, double gain) {
  const Dims channels{dim(x, 1)};
  return op("BatchNormalization", name,
            {x, weight(str(name, ".scale"), channels, gain * kScaleDeviation, gain),
             weight(str(name, ".shift"), channels, gain * kShiftDeviation),
             weight(str(name, ".mean"), channels, kMeanDeviation),
             weight(str(name, ".variance"), channels, kVarianceDeviation, 1)},
            {{"epsilon", kEpsilon}});
}

Value* Net::conv_norm(std::string_view name, Value* x, int64_t channels, ConvShape shape, Activation then,
                      double gain) {
  Tensor weights = filters(str(name, ".weight"), channels, dim(x, 1), shape);
  const std::string norm = str(name, ".norm");
  Value* y = nullptr;
  if (options_.fold_batch_norm) {
    // scale * (conv(x) - mean) / sqrt(variance + epsilon) + shift, with the factor in the filters.
    const Tensor scale = uniform(str(norm, ".scale"), {channels}, gain * kScaleDeviation, gain);
    const Tensor mean = uniform(str(norm, ".mean"), {channels}, kMeanDeviation, 0);
    const Tensor variance = uniform(str(norm, ".variance"), {channels}, kVarianceDeviation, 1);
    Tensor bias = uniform(str(norm, ".shift"), {channels}, gain * kShiftDeviation, 0);
    const auto values = weights.mutable_as<float>();
    const size_t row = values.size() / static_cast<size_t>(channels);
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const double factor = scale.as<float>()[c] / std::sqrt(static_cast<double>(variance.as<float>()[c]) + kEpsilon);
      for (float& v : values.subspan(c * row, row)) v = static_cast<float>(v * factor);
      float& b = bias.mutable_as<float>()[c];
      b = static_cast<float>(b - mean.as<float>()[c] * factor);
    }
    y = conv_with(name, x, std::move(weights), std::move(bias), shape);
  } else {
    y = batch_norm(norm, conv_with(name, x, std::move(weights), std::nullopt, shape), gain);
  }
  return activation(str(name, ".activation"), y, then);
}

Value* Net::activation(std::string_view name, Value* x, Activation kind) {
  switch (kind) {
    case Activation::none: return x;
    case Activation::relu: return op("Relu", name, {x});
    case Activation::relu6: return op("Clip", name, {x, scalar(str(name, ".min"), 0), scalar(str(name, ".max"), 6)});
    case Activation::swish: return mul(name, x, op("Sigmoid", str(name, ".sigmoid"), {x}));
  }
  return nullptr;
}

Value* Net::max_pool(std::string_view name, Value* x, PoolShape shape) {
  return op("MaxPool", name, {x},
            {{"ceil_mode", int64_t{shape.ceil}},
             {"kernel_shape", both(shape.kernel)},
             {"pads", all_sides(shape.pad)},
             {"strides", both(shape.stride)}});
}

Value* Net::average_pool(std::string_view name, Value* x, PoolShape shape) {
  return op("AveragePool", name, {x},
            {{"ceil_mode", int64_t{shape.ceil}},
             {"kernel_shape", both(shape.kernel)},
             {"pads", all_sides(shape.pad)},
             {"strides", both(shape.stride)}});
}

Value* Net::global_pool(std::string_view name, Value* x) {
  return op("Flatten", str(name, ".flat"), {op("GlobalAveragePool", name, {x})}, {{"axis", 1}});
}

// ---- Dense layers ----

Value* Net::classifier(std::string_view name, Value* x, int64_t classes) {
  const int64_t features = dim(x, 1);
  // Averages over an image vary little: centred rows and a larger gain spread the scores.
  Tensor rows = uniform(str(name, ".weight"), {classes, features}, 4 / std::sqrt(static_cast<double>(features)), 0);
  centre_rows(rows.mutable_as<float>(), static_cast<size_t>(features));
  return op("Gemm", name,
            {x, constant(str(name, ".weight"), std::move(rows)), weight(str(name, ".bias"), {classes}, kMeanDeviation)},
            {{"transB", 1}});
}

Value* Net::linear(std::string_view name, Value* x, int64_t features, double gain) {
  const int64_t inputs = dim(x, -1);
  Value* y = op("MatMul", str(name, ".product"),
                {x, weight(str(name, ".weight"), {inputs, features}, gain / std::sqrt(static_cast<double>(inputs)))});
  return add(name, y, weight(str(name, ".bias"), {features}, gain * kMeanDeviation));
}

Value* Net::layer_norm(std::string_view name, Value* x) {
  const Dims features{dim(x, -1)};
  return op("LayerNormalization", name,
            {x, weight(str(name, ".scale"), features, kScaleDeviation, 1),
             weight(str(name, ".shift"), features, kMeanDeviation)},
            {{"axis", -1}, {"epsilon", kEpsilon}});
}

Value* Net::embedding(std::string_view name, Value* indices, int64_t rows, int64_t features) {
  return op("Gather", name, {weight(str(name, ".table"), {rows, features}, 0.5), indices}, {{"axis", 0}});
}

// ---- Movement ----

Value* Net::concat(std::string_view name, std::vector<Value*> parts, int64_t axis) {
  return op("Concat", name, std::move(parts), {{"axis", axis}});
}
Value* Net::reshape(std::string_view name, Value* x, std::vector<int64_t> dims) {
  return op("Reshape", name, {x, ints(str(name, ".shape"), std::move(dims))});
}
Value* Net::transpose(std::string_view name, Value* x, std::vector<int64_t> order) {
  return op("Transpose", name, {x}, {{"perm", std::move(order)}});
}
Value* Net::slice(std::string_view name, Value* x, int64_t axis, int64_t begin, int64_t end) {
  return op("Slice", name,
            {x, ints(str(name, ".begin"), {begin}), ints(str(name, ".end"), {end}), ints(str(name, ".axis"), {axis})});
}

void put_constants_first(Region& region) {
  Op* first = nullptr;
  for (Op* op : region.ops()) {
    if (!isa<Constant>(op)) {
      if (!first) first = op;
    } else if (first) {
      op->move_before(*first);
    }
  }
}

}  // namespace tenon::zoo
