#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;

Tensor number(double value) { return Tensor::of<double>({1}, {value}); }
double value_of(const Datum& datum) { return datum.tensor().as<double>()[0]; }

const Tensor kRate = Tensor::scalar(0.5);
Tensor steps(int64_t count) { return Tensor::scalar<int64_t>(count); }

TEST(Training, Adagrad) {
  // Two tensors: the second must not see the first's state.
  const auto made = evaluated_all("ai.onnx.preview.training.Adagrad",
                                  {kRate, steps(2), number(1), number(2), number(3), number(4), number(5), number(0)},
                                  {{"norm_coefficient", 0.5f}, {"decay_factor", 0.25f}, {"epsilon", 0.f}}, 4);
  const double rate = 0.5 / 1.5, g1 = 3.5, g2 = 5;
  EXPECT_DOUBLE_EQ(value_of(made[2]), 5 + g1 * g1);
  EXPECT_DOUBLE_EQ(value_of(made[3]), g2 * g2);
  EXPECT_DOUBLE_EQ(value_of(made[0]), 1 - rate * g1 / std::sqrt(5 + g1 * g1));
  EXPECT_DOUBLE_EQ(value_of(made[1]), 2 - rate);
}

TEST(Training, Adam) {
  const auto step = [](int64_t count) {
    return evaluated_all("ai.onnx.preview.training.Adam",
                         {kRate, steps(count), number(1), number(2), number(3), number(4)},
                         {{"alpha", 0.5f}, {"beta", 0.75f}, {"epsilon", 0.f}, {"norm_coefficient_post", 0.25f}}, 3);
  };
  const double v = 0.5 * 3 + 0.5 * 2, h = 0.75 * 4 + 0.25 * 4;
  const auto first = step(0), third = step(2);
  EXPECT_DOUBLE_EQ(value_of(first[1]), v);
  EXPECT_DOUBLE_EQ(value_of(first[2]), h);
  EXPECT_DOUBLE_EQ(value_of(first[0]), 0.75 * (1 - 0.5 * v / std::sqrt(h)));
  const double corrected = 0.5 * std::sqrt(1 - 0.75 * 0.75) / (1 - 0.5 * 0.5);
  EXPECT_DOUBLE_EQ(value_of(third[0]), 0.75 * (1 - corrected * v / std::sqrt(h)));
}

TEST(Training, Momentum) {
  const auto step = [](int64_t count, const char* mode) {
    return evaluated_all("ai.onnx.preview.training.Momentum", {kRate, steps(count), number(1), number(2), number(4)},
                         {{"alpha", 0.25f}, {"beta", 0.5f}, {"mode", mode}, {"norm_coefficient", 1.f}}, 2);
  };
  EXPECT_EQ(value_of(step(0, "standard")[1]), 4);    // 1 + 3
  EXPECT_EQ(value_of(step(1, "standard")[1]), 2.5);  // 1 + 0.5 * 3
  EXPECT_EQ(value_of(step(1, "standard")[0]), -0.25);
  EXPECT_EQ(value_of(step(1, "nesterov")[0]), 1 - 0.5 * (3 + 0.25 * 2.5));
}

}  // namespace
}  // namespace tenon
