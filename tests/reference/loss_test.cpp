#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// Two places of three classes.
const Tensor& logs() {
  static const Tensor tensor = Tensor::of<float>({2, 3}, {-1, -2, -3, -4, -5, -6});
  return tensor;
}
Tensor loss(std::vector<int64_t> classes, const char* reduction, Attributes attributes = {}, Datum weights = {}) {
  attributes.set("reduction", reduction);
  return evaluated("NegativeLogLikelihoodLoss", {logs(), ints(classes), std::move(weights)}, attributes);
}

TEST(Loss, Reductions) {
  EXPECT_TRUE(loss({1, 0}, "none").identical(Tensor::of<float>({2}, {2, 4})));
  EXPECT_TRUE(loss({1, 0}, "sum").identical(Tensor::scalar(6.f)));
  EXPECT_TRUE(loss({1, 0}, "mean").identical(Tensor::scalar(3.f)));
}

TEST(Loss, Weights) {
  const Tensor weights = Tensor::of<float>({3}, {1, 3, 100});
  EXPECT_TRUE(loss({1, 0}, "none", {}, weights).identical(Tensor::of<float>({2}, {6, 4})));
  EXPECT_TRUE(loss({1, 0}, "mean", {}, weights).identical(Tensor::scalar(2.5f)));
}

TEST(Loss, IgnoredPlaces) {
  EXPECT_TRUE(loss({1, -7}, "none", {{"ignore_index", -7}}).identical(Tensor::of<float>({2}, {2, 0})));
  EXPECT_TRUE(loss({1, 0}, "mean", {{"ignore_index", 0}}).identical(Tensor::scalar(2.f)));
  EXPECT_TRUE(std::isnan(loss({0, 0}, "mean", {{"ignore_index", 0}}).as<float>()[0]));
  EXPECT_THAT(error_of("NegativeLogLikelihoodLoss", {logs(), ints({1, 3})}),
              HasSubstr("class 3 at place 1 is outside [0, 3)"));
  EXPECT_THAT(error_of("NegativeLogLikelihoodLoss", {logs(), ints({-1, 2})}), HasSubstr("class -1"));
}

TEST(Loss, CrossEntropyIsLogSoftmaxThenLikelihood) {
  const Tensor scores = Tensor::of<float>({1, 2, 2}, {0, 1, 2, 1});
  const Tensor classes = Tensor::of<int64_t>({1, 2}, {0, 1});
  const auto both = evaluated_all("SoftmaxCrossEntropyLoss", {scores, classes}, {{"reduction", "none"}}, 2);
  EXPECT_TRUE(both[1].tensor().identical(evaluated("LogSoftmax", {scores}, {{"axis", 1}})));
  EXPECT_FLOAT_EQ(both[0].tensor().as<float>()[0], static_cast<float>(std::log1p(std::exp(2.0))));
  EXPECT_FLOAT_EQ(both[0].tensor().as<float>()[1], static_cast<float>(std::log(2.0)));
}

}  // namespace
}  // namespace tenon
