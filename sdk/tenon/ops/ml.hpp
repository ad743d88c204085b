// Operators of ai.onnx.ml: tables and trees over features.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::ml {

// y = values_*[k] where x = keys_*[k], else default_*. Keys and values are strings, i64, f32 or tensors, depending on
// which attributes are given; a NaN key matches NaN. The first of equal keys is used.
struct LabelEncoder : OpView<LabelEncoder> {
  static constexpr std::string_view kName = "ai.onnx.ml.LabelEncoder";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// z[..., k] = x[..., y[k]]: features selected along the last axis; a vector x is treated as one row.
struct ArrayFeatureExtractor : OpView<ArrayFeatureExtractor> {
  static constexpr std::string_view kName = "ai.onnx.ml.ArrayFeatureExtractor";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* y() const { return operand(1); }
};

// y = 1 where x > threshold, else 0.
struct Binarizer : OpView<Binarizer> {
  static constexpr std::string_view kName = "ai.onnx.ml.Binarizer";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  float threshold() const { return attr<float>("threshold", 0.0f); }
};

// For each row of x [N, F] and each target, the sum (or average over the trees, min, max: aggregate_function 1, 0, 2,
// 3) of the weights of the leaves that the row reaches in the trees; then post_transform (0 none, 1 softmax, 2
// logistic, 3 softmax of the non-zero values). [N, n_targets].
//
// Inner node i compares feature nodes_featureids[i] with nodes_splits[i] by nodes_modes[i]: 0 <=, 1 <, 2 >=, 3 >, 4 ==,
// 5 !=, 6 is a member of the node's part of membership_values (parts end with NaN, in the order of such nodes). NaN
// takes the true branch where nodes_missing_value_tracks_true[i] is 1. nodes_trueleafs[i] states whether
// nodes_truenodeids[i] is a leaf.
struct TreeEnsemble : OpView<TreeEnsemble> {
  static constexpr std::string_view kName = "ai.onnx.ml.TreeEnsemble";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

}  // namespace tenon::ml
