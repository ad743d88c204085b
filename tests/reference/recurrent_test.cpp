#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction over one sequence, one number at a time.
struct Naive {
  const Tensor &x, &w, &r, &b;  // [T, 1, I], [1, G H, I], [1, G H, H], [1, 2 G H]
  int64_t hidden = r.dim(2), lines = r.dim(1);

  double from_x(int64_t t, int64_t line) const {
    double sum = b.double_at(line);
    for (int64_t i = 0; i < x.dim(2); ++i) sum += x.double_at(t * x.dim(2) + i) * w.double_at(line * x.dim(2) + i);
    return sum;
  }
  double from_h(const std::vector<double>& h, int64_t line) const {
    double sum = b.double_at(lines + line);
    for (int64_t i = 0; i < hidden; ++i) sum += h[i] * r.double_at(line * hidden + i);
    return sum;
  }
  std::vector<double> rnn() const {
    std::vector<double> h(hidden), out;
    for (int64_t t = 0; t < x.dim(0); ++t) {
      auto next = h;
      for (int64_t i = 0; i < hidden; ++i) next[i] = std::tanh(from_x(t, i) + from_h(h, i));
      h = next;
      out.insert(out.end(), h.begin(), h.end());
    }
    return out;
  }
  std::vector<double> gru(bool linear_before_reset) const {
    std::vector<double> h(hidden), out;
    for (int64_t t = 0; t < x.dim(0); ++t) {
      std::vector<double> z(hidden), reset(hidden), reset_h(hidden), next(hidden);
      for (int64_t i = 0; i < hidden; ++i) {
        z[i] = sigmoid(from_x(t, i) + from_h(h, i));
        reset[i] = sigmoid(from_x(t, hidden + i) + from_h(h, hidden + i));
        reset_h[i] = reset[i] * h[i];
      }
      for (int64_t i = 0; i < hidden; ++i) {
        const int64_t n = 2 * hidden + i;
        const double fresh =
            std::tanh(from_x(t, n) + (linear_before_reset ? reset[i] * from_h(h, n) : from_h(reset_h, n)));
        next[i] = (1 - z[i]) * fresh + z[i] * h[i];
      }
      h = next;
      out.insert(out.end(), h.begin(), h.end());
    }
    return out;
  }
  std::vector<double> lstm(const Tensor& p) const {
    std::vector<double> h(hidden), c(hidden), out;
    for (int64_t t = 0; t < x.dim(0); ++t) {
      auto next = h;
      for (int64_t i = 0; i < hidden; ++i) {
        const auto gate = [&](int64_t g) { return from_x(t, g * hidden + i) + from_h(h, g * hidden + i); };
        const double in = sigmoid(gate(0) + p.double_at(i) * c[i]),
                     forget = sigmoid(gate(2) + p.double_at(2 * hidden + i) * c[i]);
        c[i] = forget * c[i] + in * std::tanh(gate(3));
        next[i] = sigmoid(gate(1) + p.double_at(hidden + i) * c[i]) * std::tanh(c[i]);
      }
      h = next;
      out.insert(out.end(), h.begin(), h.end());
    }
    return out;
  }
};

void expect_close(const Tensor& y, const std::vector<double>& expected) {
  ASSERT_EQ(y.size(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y.double_at(i), expected[i], 1e-5) << i;
}

TEST(Recurrent, EqualsTheFormulas) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int64_t time = pick(random, 1, 4), input = pick(random, 1, 3), hidden = pick(random, 1, 4);
    const auto weights = [&](int64_t gates, int64_t columns) {
      return random_tensor(random, kF32, {1, gates * hidden, columns});
    };
    const Tensor x = random_tensor(random, kF32, {time, 1, input});
    const auto biases = [&](int64_t gates) { return random_tensor(random, kF32, {1, 2 * gates * hidden}); };
    const Tensor w1 = weights(1, input), r1 = weights(1, hidden), b1 = biases(1);
    expect_close(evaluated("RNN", {x, w1, r1, b1}), Naive{x, w1, r1, b1}.rnn());
    const Tensor w3 = weights(3, input), r3 = weights(3, hidden), b3 = biases(3);
    expect_close(evaluated("GRU", {x, w3, r3, b3}), Naive{x, w3, r3, b3}.gru(false));
    expect_close(evaluated("GRU", {x, w3, r3, b3}, {{"linear_before_reset", 1}}), Naive{x, w3, r3, b3}.gru(true));
    const Tensor w4 = weights(4, input), r4 = weights(4, hidden), b4 = biases(4),
                 p = random_tensor(random, kF32, {1, 3 * hidden});
    expect_close(evaluated("LSTM", {x, w4, r4, b4, Datum(), Datum(), Datum(), p}), Naive{x, w4, r4, b4}.lstm(p));
  }
}

// H = x + h: sums from either end, so that order and lengths are visible.
const Attributes kSums{{"activations", Attribute::Texts{"Affine"}}};
Tensor ones(Dims dims) {
  Tensor out = *Tensor::zeros(kF32, std::move(dims));
  for (int64_t i = 0; i < out.size(); ++i) out.set_double(i, 1);
  return out;
}

TEST(Recurrent, DirectionsAndLengths) {
  // Two sequences, 1 2 3 and 10 20 (30 is padding).
  const Tensor x = Tensor::of<float>({3, 2, 1}, {1, 10, 2, 20, 3, 30}), lengths = Tensor::of<int32_t>({2}, {3, 2});
  Attributes attributes = kSums;
  attributes.set("direction", "bidirectional");
  attributes.set("activations", Attribute::Texts{"Affine", "Affine"});
  const auto both = evaluated_all("RNN", {x, ones({2, 1, 1}), ones({2, 1, 1}), Datum(), lengths}, attributes, 2);
  EXPECT_TRUE(both[0].tensor().identical(Tensor::of<float>({3, 2, 2, 1}, {1, 10, 6, 30, 3, 30, 5, 20, 6, 0, 3, 0})));
  EXPECT_TRUE(both[1].tensor().identical(Tensor::of<float>({2, 2, 1}, {6, 30, 6, 30})));
  attributes = kSums;
  attributes.set("direction", "reverse");
  EXPECT_TRUE(evaluated("RNN", {x, ones({1, 1, 1}), ones({1, 1, 1}), Datum(), lengths}, attributes)
                  .identical(Tensor::of<float>({3, 1, 2, 1}, {6, 30, 5, 20, 3, 0})));
  EXPECT_THAT(error_of("RNN", {x, ones({1, 1, 1}), ones({1, 1, 1}), Datum(), Tensor::of<int32_t>({2}, {3, 4})}, kSums),
              HasSubstr("[0, 3]"));
}

TEST(Recurrent, BatchFirstIsTheSameTurned) {
  const Tensor x = Tensor::of<float>({2, 3, 1}, {1, 2, 3, 10, 20, 30}),
               start = Tensor::of<float>({2, 1, 1}, {100, 1000});
  Attributes attributes = kSums;
  attributes.set("layout", 1);
  const auto results =
      evaluated_all("RNN", {x, ones({1, 1, 1}), ones({1, 1, 1}), Datum(), Datum(), start}, attributes, 2);
  EXPECT_TRUE(results[0].tensor().identical(Tensor::of<float>({2, 3, 1, 1}, {101, 103, 106, 1010, 1030, 1060})));
  EXPECT_TRUE(results[1].tensor().identical(Tensor::of<float>({2, 1, 1}, {106, 1060})));
}

TEST(Recurrent, ActivationsTakeTheirFactorsInOrderAndClip) {
  const Tensor one = ones({1, 1, 1});
  const auto run = [&](const char* activation, float x, std::vector<float> alpha = {}, std::vector<float> beta = {}) {
    Attributes attributes{{"activations", Attribute::Texts{activation}}, {"clip", 2.0f}};
    if (!alpha.empty()) attributes.set("activation_alpha", alpha);
    if (!beta.empty()) attributes.set("activation_beta", beta);
    return evaluated("RNN", {Tensor::of<float>({1, 1, 1}, {x}), one, one}, attributes).double_at(0);
  };
  EXPECT_EQ(run("Affine", 5, {3}, {1}), 7) << "clipped to 2 before";
  EXPECT_EQ(run("relu", -1), 0);
  EXPECT_FLOAT_EQ(run("LeakyRelu", -1), -0.01f);
  EXPECT_EQ(run("ThresholdedRelu", 1), 0);
  EXPECT_FLOAT_EQ(run("ScaledTanh", 1, {2}, {0.5}), 2 * std::tanh(0.5));
  EXPECT_FLOAT_EQ(run("HardSigmoid", 1), 0.7f);
  EXPECT_FLOAT_EQ(run("Elu", -1, {2}), 2 * std::expm1(-1));
  EXPECT_FLOAT_EQ(run("Softsign", 1), 0.5);
  EXPECT_FLOAT_EQ(run("Softplus", 0), std::log(2.0));
  EXPECT_THAT(error_of("RNN", {one, one, one}, {{"activations", Attribute::Texts{"Swish"}}}), HasSubstr("'Swish'"));
}

TEST(Recurrent, ForgetTiedToInput) {
  // Weights 0: i = sigmoid(0) = 1/2, so c = c0 / 2 + tanh(0) / 2 whatever the forget gate's bias says.
  Tensor b = *Tensor::zeros(kF32, {1, 8});
  b.set_double(2, 100);
  const Tensor zero4 = *Tensor::zeros(kF32, {1, 4, 1});
  const std::vector<Datum> operands{ones({1, 1, 1}), zero4, zero4, b, Datum(), Datum(), ones({1, 1, 1})};
  EXPECT_FLOAT_EQ(evaluated_all("LSTM", operands, {{"input_forget", 1}}, 3)[2].tensor().double_at(0), 0.5);
  EXPECT_FLOAT_EQ(evaluated_all("LSTM", operands, {}, 3)[2].tensor().double_at(0), 1);
}

}  // namespace
}  // namespace tenon
