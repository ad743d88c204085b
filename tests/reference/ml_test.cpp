#include <tenon/ops/ml.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/evaluated.hpp>

namespace tenon::ml {
namespace {

using testing::error_of;
using testing::evaluated;
using ::testing::HasSubstr;
using testing::ints;
using Texts = Attribute::Texts;
using Integers = Attribute::Integers;

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(MlEvaluator, LabelEncoder) {
  const Tensor x = Tensor::of<std::string>({3}, {"b", "?", "a"});
  EXPECT_TRUE(
      evaluated(LabelEncoder::kName, {x}, {{"keys_strings", Texts{"a", "b"}}, {"values_int64s", Integers{1, 2}}})
          .identical(ints({2, -1, 1})));
  EXPECT_TRUE(
      evaluated(LabelEncoder::kName, {x},
                {{"keys_strings", Texts{"a", "b"}}, {"values_strings", Texts{"A", "B"}}, {"default_string", "none"}})
          .identical(Tensor::of<std::string>({3}, {"B", "none", "A"})));
  const Attributes numbers{{"keys_floats", Attribute::Reals{NAN, 0, 1}},
                           {"values_tensor", Tensor::of<int16_t>({3}, {7, 8, 9})},
                           {"default_tensor", Tensor::of<int16_t>({1}, {-5})}};
  EXPECT_TRUE(evaluated(LabelEncoder::kName, {floats({-0.0f, std::nanf("1"), 2})}, numbers)
                  .identical(Tensor::of<int16_t>({3}, {8, 7, -5})));
}

TEST(MlEvaluator, Features) {
  const Tensor x = testing::iota(kString, {2, 3});
  EXPECT_TRUE(evaluated(ArrayFeatureExtractor::kName, {x, ints({2, 0})})
                  .identical(Tensor::of<std::string>({2, 2}, {"s2", "s0", "s5", "s3"})));
  EXPECT_THAT(error_of(ArrayFeatureExtractor::kName, {x, ints({3})}),
              HasSubstr("feature 3 (number 0) is outside [0, 2]"));
  EXPECT_TRUE(evaluated(Binarizer::kName, {floats({-1, 1, 1.5f})}, {{"threshold", 1.0f}}).identical(floats({0, 0, 1})));
}

// Two trees of one node each over one feature; the first tests mode(x, 1), the second x <= 2.
Attributes two_trees(uint8_t mode, int64_t aggregate, int64_t post) {
  return {{"n_targets", 2},
          {"aggregate_function", aggregate},
          {"post_transform", post},
          {"tree_roots", Integers{0, 1}},
          {"nodes_featureids", Integers{0, 0}},
          {"nodes_modes", Tensor::of<uint8_t>({2}, {mode, 0})},
          {"nodes_splits", floats({1, 2})},
          {"nodes_truenodeids", Integers{0, 2}},
          {"nodes_trueleafs", Integers{1, 1}},
          {"nodes_falsenodeids", Integers{1, 3}},
          {"nodes_falseleafs", Integers{1, 1}},
          {"membership_values", floats({3, 5, NAN})},
          {"nodes_missing_value_tracks_true", Integers{1, 0}},
          {"leaf_targetids", Integers{0, 1, 0, 0}},
          {"leaf_weights", floats({1, 2, 4, -8})}};
}

TEST(MlEvaluator, TreesCompareByMode) {
  const Tensor x = Tensor::of<float>({5, 1}, {0, 1, 2, 3, NAN});
  // By row: does the first tree go the true way?
  const std::vector<std::vector<bool>> ways{{1, 1, 0, 0, 1}, {1, 0, 0, 0, 1}, {0, 1, 1, 1, 1}, {0, 0, 1, 1, 1},
                                            {0, 1, 0, 0, 1}, {1, 0, 1, 1, 1}, {0, 0, 0, 1, 1}};
  for (uint8_t mode = 0; mode < 7; ++mode) {
    const Tensor y = evaluated(TreeEnsemble::kName, {x}, two_trees(mode, 1, 0));
    for (int64_t row = 0; row < 5; ++row) {
      const bool yes = ways[mode][row];
      EXPECT_EQ(y.double_at(2 * row), (yes ? 1 : 0) + (row < 3 ? 4 : -8)) << "mode " << int{mode} << " row " << row;
      EXPECT_EQ(y.double_at(2 * row + 1), yes ? 0 : 2) << "mode " << int{mode} << " row " << row;
    }
  }
}

TEST(MlEvaluator, TreesAggregateAndTransform) {
  const auto scores = [](int64_t aggregate, int64_t post) {
    return evaluated(TreeEnsemble::kName, {Tensor::of<double>({1, 1}, {0})}, two_trees(0, aggregate, post))
        .double_at(0);
  };
  EXPECT_EQ(scores(0, 0), 2.5);
  EXPECT_EQ(scores(1, 0), 5);
  EXPECT_EQ(scores(2, 0), 1);
  EXPECT_EQ(scores(3, 0), 4);
  EXPECT_NEAR(scores(1, 1), 1 / (1 + std::exp(-5.0)), 1e-15);
  EXPECT_NEAR(scores(1, 2), 1 / (1 + std::exp(-5.0)), 1e-15);
  EXPECT_EQ(scores(1, 3), 1);
  EXPECT_THAT(error_of(TreeEnsemble::kName, {Tensor::of<float>({1, 1}, {0})}, two_trees(0, 4, 0)),
              HasSubstr("aggregate_function 4"));
  EXPECT_THAT(error_of(TreeEnsemble::kName, {Tensor::of<float>({1, 1}, {0})}, two_trees(7, 1, 0)),
              HasSubstr("mode 7 of node 0"));
  EXPECT_THAT(error_of(TreeEnsemble::kName, {Tensor::of<float>({1, 0}, {})}, two_trees(0, 1, 0)),
              HasSubstr("feature 0, rows have 0"));
}

TEST(MlEvaluator, TreesInACircleEnd) {
  Attributes circle = two_trees(0, 1, 0);
  circle.set("nodes_truenodeids", Integers{0, 2});
  circle.set("nodes_trueleafs", Integers{0, 1});
  EXPECT_THAT(error_of(TreeEnsemble::kName, {Tensor::of<float>({1, 1}, {0})}, circle),
              HasSubstr("leads back into itself"));
}

}  // namespace
}  // namespace tenon::ml
