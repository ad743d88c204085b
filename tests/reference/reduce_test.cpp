#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}
template <class T>
T folded(Name op, const std::vector<T>& values) {
  return evaluated(op, {row(values)}, {{"keepdims", 0}}).template as<T>()[0];
}

using Fold = std::function<double(const std::vector<double>&)>;
double sum(const std::vector<double>& x, const std::function<double(double)>& f) {
  double total = 0;
  for (const double v : x) total += f(v);
  return total;
}
struct Reducer {
  const char* op;
  Fold fold;
};
const std::vector<Reducer> kReducers = {
    {"ReduceSum", [](auto& x) { return sum(x, [](double v) { return v; }); }},
    {"ReduceMean", [](auto& x) { return sum(x, [](double v) { return v; }) / static_cast<double>(x.size()); }},
    {"ReduceMax", [](auto& x) { return *std::max_element(x.begin(), x.end()); }},
    {"ReduceMin", [](auto& x) { return *std::min_element(x.begin(), x.end()); }},
    {"ReduceL1", [](auto& x) { return sum(x, [](double v) { return std::fabs(v); }); }},
    {"ReduceL2", [](auto& x) { return std::sqrt(sum(x, [](double v) { return v * v; })); }},
    {"ReduceSumSquare", [](auto& x) { return sum(x, [](double v) { return v * v; }); }},
    {"ReduceLogSum", [](auto& x) { return std::log(sum(x, [](double v) { return v; })); }},
    {"ReduceLogSumExp", [](auto& x) { return std::log(sum(x, [](double v) { return std::exp(v); })); }},
    {"ReduceProd",
     [](auto& x) {
       double product = 1;
       for (const double v : x) product *= v;
       return product;
     }},
};

TEST(Reduce, OverEverySetOfAxes) {
  std::mt19937 random(60);
  const Dims dims{3, 4, 5};
  const Tensor x = random_tensor(random, kF32, dims);
  for (const Reducer& reducer : kReducers) {
    for (int mask = 1; mask < 8; ++mask) {
      std::vector<int64_t> axes;
      Dims kept, left;
      for (int d = 0; d < 3; ++d) {
        const bool folds = (mask >> d & 1) != 0;
        if (folds) axes.push_back(d - 3 * (mask % 2));  // negative in half of the cases
        if (!folds) left.push_back(dims[static_cast<size_t>(d)]);
        kept.push_back(folds ? 1 : dims[static_cast<size_t>(d)]);
      }
      std::vector<std::vector<double>> groups(static_cast<size_t>(*element_count(kept)));
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t index[] = {i / 20, i / 5 % 4, i % 5};
        int64_t at = 0;
        for (size_t d = 0; d < 3; ++d) at = at * kept[d] + (kept[d] == 1 ? 0 : index[d]);
        groups[static_cast<size_t>(at)].push_back(x.double_at(i));
      }
      const Tensor y = evaluated(reducer.op, {x, ints(axes)});
      ASSERT_EQ(y.dims(), kept) << reducer.op;
      for (size_t i = 0; i < groups.size(); ++i) {
        // f64 sums in another order, then one rounding.
        EXPECT_LE(ulp_distance(kF32, y.as<float>()[i], static_cast<float>(reducer.fold(groups[i]))), 1)
            << reducer.op << " mask " << mask << " element " << i;
      }
      EXPECT_TRUE(evaluated(reducer.op, {x, ints(axes)}, {{"keepdims", 0}}).identical(*y.reshaped(left)));
    }
  }
}

TEST(Reduce, OverNothing) {
  const Tensor empty = *Tensor::zeros(kF32, {2, 0});
  const auto of_nothing = [&](Name op) { return evaluated(op, {empty, ints({1})}); };
  const auto both = [](float v) { return Tensor::of<float>({2, 1}, {v, v}); };
  EXPECT_TRUE(of_nothing("ReduceSum").identical(both(0)));
  EXPECT_TRUE(of_nothing("ReduceL1").identical(both(0)));
  EXPECT_TRUE(of_nothing("ReduceL2").identical(both(0)));
  EXPECT_TRUE(of_nothing("ReduceSumSquare").identical(both(0)));
  EXPECT_TRUE(of_nothing("ReduceProd").identical(both(1)));
  EXPECT_TRUE(of_nothing("ReduceMax").identical(both(-kInf)));
  EXPECT_TRUE(of_nothing("ReduceMin").identical(both(kInf)));
  EXPECT_TRUE(of_nothing("ReduceLogSum").identical(both(-kInf)));
  EXPECT_TRUE(of_nothing("ReduceLogSumExp").identical(both(-kInf)));
  EXPECT_TRUE(std::isnan(of_nothing("ReduceMean").as<float>()[0]));
  EXPECT_EQ(evaluated("ReduceSum", {empty, ints({0})}).dims(), (Dims{1, 0}));

  const auto extremes = [](ElementType element) {
    const Tensor none = *Tensor::zeros(element, {0});
    return std::pair(evaluated("ReduceMax", {none}).int_at(0), evaluated("ReduceMin", {none}).int_at(0));
  };
  EXPECT_EQ(extremes(kI8), std::pair(int64_t{-128}, int64_t{127}));
  EXPECT_EQ(extremes(kI4), std::pair(int64_t{-8}, int64_t{7}));
  EXPECT_EQ(extremes(kU16), std::pair(int64_t{0}, int64_t{65535}));
  EXPECT_EQ(extremes(kI64), std::pair(INT64_MIN, INT64_MAX));
  EXPECT_EQ(extremes(kBool), std::pair(int64_t{0}, int64_t{1}));
}

TEST(Reduce, OverAnEmptyListOfAxes) {
  const Tensor x = row<float>({-3, 4});
  EXPECT_TRUE(evaluated("ReduceSum", {x, ints({})}).identical(row<float>({1})));
  EXPECT_TRUE(evaluated("ReduceSum", {x, ints({})}, {{"noop_with_empty_axes", 1}}).identical(x));
  EXPECT_TRUE(evaluated("ReduceSumSquare", {x}, {{"noop_with_empty_axes", 1}}).identical(row<float>({9, 16})));
  EXPECT_TRUE(evaluated("ReduceSum", {Tensor::scalar(2.f)}).identical(Tensor::scalar(2.f)));
}

TEST(Reduce, IntegersAndBooleans) {
  EXPECT_EQ(folded<int32_t>("ReduceSum", {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(folded<uint8_t>("ReduceProd", {16, 17}), 16);
  EXPECT_EQ(folded<int8_t>("ReduceL1", {-128, 1}), -127);
  EXPECT_EQ(folded<int32_t>("ReduceMean", {-3, -4}), -3);
  EXPECT_EQ(folded<uint64_t>("ReduceMax", {1, UINT64_MAX}), UINT64_MAX);
  EXPECT_EQ(folded<int64_t>("ReduceMin", {INT64_MIN, 0}), INT64_MIN);
  EXPECT_EQ(folded<int32_t>("ReduceL2", {3, 4, 1}), 5);
  EXPECT_TRUE(evaluated("ReduceMax", {Tensor::of<bool>({2}, {false, true})}).identical(Tensor::of<bool>({1}, {true})));
  EXPECT_TRUE(evaluated("ReduceMin", {Tensor::of<bool>({2}, {false, true})}).identical(Tensor::of<bool>({1}, {false})));
}

TEST(Reduce, FloatCorners) {
  EXPECT_EQ(folded<float>("ReduceSum", {1e8f, 1, -1e8f}), 1);  // kept in f64
  EXPECT_EQ(folded<float>("ReduceLogSumExp", {1000, 1000}), static_cast<float>(1000 + std::log(2)));
  EXPECT_EQ(folded<float>("ReduceLogSumExp", {-kInf, -kInf}), -kInf);
  EXPECT_EQ(folded<float>("ReduceLogSumExp", {kInf, 1, kInf}), kInf);
  EXPECT_EQ(folded<float>("ReduceLogSumExp", {-kInf, 2}), 2);
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceSum"}) {
    EXPECT_TRUE(std::isnan(folded<float>(op, {1, kNaN, 2}))) << op;
  }
}

TEST(Reduce, PositionsOfExtremes) {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 3, 3, 0, 5, kNaN, 9, kNaN});
  const Attributes rows{{"axis", -1}, {"keepdims", 0}};
  const Attributes last{{"axis", 1}, {"keepdims", 0}, {"select_last_index", 1}};
  EXPECT_TRUE(evaluated("ArgMax", {x}, rows).identical(ints({1, 1})));
  EXPECT_TRUE(evaluated("ArgMax", {x}, last).identical(ints({2, 3})));
  EXPECT_TRUE(evaluated("ArgMin", {x}, rows).identical(ints({3, 1})));
  EXPECT_TRUE(evaluated("ArgMin", {x}, last).identical(ints({3, 3})));
  EXPECT_TRUE(evaluated("ArgMax", {Tensor::of<uint64_t>({2, 2}, {1, 7, UINT64_MAX, 7})})
                  .identical(Tensor::of<int64_t>({1, 2}, {1, 0})));
  EXPECT_THAT(error_of("ArgMax", {*Tensor::zeros(kF32, {0, 2})}), HasSubstr("is empty"));
  EXPECT_EQ(evaluated("ArgMax", {*Tensor::zeros(kF32, {3, 0})}).dims(), (Dims{1, 0}));
}

TEST(Reduce, RunningSumsAndProducts) {
  const Tensor x = row<int8_t>({2, 3, 100}), axis = Tensor::scalar<int32_t>(0);
  const auto scan = [&](Name op, int exclusive, int reverse) {
    return evaluated(op, {x, axis}, {{"exclusive", exclusive}, {"reverse", reverse}}).to_ints();
  };
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(scan("CumSum", 0, 0), (Ints{2, 5, 105}));
  EXPECT_EQ(scan("CumSum", 1, 0), (Ints{0, 2, 5}));
  EXPECT_EQ(scan("CumSum", 0, 1), (Ints{105, 103, 100}));
  EXPECT_EQ(scan("CumSum", 1, 1), (Ints{103, 100, 0}));
  EXPECT_EQ(scan("CumProd", 0, 0), (Ints{2, 6, 88}));  // 600 in 8 bits
  EXPECT_EQ(scan("CumProd", 1, 1), (Ints{44, 100, 1}));
  EXPECT_TRUE(evaluated("CumSum", {Tensor::of<float>({2, 2}, {1, 2, 3, 4}), Tensor::scalar<int64_t>(-2)})
                  .identical(Tensor::of<float>({2, 2}, {1, 2, 4, 6})));
  EXPECT_EQ(evaluated("CumSum", {*Tensor::zeros(kF32, {2, 0}), Tensor::scalar<int64_t>(1)}).dims(), (Dims{2, 0}));
}

// Line by line, element by element; columns are as wide as the lines processed together, and wider.
TEST(Reduce, RunningSumsAlongEveryAxis) {
  constexpr unsigned kSeed = 20261124;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    Dims dims;
    for (int64_t d = pick(random, 1, 3); d > 0; --d) dims.push_back(pick(random, 0, 5));
    if (pick(random, 0, 1)) dims.back() = pick(random, 250, 530);
    const auto axis = static_cast<size_t>(pick(random, 0, static_cast<int64_t>(dims.size()) - 1));
    const bool exclusive = pick(random, 0, 1), reverse = pick(random, 0, 1);
    for (const ElementType element : {kF64, kF32, kF16, kBF16, kF8E5M2, kI4, kI8, kU8, kI32, kU32, kI64, kU64}) {
      const Tensor x = random_tensor(random, element, dims, element.is_unsigned_int() ? 0 : -90, 90);
      Tensor expected = *Tensor::zeros(element, dims);
      const int64_t inner = row_major_strides(dims)[axis];
      for (int64_t i = 0; i < x.size(); ++i) {
        double sum = 0;
        int64_t whole = 0;
        const int64_t place = i / inner % dims[axis];
        for (int64_t k = 0; k < dims[axis]; ++k) {
          if (reverse ? k < place : k > place) continue;
          if (exclusive && k == place) continue;
          const int64_t at = i + (k - place) * inner;
          element.is_float() ? void(sum += x.double_at(at)) : void(whole += x.int_at(at));
        }
        element.is_float() ? expected.set_double(i, sum) : expected.set_int(i, whole);
      }
      ASSERT_TRUE(evaluated("CumSum", {x, Tensor::scalar<int64_t>(static_cast<int64_t>(axis))},
                            {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}})
                      .identical(expected))
          << element.to_string() << str(dims) << " along " << axis << ", round " << round << ", seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace tenon
