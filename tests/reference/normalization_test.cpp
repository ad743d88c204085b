#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

bool close(const Tensor& a, const Tensor& b) { return compare(a, b, {1e-5, 1e-6}).equal; }
Tensor row(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
// Mean 0 and variance 1 of two elements: -1 and 1.
const Attributes kExact{{"epsilon", 0.0f}};

TEST(Normalization, Batch) {
  const Tensor x = Tensor::of<float>({2, 2, 1}, {1, 10, 3, 30}), scale = row({1, 2}), b = row({0, 5}),
               mean = row({2, 20}), var = row({1, 100});
  EXPECT_TRUE(close(evaluated("BatchNormalization", {x, scale, b, mean, var}, kExact),
                    Tensor::of<float>({2, 2, 1}, {-1, 3, 1, 7})));
  Attributes training = kExact;
  training.set("training_mode", 1);
  training.set("momentum", 0.75f);
  const auto results = evaluated_all("BatchNormalization", {x, scale, b, row({6, 0}), row({5, 0})}, training, 3);
  EXPECT_TRUE(close(results[0].tensor(), Tensor::of<float>({2, 2, 1}, {-1, 3, 1, 7})));
  EXPECT_TRUE(close(results[1].tensor(), row({5, 5})));
  EXPECT_TRUE(close(results[2].tensor(), row({4, 25})));
}

TEST(Normalization, InstanceAndGroup) {
  const Tensor x = Tensor::of<float>({1, 2, 2}, {1, 3, 10, 30});
  EXPECT_TRUE(close(evaluated("InstanceNormalization", {x, row({1, 2}), row({0, 5})}, kExact),
                    Tensor::of<float>({1, 2, 2}, {-1, 1, 3, 7})));
  Attributes groups = kExact;
  groups.set("num_groups", 1);
  const Tensor y = evaluated("GroupNormalization", {x, row({1, 1}), row({0, 0})}, groups);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 4; ++i) sum += y.double_at(i), squares += y.double_at(i) * y.double_at(i);
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(squares / 4, 1, 1e-6);
}

TEST(Normalization, LayerWithStatisticsAndEveryShapeOfScale) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 3, 10, 30});
  const auto results = evaluated_all("LayerNormalization", {x, row({1, 2}), row({0, 5})}, kExact, 3);
  EXPECT_TRUE(close(results[0].tensor(), Tensor::of<float>({2, 2}, {-1, 7, -1, 7})));
  EXPECT_TRUE(close(results[1].tensor(), Tensor::of<float>({2, 1}, {2, 20})));
  EXPECT_TRUE(close(results[2].tensor(), Tensor::of<float>({2, 1}, {1, 0.1f})));
  EXPECT_TRUE(close(evaluated("LayerNormalization", {x, Tensor::scalar(3.f)}, kExact),
                    Tensor::of<float>({2, 2}, {-3, 3, -3, 3})));
  // One factor a row: reaches beyond the normalised axis.
  EXPECT_TRUE(close(evaluated("LayerNormalization", {x, Tensor::of<float>({2, 1}, {1, 2})}, kExact),
                    Tensor::of<float>({2, 2}, {-1, 1, -2, 2})));
}

TEST(Normalization, CancellationDoesNotHurt) {
  // Around 1e6 the squares need 40 bits: one pass in f32 would lose the variance.
  const Tensor y = evaluated("LayerNormalization", {Tensor::of<float>({1, 2}, {1e6f, 1e6f + 2}), row({1, 1})}, kExact);
  EXPECT_TRUE(close(y, Tensor::of<float>({1, 2}, {-1, 1})));
}

TEST(Normalization, RootMeanSquareAndNorms) {
  const Tensor x = Tensor::of<float>({1, 2}, {3, 4});
  EXPECT_TRUE(close(evaluated("RMSNormalization", {x, row({1, 10})}, kExact),
                    Tensor::of<float>({1, 2}, {3 / std::sqrt(12.5f), 40 / std::sqrt(12.5f)})));
  EXPECT_TRUE(close(evaluated("LpNormalization", {x}), Tensor::of<float>({1, 2}, {0.6f, 0.8f})));
  EXPECT_TRUE(close(evaluated("LpNormalization", {x}, {{"p", 1}, {"axis", 0}}), Tensor::of<float>({1, 2}, {1, 1})));
  EXPECT_TRUE(evaluated("LpNormalization", {*Tensor::zeros(kF16, {2, 2})}).identical(*Tensor::zeros(kF16, {2, 2})));
  EXPECT_TRUE(close(evaluated("MeanVarianceNormalization", {Tensor::of<float>({2, 2}, {1, 10, 3, 30})},
                              {{"axes", Attribute::Integers{0}}}),
                    Tensor::of<float>({2, 2}, {-1, -1, 1, 1})));
}

TEST(Normalization, LocalResponseSeesItsNeighbours) {
  const Tensor x = Tensor::of<float>({1, 4, 1}, {1, 2, 3, 4});
  const Attributes attributes{{"size", 2}, {"alpha", 2.0f}, {"beta", 1.0f}, {"bias", 1.0f}};
  // Of an even size the extra neighbour is above: x / (1 + x^2 + next^2).
  EXPECT_TRUE(
      close(evaluated("LRN", {x}, attributes), Tensor::of<float>({1, 4, 1}, {1 / 6.f, 2 / 14.f, 3 / 26.f, 4 / 17.f})));
}

TEST(Normalization, DropoutDropsItsShareInTraining) {
  const Tensor x = *convert(Tensor::of<float>({10000}, std::vector<float>(10000, 1)), kF32);
  const auto plain = evaluated_all("Dropout", {x, Tensor::scalar(0.25f)}, {}, 2);
  EXPECT_TRUE(plain[0].tensor().identical(x));
  const std::vector<Datum> operands{x, Tensor::scalar(0.25f), Tensor::scalar(true)};
  const auto first = evaluated_all("Dropout", operands, {{"seed", 7}}, 2),
             again = evaluated_all("Dropout", operands, {{"seed", 7}}, 2);
  EXPECT_TRUE(first[0].tensor().identical(again[0].tensor()));
  int64_t kept = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool keeps = first[1].tensor().int_at(i) != 0;
    kept += keeps;
    EXPECT_EQ(first[0].tensor().double_at(i), keeps ? static_cast<float>(1 / 0.75) : 0);
  }
  EXPECT_NEAR(static_cast<double>(kept), 7500, 220) << "five standard deviations";
  EXPECT_THAT(error_of("Dropout", {x, Tensor::scalar(1.f), Tensor::scalar(true)}), HasSubstr("ratio is 1"));
}

}  // namespace
}  // namespace tenon
