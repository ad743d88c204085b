// Softmax of widely spread scores, on both instruction sets. Results below the least normal number are correct, and are
// computed by sums only.
#include "x86/body/scaled_powers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "x86/body/numbers.hpp"
#include "x86/body/spared.hpp"
#include "x86/body_of.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;

std::string text_of(std::string_view operators, int64_t rows, int64_t columns, std::string_view outputs = "%y") {
  const std::string type = str("f32[", rows, ",", columns, "]");
  return str("graph @g(%x: ", type, ", %z: ", type, ") -> (", outputs, ") {\n",
             "%axes = Constant {value = dense<i64[1]: 1>}\n%one = Constant {value = dense<f32[]: 1>}\n",
             "%two = Constant {value = dense<f32[]: 2>}\n", operators, "\n}");
}

constexpr std::string_view kPowers =
    "%m = ReduceMax %x, %axes\n%d = Sub %x, %m\n%e = Exp %d\n%s = ReduceSum %e, %axes\n";

TEST(ScaledPowers, AreThoseThatTheirSumDivides) {
  const auto scaled = [](const std::string& operators, std::string_view outputs = "%y") {
    const snippet::Body made =
        with_scaled_powers(with_fewer_checks(with_spared_nan(body_of(text_of(operators, 8, 100, outputs)), true)));
    return std::ranges::count_if(made.nodes, [](const auto& node) { return node.attributes.has("exponent"); });
  };
  const std::string powers(kPowers);
  EXPECT_EQ(scaled("%y = Softmax %x {axis = 1}"), 1);
  EXPECT_EQ(scaled("%y = LogSoftmax %x {axis = 1}"), 1);
  EXPECT_EQ(scaled("%t = Add %x, %z\n%y = Softmax %t {axis = 1}"), 1);
  EXPECT_EQ(scaled("%t = Softmax %x {axis = 1}\n%y = Add %t, %z"), 1);
  EXPECT_EQ(scaled(powers + "%y = Div %e, %s"), 1);
  EXPECT_EQ(scaled(powers + "%r = Div %one, %s\n%y = Mul %r, %e"), 1);
  EXPECT_EQ(scaled(powers + "%y = Div %e, %s\n%l = Log %s", "%y, %l"), 1);
  EXPECT_EQ(scaled(powers + "%y = Div %e, %s", "%y, %s"), 1);
  // Powers are not scaled if they, or the reciprocal of the sum, have other readers.
  EXPECT_EQ(scaled(powers + "%y = Div %e, %s", "%y, %e"), 0);
  EXPECT_EQ(scaled(powers + "%q = Div %e, %s\n%y = Add %q, %e"), 0);
  EXPECT_EQ(scaled(powers + "%r = Div %two, %s\n%y = Mul %r, %e"), 0);
  EXPECT_EQ(scaled(powers + "%r = Div %one, %s\n%t = Mul %r, %e\n%y = Add %r, %t"), 0);
  EXPECT_EQ(scaled(powers + "%y = Div %s, %e"), 0);
  // Powers are not scaled if none of them is certain to be 1.
  EXPECT_EQ(scaled("%y = ReduceLogSumExp %x, %axes"), 0) << "all of a row may be infinite";
  EXPECT_EQ(scaled("%d = Sub %x, %z\n%e = Exp %d\n%s = ReduceSum %e, %axes\n%y = Div %e, %s"), 0);
  EXPECT_EQ(scaled("%a = Abs %x\n%n = Neg %a\n%e = Exp %n\n%s = ReduceSum %e, %axes\n%y = Div %e, %s"), 0);
}

class Scores : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  int64_t lanes() const { return lanes_of(GetParam(), kF32); }
};

// Scores whose powers have all sizes down to 0, and masked scores, including infinite ones.
Tensor scores(int64_t rows, int64_t columns, std::mt19937& random) {
  std::uniform_real_distribution<float> near(-4, 4), far(-120, 0);
  Tensor made = *Tensor::zeros(kF32, {rows, columns});
  for (int64_t i = 0; i < made.size(); ++i) {
    const int kind = static_cast<int>(random() % 8);
    made.set_double(i, kind < 3   ? near(random)
                       : kind < 6 ? far(random)
                       : kind < 7 ? near(random) - 100
                                  : -std::numeric_limits<float>::infinity());
  }
  return made;
}

constexpr std::string_view kOperators[] = {
    "%y = Softmax %x {axis = 1}", "%y = LogSoftmax %x {axis = 1}", "%t = Softmax %x {axis = 1}\n%y = Add %t, %z",
    "%m = ReduceMax %x, %axes\n%d = Sub %x, %m\n%e = Exp %d\n%s = ReduceSum %e, %axes\n%q = Div %e, %s\n%l = Log %s\n"
    "%y = Add %q, %l"};

TEST_P(Scores, OfAllWidthsAreWithinBounds) {
  std::mt19937 random(17);
  for (const std::string_view operators : kOperators)
    for (const bool small_caches : {false, true})
      for (const int64_t columns :
           {int64_t{0}, int64_t{1}, lanes() - 1, lanes(), lanes() + 1, int64_t{49}, 9 * lanes(), 20 * lanes() + 3}) {
        auto graph = graph_of(text_of(operators, 21, columns));
        GuardedGraph runner(GetParam(), {.small_caches = small_caches});
        runner.tokenize(*graph);
        runner.run(*graph, {Datum(scores(21, columns, random)), Datum(scores(21, columns, random))}, random);
        ASSERT_FALSE(HasFailure()) << operators << ", rows of " << columns << ", seed 17";
      }
}

// Denormals are correct to the last place, and no product, quotient or power of two was rounded to a denormal, which
// takes 150 cycles on a Xeon. Sums are exact, so they raise no underflow.
TEST_P(Scores, GiveDenormalsWithoutUnderflow) {
  constexpr int64_t kRows = 40, kColumns = 100;
  for (const std::string& operators : {std::string(kOperators[0]), std::string(kPowers) + "%y = Div %e, %s"}) {
    std::mt19937 random(23);
    auto graph = graph_of(text_of(operators, kRows, kColumns));
    GuardedGraph runner(GetParam(), {.bounds = false, .small_caches = false});
    runner.tokenize(*graph);
    const Tensor x = scores(kRows, kColumns, random);
    const Tensor y = runner.run(*graph, {Datum(x), Datum(x)}, random)[0];
    EXPECT_EQ(runner.exceptions & FE_UNDERFLOW, 0) << operators;
    GuardedGraph exact(GetParam(), {.contract = false, .bounds = false, .small_caches = false});
    exact.run(*graph, {Datum(x), Datum(x)}, random);
    EXPECT_NE(exact.exceptions & FE_UNDERFLOW, 0) << "operators one by one";
    int64_t denormals = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      double greatest = -INFINITY, sum = 0;
      for (int64_t i = row * kColumns; i < (row + 1) * kColumns; ++i) greatest = std::max(greatest, x.double_at(i));
      for (int64_t i = row * kColumns; i < (row + 1) * kColumns; ++i)
        sum += std::exp(static_cast<double>(static_cast<float>(x.double_at(i) - greatest)));
      for (int64_t i = row * kColumns; i < (row + 1) * kColumns; ++i) {
        const double wanted = std::exp(static_cast<double>(static_cast<float>(x.double_at(i) - greatest))) / sum;
        if (wanted >= 0x1p-126) continue;
        denormals += wanted > 0x1p-149;
        // One unit in the last place, and the errors of power, sum and quotient, at most four units of 2^-24.
        ASSERT_LE(std::abs(y.double_at(i) - wanted), 0x1p-149 + wanted * 0x1p-22)
            << operators << ", row " << row << ", seed 23";
      }
    }
    EXPECT_GT(denormals, 40);
  }
}

TEST_P(Scores, ThatAreNoNumbersMakeRowsOfNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kColumns = 33;
  for (const float odd : {kInfinity, std::numeric_limits<float>::quiet_NaN(), -kInfinity}) {
    auto graph = graph_of(text_of(kOperators[0], 2, kColumns));
    GuardedGraph runner(GetParam(), {.bounds = false, .small_caches = false});
    runner.tokenize(*graph);
    Tensor x = *Tensor::zeros(kF32, {2, kColumns});
    // A single one, except for -infinity: only a row of these has no finite maximum.
    for (int64_t i = 0; i < kColumns; ++i)
      if (odd == -kInfinity || i == 20) x.set_double(i, odd);
    std::mt19937 random(1);
    const Tensor y = runner.run(*graph, {Datum(x), Datum(x)}, random)[0];
    for (int64_t i = 0; i < kColumns; ++i) {
      EXPECT_TRUE(std::isnan(y.double_at(i))) << odd << ", " << i;
      EXPECT_FLOAT_EQ(static_cast<float>(y.double_at(kColumns + i)), 1.0f / kColumns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Scores, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
