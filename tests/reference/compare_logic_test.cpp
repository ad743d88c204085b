#include <gtest/gtest.h>

#include <limits>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor bools(const std::vector<bool>& values) {
  return Tensor::of<bool>({static_cast<int64_t>(values.size())}, values);
}
template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

TEST(CompareLogic, Numbers) {
  const Tensor a = row<double>({1, 2, 3, kNaN, -kInf}), b = row<double>({2, 2, 2, kNaN, kInf});
  EXPECT_TRUE(evaluated("Less", {a, b}).identical(bools({1, 0, 0, 0, 1})));
  EXPECT_TRUE(evaluated("LessOrEqual", {a, b}).identical(bools({1, 1, 0, 0, 1})));
  EXPECT_TRUE(evaluated("Greater", {a, b}).identical(bools({0, 0, 1, 0, 0})));
  EXPECT_TRUE(evaluated("GreaterOrEqual", {a, b}).identical(bools({0, 1, 1, 0, 0})));
  EXPECT_TRUE(evaluated("Equal", {a, b}).identical(bools({0, 1, 0, 0, 0})));
  // 2^53 and 2^53 + 1 are one f64.
  EXPECT_TRUE(
      evaluated("Equal", {row<int64_t>({9007199254740992}), row<int64_t>({9007199254740993})}).identical(bools({0})));
  EXPECT_TRUE(evaluated("Less", {row<uint64_t>({1}), row<uint64_t>({UINT64_MAX})}).identical(bools({1})));
  // Bits 8 to 15 are the negative numbers of i4.
  const Tensor below = evaluated("Less", {iota(kI4, {16}), *Tensor::zeros(kI4, {})});
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(below.int_at(i), i >= 8) << i;
}

TEST(CompareLogic, EqualOfEveryType) {
  for (const ElementType element : kSampleTypes) {
    SCOPED_TRACE(element.to_string());
    const Tensor x = iota(element, {2, 2});
    EXPECT_TRUE(evaluated("Equal", {x, x}).identical(Tensor::of<bool>({2, 2}, {true, true, true, true})));
  }
  EXPECT_TRUE(evaluated("Equal", {row<std::string>({"a", "b"}), Tensor::of<std::string>({2, 1}, {"b", "c"})})
                  .identical(Tensor::of<bool>({2, 2}, {false, true, false, false})));
  EXPECT_TRUE(evaluated("Equal", {bools({0, 1}), bools({1, 1})}).identical(bools({0, 1})));
}

TEST(CompareLogic, TruthTables) {
  const Tensor a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  EXPECT_TRUE(evaluated("And", {a, b}).identical(bools({0, 0, 0, 1})));
  EXPECT_TRUE(evaluated("Or", {a, b}).identical(bools({0, 1, 1, 1})));
  EXPECT_TRUE(evaluated("Xor", {a, b}).identical(bools({0, 1, 1, 0})));
  EXPECT_TRUE(evaluated("Not", {a}).identical(bools({1, 1, 0, 0})));
  EXPECT_TRUE(evaluated("And", {Tensor::of<bool>({2, 1}, {false, true}), bools({0, 1})})
                  .identical(Tensor::of<bool>({2, 2}, {false, false, false, true})));
}

TEST(CompareLogic, NotANumberAndInfinity) {
  const Tensor x = row<double>({1, kNaN, kInf, -kInf});
  EXPECT_TRUE(evaluated("IsNaN", {x}).identical(bools({0, 1, 0, 0})));
  EXPECT_TRUE(evaluated("IsInf", {x}).identical(bools({0, 0, 1, 1})));
  EXPECT_TRUE(evaluated("IsInf", {x}, {{"detect_positive", 0}}).identical(bools({0, 0, 0, 1})));
  EXPECT_TRUE(evaluated("IsInf", {x}, {{"detect_negative", 0}}).identical(bools({0, 0, 1, 0})));
  const Tensor narrow = *convert(x, kF8E5M2, {.saturate = false});
  EXPECT_TRUE(evaluated("IsNaN", {narrow}).identical(bools({0, 1, 0, 0})));
  EXPECT_TRUE(evaluated("IsInf", {narrow}).identical(bools({0, 0, 1, 1})));
}

TEST(CompareLogic, WhereMovesEveryType) {
  for (const ElementType element : kSampleTypes) {
    SCOPED_TRACE(element.to_string());
    const Tensor x = iota(element, {2, 3}), y = iota(element, {1});
    const Tensor out = evaluated("Where", {bools({1, 0, 1}), x, y});
    ASSERT_EQ(out.dims(), (Dims{2, 3}));
    for (int64_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(element_text(out, i), i % 3 == 1 ? element_text(y, 0) : element_text(x, i)) << i;
    }
  }
  EXPECT_EQ(evaluated("Where", {*Tensor::zeros(kBool, {0}), Tensor::scalar(1.f), Tensor::scalar(2.f)}).dims(),
            (Dims{0}));
}

}  // namespace
}  // namespace tenon
