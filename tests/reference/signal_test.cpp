#include <tenon/ops/signal.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using ::testing::DoubleNear;
using testing::evaluated;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.size(); ++i) out.push_back(tensor.double_at(i));
  return out;
}
auto near(const std::vector<double>& expected, double tolerance) { return Pointwise(DoubleNear(tolerance), expected); }
Tensor number(int64_t value) { return Tensor::scalar(value); }

TEST(SignalEvaluator, DftOfKnownSignals) {
  const Tensor step = Tensor::of<double>({1, 4, 1}, {1, 2, 0, -1});
  EXPECT_THAT(values(evaluated("DFT", {step})), near({2, 0, 1, -3, 0, 0, 1, 3}, 1e-14));
  EXPECT_THAT(values(evaluated("DFT", {step}, {{"onesided", 1}})), near({2, 0, 1, -3, 0, 0}, 1e-14));
  // Cut to two points, padded to three.
  EXPECT_THAT(values(evaluated("DFT", {step, number(2)})), near({3, 0, -1, 0}, 1e-14));
  const double s = std::sqrt(3.0) / 2;
  EXPECT_THAT(values(evaluated("DFT", {Tensor::of<double>({1, 1, 1}, {2}), number(3)})),
              near({2, 0, 2, 0, 2, 0}, 1e-14));
  EXPECT_THAT(values(evaluated("DFT", {Tensor::of<double>({1, 3, 1}, {0, 1, 0})})),
              near({1, 0, -0.5, -s, -0.5, s}, 1e-14));
}

// Every length up to 40, so with all kinds of factors, against the definition.
TEST(SignalEvaluator, DftOfEveryLength) {
  for (int64_t length = 1; length <= 40; ++length) {
    std::vector<double> x, expected;
    for (int64_t n = 0; n < length; ++n) x.push_back(std::sin(static_cast<double>(n * n + 1)));
    for (int64_t k = 0; k < length; ++k) {
      double re = 0, im = 0;
      for (int64_t n = 0; n < length; ++n) {
        const double angle = 2 * M_PI * static_cast<double>(k * n % length) / static_cast<double>(length);
        re += x[n] * std::cos(angle);
        im -= x[n] * std::sin(angle);
      }
      expected.insert(expected.end(), {re, im});
    }
    EXPECT_THAT(values(evaluated("DFT", {Tensor::of<double>({1, length, 1}, x)})), near(expected, 1e-12)) << length;
  }
}

TEST(SignalEvaluator, InverseBringsBack) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const int64_t length : {1, 2, 5, 8, 12}) {
    std::vector<double> x(2 * length * 3);
    for (double& value : x) value = uniform(random);
    const Tensor signal = Tensor::of<double>({2, length, 3, 1}, x);
    const Tensor axis = number(1);
    const Tensor spectrum = evaluated("DFT", {signal, Datum(), axis});
    const Tensor back = evaluated("DFT", {spectrum, Datum(), axis}, {{"inverse", 1}});
    for (int64_t i = 0; i < signal.size(); ++i) {
      EXPECT_NEAR(back.double_at(2 * i), x[i], 1e-13);
      EXPECT_NEAR(back.double_at(2 * i + 1), 0, 1e-13);
    }
    const Tensor half = evaluated("DFT", {signal, Datum(), axis}, {{"onesided", 1}});
    EXPECT_THAT(values(evaluated("DFT", {half, number(length), axis}, {{"onesided", 1}, {"inverse", 1}})),
                near(x, 1e-13));
  }
}

TEST(SignalEvaluator, StftIsDftOfWindowedFrames) {
  const Tensor signal = Tensor::of<double>({1, 6, 1}, {1, 2, 3, 4, 5, 6}),
               window = Tensor::of<double>({4}, {1, 0.5, 2, -1});
  const Tensor y = evaluated("STFT", {signal, number(2), window});
  ASSERT_EQ(y.dims(), (Dims{1, 2, 3, 2}));
  const Tensor frames = Tensor::of<double>({2, 4, 1}, {1, 1, 6, -4, 3, 2, 10, -6});
  EXPECT_THAT(values(y), near(values(evaluated("DFT", {frames}, {{"onesided", 1}})), 1e-13));
  EXPECT_EQ(evaluated("STFT", {signal, number(1), Datum(), number(3)}, {{"onesided", 0}}).dims(), (Dims{1, 4, 3, 2}));
}

TEST(SignalEvaluator, Windows) {
  const Attributes f64{{"output_datatype", Type(kF64, Shape())}};
  const Attributes symmetric{{"output_datatype", Type(kF64, Shape())}, {"periodic", 0}};
  EXPECT_THAT(values(evaluated("HannWindow", {number(4)}, f64)), near({0, 0.5, 1, 0.5}, 1e-15));
  EXPECT_THAT(values(evaluated("HannWindow", {number(3)}, symmetric)), near({0, 1, 0}, 1e-15));
  EXPECT_THAT(values(evaluated("HammingWindow", {number(2)}, f64)), near({4.0 / 46, 1}, 1e-15));
  EXPECT_THAT(values(evaluated("BlackmanWindow", {number(4)}, f64)), near({0, 0.34, 1, 0.34}, 1e-15));
  EXPECT_EQ(evaluated("HannWindow", {number(1)}, symmetric).size(), 1);
  EXPECT_EQ(evaluated("HannWindow", {number(0)}).size(), 0);
}

TEST(SignalEvaluator, MelFiltersAreTriangles) {
  const Tensor y = evaluated("MelWeightMatrix",
                             {number(4), number(64), number(8000), Tensor::scalar(0.0f), Tensor::scalar(4000.0f)});
  ASSERT_EQ(y.dims(), (Dims{33, 4}));
  for (int64_t filter = 0; filter < 4; ++filter) {
    double highest = 0;
    for (int64_t bin = 0; bin < 33; ++bin) highest = std::max(highest, y.double_at(bin * 4 + filter));
    EXPECT_EQ(highest, 1);
  }
  EXPECT_THAT(testing::error_of("MelWeightMatrix",
                                {number(4), number(64), number(8000), Tensor::scalar(0.0f), Tensor::scalar(9000.0f)}),
              HasSubstr("outside the 33 bins"));
}

}  // namespace
}  // namespace tenon
