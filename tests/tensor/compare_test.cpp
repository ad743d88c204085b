#include <tenon/tensor/compare.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

using testing::HasSubstr;
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

TEST(Compare, ToleranceGrowsWithTheExpected) {
  const Tolerance tolerance{.rtol = 0.1, .atol = 1};
  EXPECT_TRUE(compare(row<double>({111}), row<double>({100}), tolerance).equal);  // 11 <= 1 + 10
  EXPECT_FALSE(compare(row<double>({111.5}), row<double>({100}), tolerance).equal);
  EXPECT_TRUE(compare(row<double>({100}), row<double>({112}), tolerance).equal);  // 12 <= 1 + 11.2: not symmetric
  EXPECT_FALSE(compare(row<double>({112}), row<double>({100}), tolerance).equal);
}

TEST(Compare, NanAndInfinity) {
  const float nan = std::nanf("");
  EXPECT_TRUE(compare(row<float>({nan, kInf, -kInf}), row<float>({nan, kInf, -kInf})).equal);
  const std::pair<float, float> different[] = {{nan, 1},      {1, nan},  {kInf, -kInf},
                                               {kInf, 1e38f}, {1, kInf}, {nan, kInf}};
  for (const auto& [got, expected] : different) {
    const auto result = compare(row<float>({got}), row<float>({expected}), {.rtol = 1, .atol = 1e38});
    EXPECT_FALSE(result.equal) << got << " " << expected;
    EXPECT_EQ(result.mismatches, 1);
    EXPECT_EQ(result.max_abs, 0);  // only finite elements
  }
}

TEST(Compare, WorstElementAndItsPlace) {
  auto got = *Tensor::zeros(kF32, {2, 3, 4}), expected = *got.clone();
  for (auto& value : expected.mutable_as<float>()) value = 1;
  for (auto& value : got.mutable_as<float>()) value = 1;
  got.set_double(3, 1.25);
  got.set_double(17, 0.25);
  got.set_double(20, 1.5);
  const auto result = compare(got, expected);
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.mismatches, 3);
  EXPECT_EQ(result.max_abs, 0.75);
  EXPECT_EQ(result.relative_max, 0.75);
  EXPECT_EQ(result.difference,
            "element [1,1,1]: 0.25 against 1, |difference| 0.75 > 0.0010001; 3 of 24 elements differ");
}

TEST(Compare, WorstIsByTheLimitNotTheSize) {
  const auto result = compare(row<double>({1010, 0.5}), row<double>({1000, 0.25}));
  EXPECT_THAT(result.difference, HasSubstr("element [1]: 0.5 against 0.25"));
  EXPECT_EQ(result.max_abs, 10);
  EXPECT_EQ(result.relative_max, 0.01);
}

TEST(Compare, FiguresOfEqualResults) {
  const auto result = compare(row<double>({1.0005, 4}), row<double>({1, 4}));
  EXPECT_TRUE(result.equal);
  EXPECT_EQ(result.difference, "");
  EXPECT_NEAR(result.max_abs, 5e-4, 1e-12);
  EXPECT_NEAR(result.relative_max, 1.25e-4, 1e-12);
  EXPECT_EQ(compare(row<double>({1e-8}), row<double>({0})).relative_max, kInf);
}

TEST(Compare, IntegersAreExact) {
  const Tolerance exact{.rtol = 0, .atol = 0};
  const int64_t large = (int64_t{1} << 62) + 1;
  EXPECT_FALSE(compare(row<int64_t>({large}), row<int64_t>({large - 1}), exact).equal);  // equal as doubles
  EXPECT_FALSE(compare(row<uint64_t>({UINT64_MAX}), row<uint64_t>({UINT64_MAX - 1}), exact).equal);
  EXPECT_EQ(compare(row<int64_t>({INT64_MIN}), row<int64_t>({INT64_MAX})).max_abs, 0x1p64);
  EXPECT_TRUE(compare(row<int32_t>({1001}), row<int32_t>({1000})).equal);  // within rtol, as numpy has it
  EXPECT_FALSE(compare(row<int32_t>({101}), row<int32_t>({100})).equal);
  EXPECT_FALSE(compare(row<bool>({true}), row<bool>({false})).equal);
  EXPECT_TRUE(compare(row<bool>({true}), row<bool>({true})).equal);
}

TEST(Compare, PackedAndNarrowTypes) {
  for (const ElementType element : {kI4, kU2, kF4E2M1, kF8E4M3FN, kF16, kBF16, ElementType(ElementKind::sint, 13)}) {
    const Tensor expected = *Tensor::zeros(element, {300});
    Tensor got = *expected.clone();
    EXPECT_TRUE(compare(got, expected).equal);
    got.set_int(299, 1);
    EXPECT_THAT(compare(got, expected).difference, HasSubstr("element [299]: 1 against 0")) << element.to_string();
  }
}

TEST(Compare, ComplexAndStrings) {
  using C = std::complex<float>;
  EXPECT_TRUE(compare(row<C>({{1, 2}}), row<C>({{1, 2.001f}})).equal);
  EXPECT_THAT(compare(row<C>({{1, 2}}), row<C>({{1, 3}})).difference,
              HasSubstr("(1,2) against (1,3), |difference| 1 >"));
  EXPECT_TRUE(compare(row<std::string>({"a", "b"}), row<std::string>({"a", "b"})).equal);
  EXPECT_EQ(compare(row<std::string>({"a", "x"}), row<std::string>({"a", "b"})).difference,
            "element [1]: \"x\" against \"b\"; 1 of 2 elements differ");
}

TEST(Compare, TypesAndShapesFirst) {
  EXPECT_EQ(compare(row<float>({1}), row<double>({1})).difference, "element type f32 against f64");
  EXPECT_EQ(compare(row<float>({1}), Tensor::scalar<float>(1)).difference, "shape [1] against []");
  EXPECT_TRUE(compare(*Tensor::zeros(kF32, {0, 3}), *Tensor::zeros(kF32, {0, 3})).equal);
  EXPECT_THAT(compare(Tensor::scalar<float>(1), Tensor::scalar<float>(2)).difference,
              testing::AllOf(HasSubstr("element []: 1 against 2"), HasSubstr("1 of 1 element differs")));
}

TEST(Compare, Data) {
  const Type type(kF32, Shape());
  const Datum one(Tensor::scalar<float>(1)), two(Tensor::scalar<float>(2)), absent;
  const auto sequence = [&](std::vector<Datum> elements) { return Datum::sequence(std::move(elements), type); };
  EXPECT_TRUE(compare(absent, absent).equal);
  EXPECT_TRUE(compare(sequence({one, two}), sequence({one, two})).equal);
  EXPECT_TRUE(compare(sequence({}), sequence({})).equal);
  EXPECT_EQ(compare(absent, one).difference, "nothing against a tensor");
  EXPECT_EQ(compare(one, sequence({one})).difference, "a tensor against a sequence");
  EXPECT_EQ(compare(sequence({one}), sequence({one, two})).difference, "a sequence of 1 elements against one of 2");
  const auto result = compare(sequence({one, one}), sequence({one, two}));
  EXPECT_THAT(result.difference, HasSubstr("sequence element 1: element []: 1 against 2"));
  EXPECT_EQ(result.max_abs, 1);
}

TEST(UlpDistance, CountsSteps) {
  EXPECT_EQ(ulp_distance(kF32, 1, 1), 0);
  EXPECT_EQ(ulp_distance(kF32, 1, std::nextafter(1.f, 2.f)), 1);
  EXPECT_EQ(ulp_distance(kF32, std::nextafter(2.f, 0.f), std::nextafter(2.f, 3.f)), 2);
  EXPECT_EQ(ulp_distance(kF64, 1, std::nextafter(1., 0.)), 1);
  EXPECT_EQ(ulp_distance(kF16, 1, 1 + 0x1p-10), 1);
  EXPECT_EQ(ulp_distance(kBF16, 1, 1 + 0x1p-7), 1);
  EXPECT_EQ(ulp_distance(kF32, 0., -0.), 0);
  EXPECT_EQ(ulp_distance(kF32, 0x1p-149, -0x1p-149), 2);
  EXPECT_EQ(ulp_distance(kF32, std::numeric_limits<float>::max(), kInf), 1);
  EXPECT_EQ(ulp_distance(kF32, NAN, NAN), 0);
  EXPECT_EQ(ulp_distance(kF32, NAN, 1), INT64_MAX);
  EXPECT_EQ(ulp_distance(kF64, 1, NAN), INT64_MAX);
  EXPECT_EQ(ulp_distance(kF64, kInf, -kInf), INT64_MAX);
}

}  // namespace
}  // namespace tenon
