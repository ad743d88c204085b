#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

using Function = std::function<long double(long double)>;
struct Case {
  const char* op;
  Function formula;
  Attributes attributes = {};
  double low = -6, high = 6;
};

long double power(long double x) { return std::exp(x); }
long double log1p_exp(long double x) { return std::log(1 + power(x)); }

// The formulas from the literature, with more digits than the evaluators use.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"Relu", [](auto x) { return x > 0 ? x : 0; }},
      {"LeakyRelu", [](auto x) { return x < 0 ? 0.25L * x : x; }, {{"alpha", 0.25f}}},
      {"Elu", [](auto x) { return x < 0 ? 2 * (power(x) - 1) : x; }, {{"alpha", 2.f}}},
      {"Selu", [](auto x) { return x <= 0 ? 3 * (2 * power(x) - 2) : 3 * x; }, {{"alpha", 2.f}, {"gamma", 3.f}}},
      {"Celu", [](auto x) { return x < 0 ? 2 * (power(x / 2) - 1) : x; }, {{"alpha", 2.f}}},
      {"ThresholdedRelu", [](auto x) { return x > 1.5L ? x : 0; }, {{"alpha", 1.5f}}},
      {"Sigmoid", [](auto x) { return 1 / (1 + power(-x)); }},
      {"HardSigmoid",
       [](auto x) { return std::max(0.0L, std::min(1.0L, x / 4 + 0.125L)); },
       {{"alpha", 0.25f}, {"beta", 0.125f}}},
      {"HardSwish", [](auto x) { return x * std::max(0.0L, std::min(6.0L, x + 3)) / 6; }},
      {"Swish", [](auto x) { return x / (1 + power(-x / 2)); }, {{"alpha", 0.5f}}},
      {"Mish", [](auto x) { return x * std::tanh(log1p_exp(x)); }},
      {"Softplus", log1p_exp},
      {"Softsign", [](auto x) { return x / (1 + (x < 0 ? -x : x)); }},
      {"Tanh", [](auto x) { return (power(2 * x) - 1) / (power(2 * x) + 1); }},
      {"Erf", [](auto x) { return 1 - std::erfc(x); }},
      {"Gelu", [](auto x) { return x * std::erfc(-x / std::sqrt(2.0L)) / 2; }},
      {"Gelu",
       [](auto x) { return x / (1 + power(-2 * std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x))); },
       {{"approximate", "tanh"}}},
      {"Shrink", [](auto x) { return x > 2    ? x - 1
                                     : x < -2 ? x + 1
                                              : 0; }, {{"lambd", 2.f}, {"bias", 1.f}}},
      {"Sin", [](auto x) { return std::sin(x); }},
      {"Cos", [](auto x) { return std::cos(x); }},
      {"Tan", [](auto x) { return std::sin(x) / std::cos(x); }},
      {"Asin", [](auto x) { return std::atan2(x, std::sqrt(1 - x * x)); }, {}, -1, 1},
      {"Acos", [](auto x) { return std::atan2(std::sqrt(1 - x * x), x); }, {}, -1, 1},
      {"Atan", [](auto x) { return std::atan2(x, 1.0L); }},
      {"Sinh", [](auto x) { return (power(x) - power(-x)) / 2; }},
      {"Cosh", [](auto x) { return (power(x) + power(-x)) / 2; }},
      {"Asinh", [](auto x) { return std::log(x + std::sqrt(x * x + 1)); }},
      {"Acosh", [](auto x) { return std::log(x + std::sqrt(x * x - 1)); }, {}, 1, 9},
      {"Atanh", [](auto x) { return std::log((1 + x) / (1 - x)) / 2; }, {}, -0.9, 0.9},
  };
  return all;
}

TEST(Activations, FollowTheirFormulas) {
  std::mt19937 random(40);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.op);
    std::uniform_real_distribution<float> values(static_cast<float>(c.low), static_cast<float>(c.high));
    std::vector<float> x(300);
    for (float& value : x) value = values(random);
    const Tensor y = evaluated(c.op, {Tensor::of<float>({300}, x)}, c.attributes);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto expected = static_cast<double>(static_cast<float>(c.formula(x[i])));
      // One rounding of a result in f64: at most the neighbour where the two sides round a tie otherwise.
      EXPECT_LE(ulp_distance(kF32, y.as<float>()[i], expected), 1) << "x " << x[i];
    }
  }
}

TEST(Activations, NarrowFloatsAreRoundedOnce) {
  const std::vector<double> values{-3, -0.5, 0, 0.25, 2};
  for (const ElementType element : {kF16, kBF16, kF8E4M3FN}) {
    Tensor x = *Tensor::zeros(element, {5});
    for (int i = 0; i < 5; ++i) x.set_double(i, values[static_cast<size_t>(i)]);
    for (const Case& c : cases()) {
      if (c.low != -6) continue;
      const Tensor y = evaluated(c.op, {x}, c.attributes);
      for (int i = 0; i < 5; ++i) {
        Tensor expected = *Tensor::zeros(element, {});
        expected.set_double(0, static_cast<double>(c.formula(values[static_cast<size_t>(i)])));
        EXPECT_EQ(y.double_at(i), expected.double_at(0)) << c.op << " " << element.to_string() << " " << i;
      }
    }
  }
}

TEST(Activations, NaNStaysAndInfinitiesHaveLimits) {
  const std::map<std::string, std::pair<float, float>> at_infinity = {
      {"Relu", {0, kInf}}, {"Sigmoid", {0, 1}}, {"HardSigmoid", {0, 1}}, {"Softplus", {0, kInf}},
      {"Tanh", {-1, 1}},   {"Erf", {-1, 1}},    {"Elu", {-1, kInf}},     {"ThresholdedRelu", {0, kInf}},
      {"Celu", {-1, kInf}}};
  for (const auto& [op, limits] : at_infinity) {
    const Tensor y = evaluated(Name(op), {Tensor::of<float>({3}, {kNaN, -kInf, kInf})});
    EXPECT_TRUE(std::isnan(y.as<float>()[0])) << op;
    EXPECT_EQ(y.as<float>()[1], limits.first) << op;
    EXPECT_EQ(y.as<float>()[2], limits.second) << op;
  }
  EXPECT_EQ(evaluated("Softplus", {Tensor::scalar(1000.f)}).as<float>()[0], 1000.f);
}

TEST(Activations, Integers) {
  const Tensor x = Tensor::of<int8_t>({4}, {-128, -1, 0, 127});
  EXPECT_TRUE(evaluated("Relu", {x}).identical(Tensor::of<int8_t>({4}, {0, 0, 0, 127})));
  EXPECT_TRUE(
      evaluated("PRelu", {x, Tensor::of<int8_t>({}, {3})}).identical(Tensor::of<int8_t>({4}, {-128, -3, 0, 127})));
  EXPECT_TRUE(
      evaluated("Shrink", {x}, {{"lambd", 1.f}, {"bias", 1.f}}).identical(Tensor::of<int8_t>({4}, {-127, 0, 0, 126})));
}

TEST(Activations, PReluPerChannel) {
  EXPECT_TRUE(evaluated("PRelu", {Tensor::of<float>({1, 2, 2}, {-1, 2, -3, 4}), Tensor::of<float>({2, 1}, {0.5f, 2})})
                  .identical(Tensor::of<float>({1, 2, 2}, {-0.5f, 2, -6, 4})));
}

TEST(Activations, ClipBounds) {
  const Tensor x = Tensor::of<float>({5}, {-kInf, -2, 0, kInf, kNaN});
  const auto low = Tensor::scalar(-1.f), high = Tensor::scalar(1.f);
  const auto expect = [&](std::vector<Datum> operands, const std::vector<float>& values) {
    const Comparison same = compare(evaluated("Clip", std::move(operands)), Tensor::of<float>({5}, values), {0, 0});
    EXPECT_TRUE(same.equal) << same.difference;
  };
  expect({x}, {-kInf, -2, 0, kInf, kNaN});
  expect({x, low}, {-1, -1, 0, kInf, kNaN});
  expect({x, Datum(), high}, {-kInf, -2, 0, 1, kNaN});
  expect({x, low, high}, {-1, -1, 0, 1, kNaN});
  expect({x, high, low}, {-1, -1, -1, -1, kNaN});
  EXPECT_TRUE(evaluated("Clip", {Tensor::of<uint8_t>({3}, {0, 100, 255}), Tensor::of<uint8_t>({}, {10}),
                                 Tensor::of<uint8_t>({}, {200})})
                  .identical(Tensor::of<uint8_t>({3}, {10, 100, 200})));
}

TEST(Activations, SwiGlu) {
  const Tensor y =
      evaluated("SwiGLU", {Tensor::of<double>({2}, {1, -2}), Tensor::of<double>({2}, {3, 5})}, {{"alpha", 0.5f}});
  EXPECT_DOUBLE_EQ(y.as<double>()[0], 3 / (1 + std::exp(-0.5)));
  EXPECT_DOUBLE_EQ(y.as<double>()[1], -10 / (1 + std::exp(1.0)));
}

}  // namespace
}  // namespace tenon
