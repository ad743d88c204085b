#include <tenon/ops/ml.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon::ml {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(MlRule, LabelEncoder) {
  const auto encoded = [](std::string_view type, std::string_view attributes) {
    return inferred(str("(%x: ", type, ") -> %y { %y = ai.onnx.ml.LabelEncoder %x {", attributes, "} }"));
  };
  EXPECT_EQ(encoded("str[N]", "keys_strings = [\"a\", \"b\"], values_int64s = [1, 2]"), "i64[N]");
  EXPECT_EQ(encoded("i64[N]", "keys_tensor = dense<i64[1]: 1>, values_tensor = dense<f64[1]: 2.0>"), "f64[N]");
  EXPECT_THAT(encoded("i64[N]", "keys_strings = [\"a\"], values_int64s = [1]"),
              HasSubstr("the keys of ai.onnx.ml.LabelEncoder"));
  EXPECT_THAT(encoded("str[N]", "keys_strings = [\"a\"], values_int64s = [1, 2]"), HasSubstr("1 keys and 2 values"));
  EXPECT_THAT(encoded("str[N]", "keys_strings = [\"a\"]"), HasSubstr("needs keys and values"));
}

TEST(MlRule, Features) {
  EXPECT_EQ(inferred("(%x: f32[N,5], %i: i64[3]) -> %y { %y = ai.onnx.ml.ArrayFeatureExtractor %x, %i }"), "f32[N,3]");
  EXPECT_EQ(inferred("(%x: str[5], %i: i64[1,2]) -> %y { %y = ai.onnx.ml.ArrayFeatureExtractor %x, %i }"), "str[1,2]");
  EXPECT_EQ(inferred("(%x: f32[N,5]) -> %y { %y = ai.onnx.ml.Binarizer %x }"), "f32[N,5]");
}

std::string trees(std::string_view yes, std::string_view targets, std::string_view roots) {
  return inferred(str(
      "(%x: f32[N,3]) -> %y { %y = ai.onnx.ml.TreeEnsemble %x {n_targets = 2, nodes_featureids = [0], nodes_modes = "
      "dense<u8[1]: 0>, nodes_splits = dense<f32[1]: 0.5>, nodes_truenodeids = ",
      yes, ", nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = ", targets,
      ", leaf_weights = dense<f32[2]: 1.0, 2.0>, tree_roots = ", roots, "} }"));
}

TEST(MlRule, TreesThatLeadNowhereAreRefused) {
  EXPECT_EQ(trees("[0]", "[0, 1]", "[0]"), "f32[N,2]");
  EXPECT_THAT(trees("[2]", "[0, 1]", "[0]"), HasSubstr("'nodes_truenodeids'"));
  EXPECT_THAT(trees("[0, 0]", "[0, 1]", "[0]"), HasSubstr("has 2 elements, nodes_featureids 1"));
  EXPECT_THAT(trees("[0]", "[0, 2]", "[0]"), HasSubstr("leaf target 2"));
  EXPECT_THAT(trees("[0]", "[0]", "[0]"), HasSubstr("1 leaf_targetids and 2 leaf_weights"));
  EXPECT_THAT(trees("[0]", "[0, 1]", "[1]"), HasSubstr("tree root 1"));
}

}  // namespace
}  // namespace tenon::ml
