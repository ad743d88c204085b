#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;

TEST(Softmax, AlongEveryAxis) {
  std::mt19937 random(70);
  const Dims dims{3, 4, 2};
  for (const ElementType element : {kF32, kF64, kF16}) {
    const Tensor x = random_tensor(random, element, dims);
    for (int axis = -3; axis < 3; ++axis) {
      const auto d = static_cast<size_t>((axis + 3) % 3);
      const int64_t step = d == 0 ? 8 : d == 1 ? 2 : 1;
      const Tensor soft = evaluated("Softmax", {x}, {{"axis", axis}}),
                   log = evaluated("LogSoftmax", {x}, {{"axis", axis}});
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t first = i - i / step % dims[d] * step;
        long double sum = 0;
        for (int64_t k = 0; k < dims[d]; ++k) sum += std::exp(static_cast<long double>(x.double_at(first + k * step)));
        const long double expected = std::exp(static_cast<long double>(x.double_at(i))) / sum;
        // f64 goes through three rounded steps, the others end in one.
        const int64_t ulps = element == kF64 ? 4 : 1;
        EXPECT_LE(ulp_distance(element, soft.double_at(i), static_cast<double>(expected)), ulps) << element.to_string();
        EXPECT_NEAR(log.double_at(i), static_cast<double>(std::log(expected)), element == kF16 ? 2e-3 : 4e-7);
      }
    }
  }
}

TEST(Softmax, LargeNumbersAndNaN) {
  const Tensor x = Tensor::of<float>({2, 2}, {10000, 10001, std::numeric_limits<float>::quiet_NaN(), 0});
  const Tensor soft = evaluated("Softmax", {x}), log = evaluated("LogSoftmax", {x});
  EXPECT_FLOAT_EQ(soft.as<float>()[1], static_cast<float>(1 / (1 + std::exp(-1.0))));
  EXPECT_FLOAT_EQ(log.as<float>()[0], static_cast<float>(-1 - std::log1p(std::exp(-1.0))));
  for (const size_t i : {2, 3}) {
    EXPECT_TRUE(std::isnan(soft.as<float>()[i]));
    EXPECT_TRUE(std::isnan(log.as<float>()[i]));
  }
  EXPECT_EQ(evaluated("Softmax", {*Tensor::zeros(kF32, {2, 0})}).dims(), (Dims{2, 0}));
}

TEST(Softmax, HardmaxTakesTheFirst) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 3, 3, 0, -1, -2});
  EXPECT_TRUE(evaluated("Hardmax", {x}).identical(Tensor::of<float>({2, 3}, {0, 1, 0, 1, 0, 0})));
  EXPECT_TRUE(evaluated("Hardmax", {x}, {{"axis", 0}}).identical(Tensor::of<float>({2, 3}, {1, 1, 1, 0, 0, 0})));
}

}  // namespace
}  // namespace tenon
