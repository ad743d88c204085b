#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/evaluated.hpp>
#include <support_lib/shredding_parallel.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr int64_t kCount = 40000;

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const Tensor& x) {
  Moments m;
  for (int64_t i = 0; i < x.size(); ++i) m.mean += x.double_at(i) / static_cast<double>(x.size());
  for (int64_t i = 0; i < x.size(); ++i) {
    m.variance += (x.double_at(i) - m.mean) * (x.double_at(i) - m.mean) / static_cast<double>(x.size());
  }
  return m;
}
Attributes shaped(Attributes attributes, float seed) {
  attributes.set("shape", Attribute::Integers{kCount});
  attributes.set("seed", seed);
  return attributes;
}

TEST(Random, SeedsDecide) {
  const auto drawn = [](float seed) { return evaluated("RandomNormal", {}, shaped({}, seed)); };
  EXPECT_TRUE(drawn(1).identical(drawn(1)));
  EXPECT_FALSE(drawn(1).identical(drawn(2)));
  ShreddingParallel parallel(777);
  EXPECT_TRUE((*evaluate("RandomNormal", {}, shaped({}, 1), 1, parallel))[0].tensor().identical(drawn(1)));
  const Attributes unseeded{{"shape", Attribute::Integers{8}}};
  EXPECT_FALSE(evaluated("RandomNormal", {}, unseeded).identical(evaluated("RandomNormal", {}, unseeded)));
}

// The bounds are five standard errors of 40000 draws; the seeds are fixed.
TEST(Random, Distributions) {
  const Moments normal = moments_of(evaluated("RandomNormal", {}, shaped({{"mean", 3.f}, {"scale", 2.f}}, 5)));
  EXPECT_NEAR(normal.mean, 3, 5 * 2 / 200.0);
  EXPECT_NEAR(normal.variance, 4, 5 * 4 * std::sqrt(2.0) / 200);
  const Tensor uniform = evaluated("RandomUniform", {}, shaped({{"low", -1.f}, {"high", 2.f}}, 6));
  EXPECT_NEAR(moments_of(uniform).mean, 0.5, 5 * 3 / std::sqrt(12.0) / 200);
  EXPECT_NEAR(moments_of(uniform).variance, 9 / 12.0, 0.03);
  for (const float v : uniform.as<float>()) ASSERT_TRUE(v >= -1 && v <= 2) << v;
}

TEST(Random, LikeTakesShapeAndType) {
  const Tensor x = *Tensor::zeros(kF64, {2, 3});
  EXPECT_EQ(evaluated("RandomNormalLike", {x}).to_string(), "f64[2,3]");
  EXPECT_EQ(evaluated("RandomUniformLike", {x}, {{"dtype", Type(kF16, Shape())}}).to_string(), "f16[2,3]");
}

TEST(Random, Bernoulli) {
  Tensor p = *Tensor::zeros(kF32, {kCount});
  for (float& v : p.mutable_as<float>()) v = 0.3f;
  p.set_double(0, 0);
  p.set_double(1, 1);
  const Tensor drawn = evaluated("Bernoulli", {p}, {{"seed", 3.f}, {"dtype", Type(kBool, Shape())}});
  EXPECT_EQ(drawn.int_at(0), 0);
  EXPECT_EQ(drawn.int_at(1), 1);
  EXPECT_NEAR(moments_of(drawn).mean, 0.3, 5 * std::sqrt(0.21) / 200);
}

TEST(Random, Multinomial) {
  const float never = -std::numeric_limits<float>::infinity();
  const Tensor logs = Tensor::of<float>({2, 3}, {std::log(1.f), std::log(3.f), never, 1000, never, never});
  const Tensor drawn = evaluated("Multinomial", {logs}, {{"sample_size", kCount}, {"seed", 4.f}});
  ASSERT_EQ(drawn.to_string(), "i32[2,40000]");
  int64_t ones = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_LT(drawn.int_at(i), 2);
    ones += drawn.int_at(i);
    ASSERT_EQ(drawn.int_at(kCount + i), 0);
  }
  EXPECT_NEAR(static_cast<double>(ones) / kCount, 0.75, 5 * std::sqrt(0.1875) / 200);
  EXPECT_THAT(error_of("Multinomial", {*Tensor::zeros(kF32, {2, 0})}), HasSubstr("no class to draw from"));
}

}  // namespace
}  // namespace tenon
