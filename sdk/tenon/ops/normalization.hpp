// Normalisations: elements minus their mean, divided by their standard deviation, over groups of elements. Variances
// are of the population (divided by the count); `epsilon` is added before the root unless stated otherwise.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// Y = (X - mean) / sqrt(var + epsilon) * scale + B, with one of each per channel (axis 1). With training_mode the mean
// and variance are X's own, and running_mean = momentum * input_mean + (1 - momentum) * mean, running_var likewise.
struct BatchNormalization : OpView<BatchNormalization> {
  static constexpr std::string_view kName = "BatchNormalization";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* scale() const { return operand(1); }
  Value* b() const { return operand(2); }
  Value* input_mean() const { return operand(3); }
  Value* input_var() const { return operand(4); }
  float epsilon() const { return attr<float>("epsilon", 1e-5f); }
  bool training_mode() const { return attr<int64_t>("training_mode", 0) != 0; }
};

// The same with the mean and variance of each channel of each image; scale, B: [C].
struct InstanceNormalization : OpView<InstanceNormalization> {
  static constexpr std::string_view kName = "InstanceNormalization";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* scale() const { return operand(1); }
  Value* b() const { return operand(2); }
  float epsilon() const { return attr<float>("epsilon", 1e-5f); }
};

// The same with the mean and variance of each of num_groups equal ranges of channels of each image; scale, bias: [C].
struct GroupNormalization : OpView<GroupNormalization> {
  static constexpr std::string_view kName = "GroupNormalization";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* scale() const { return operand(1); }
  Value* bias() const { return operand(2); }
  int64_t num_groups() const { return attr<int64_t>("num_groups"); }
  float epsilon() const { return attr<float>("epsilon", 1e-5f); }
};

// Y = (X - Mean) * InvStdDev * Scale + B over all axes from `axis` on; Scale and B broadcast to X. Mean and InvStdDev =
// 1 / sqrt(var + epsilon) have extent 1 on those axes and the float type that stash_type names (1: f32, as in ONNX's
// data types).
struct LayerNormalization : OpView<LayerNormalization> {
  static constexpr std::string_view kName = "LayerNormalization";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* scale() const { return operand(1); }
  Value* b() const { return operand(2); }  // may be null
  int64_t axis() const { return attr<int64_t>("axis", -1); }
  float epsilon() const { return attr<float>("epsilon", 1e-5f); }
};

// Y = X / sqrt(mean(X^2) + epsilon) * scale over all axes from `axis` on.
struct RMSNormalization : OpView<RMSNormalization> {
  static constexpr std::string_view kName = "RMSNormalization";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* scale() const { return operand(1); }
  int64_t axis() const { return attr<int64_t>("axis", -1); }
  float epsilon() const { return attr<float>("epsilon", 1e-5f); }
};

// output = input / (sum of |input|^p along axis)^(1/p), p 1 or 2; 0 where the norm is 0.
struct LpNormalization : OpView<LpNormalization> {
  static constexpr std::string_view kName = "LpNormalization";
  using OpView::OpView;
  int64_t axis() const { return attr<int64_t>("axis", -1); }
  int64_t p() const { return attr<int64_t>("p", 2); }
};

// Y = (X - mean) / (sqrt(var) + 1e-9) over `axes`.
struct MeanVarianceNormalization : OpView<MeanVarianceNormalization> {
  static constexpr std::string_view kName = "MeanVarianceNormalization";
  using OpView::OpView;
};

// Y = X / (bias + alpha / size * sum of X^2 over the `size` nearest channels)^beta; an even size has one more above.
struct LRN : OpView<LRN> {
  static constexpr std::string_view kName = "LRN";
  using OpView::OpView;
  int64_t size() const { return attr<int64_t>("size"); }
};

// output = data, mask = true. With training_mode each element becomes 0 with probability `ratio` (default 0.5), else
// data / (1 - ratio), and mask states which; with `seed`, runs are reproducible.
struct Dropout : OpView<Dropout> {
  static constexpr std::string_view kName = "Dropout";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* ratio() const { return operand(1); }          // may be null
  Value* training_mode() const { return operand(2); }  // may be null
};

}  // namespace tenon
