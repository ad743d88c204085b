#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>
#include <support_lib/shredding_parallel.hpp>

namespace tenon {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}
template <class T>
void expect_pairs(Name op, const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& expected,
                  const Attributes& attributes = {}) {
  const Comparison same = compare(evaluated(op, {row(a), row(b)}, attributes), row(expected), {0, 0});
  EXPECT_TRUE(same.equal) << op.view() << ": " << same.difference;
}
template <class T>
void expect_each(Name op, const std::vector<T>& x, const std::vector<T>& expected) {
  const Comparison same = compare(evaluated(op, {row(x)}), row(expected), {0, 0});
  EXPECT_TRUE(same.equal) << op.view() << ": " << same.difference;
}

TEST(Arithmetic, IntegersWrapAround) {
  expect_pairs<int32_t>("Add", {INT32_MAX, -1}, {1, 1}, {INT32_MIN, 0});
  expect_pairs<int8_t>("Sub", {-128, 5}, {1, 7}, {127, -2});
  expect_pairs<uint8_t>("Sub", {0}, {1}, {255});
  expect_pairs<int64_t>("Mul", {INT64_MAX}, {3}, {INT64_MAX - 2});
  expect_pairs<uint16_t>("Mul", {256}, {257}, {256});
  expect_each<int8_t>("Neg", {-128, 5, 0}, {-128, -5, 0});
  expect_each<int16_t>("Abs", {-32768, -5, 5}, {-32768, 5, 5});
  expect_each<uint64_t>("Neg", {1}, {UINT64_MAX});
}

TEST(Arithmetic, EveryElementType) {
  for (const ElementType element :
       {kF64, kF32, kF16, kBF16, kF8E4M3FN, kF8E5M2, kI64, kI32, kI16, kI8, kI4, kU64, kU32, kU16, kU8, kU4,
        ElementType(ElementKind::sint, 13), ElementType(ElementKind::uint, 40)}) {
    SCOPED_TRACE(element.to_string());
    Tensor a = *Tensor::zeros(element, {3}), b = *Tensor::zeros(element, {});
    for (int i = 0; i < 3; ++i) a.set_int(i, i + 2);
    b.set_int(0, 2);
    const auto expect = [&](Name op, const std::vector<double>& values) {
      const Tensor y = evaluated(op, {a, b});
      ASSERT_EQ(y.element(), element);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(y.double_at(i), values[static_cast<size_t>(i)]) << op.view() << " " << i;
    };
    expect("Add", {4, 5, 6});
    expect("Sub", {0, 1, 2});
    expect("Max", {2, 3, 4});
    expect("Min", {2, 2, 2});
    expect("Mod", {0, 1, 0});
    expect("Div", element.is_float() ? std::vector<double>{1, 1.5, 2} : std::vector<double>{1, 1, 2});
  }
}

TEST(Arithmetic, IntegerDivisionTruncatesAndSurvivesZero) {
  expect_pairs<int32_t>("Div", {7, -7, 7, -7, 5, INT32_MIN}, {2, 2, -2, -2, 0, -1}, {3, -3, -3, 3, 0, INT32_MIN});
  expect_pairs<int64_t>("Div", {INT64_MIN, 1}, {-1, 0}, {INT64_MIN, 0});
  expect_pairs<uint8_t>("Div", {255, 9}, {2, 0}, {127, 0});
  expect_pairs<float>("Div", {1, -1, 0, 6}, {0, 0, 0, 4}, {kInf, -kInf, kNaN, 1.5f});
}

TEST(Arithmetic, Remainders) {
  const Attributes c_like{{"fmod", 1}};
  expect_pairs<int32_t>("Mod", {7, -7, 7, -7, 6, 5, INT32_MIN}, {3, 3, -3, -3, -3, 0, -1}, {1, 2, -2, -1, 0, 0, 0});
  expect_pairs<int32_t>("Mod", {7, -7, 7, -7, 5, INT32_MIN}, {3, 3, -3, -3, 0, -1}, {1, -1, 1, -1, 0, 0}, c_like);
  expect_pairs<float>("Mod", {5.5f, -5.5f, 5.5f, 1}, {2, 2, -2, 0}, {1.5f, 0.5f, -0.5f, kNaN});
  expect_pairs<float>("Mod", {5.5f, -5.5f, 5.5f, 1}, {2, 2, -2, 0}, {1.5f, -1.5f, 1.5f, kNaN}, c_like);
  expect_pairs<uint64_t>("Mod", {UINT64_MAX}, {10}, {5});
}

TEST(Arithmetic, Powers) {
  expect_pairs<float>("Pow", {2, 9, 0, -2, 3}, {10, 0.5f, 0, 3, 2}, {1024, 3, 1, -8, 9});
  expect_pairs<int32_t>("Pow", {3, -2, 2, -1, 1, 0, 0}, {4, 3, -1, -3, -9, -1, 0}, {81, -8, 0, -1, 1, 0, 1});
  expect_pairs<int64_t>("Pow", {3}, {39}, {4052555153018976267});
  EXPECT_TRUE(evaluated("Pow", {row<int32_t>({4, 2}), row<float>({0.5f, 1.6f})}).identical(row<int32_t>({2, 3})));
  EXPECT_TRUE(evaluated("Pow", {row<float>({4, 0.5f}), row<int64_t>({2, -1})}).identical(row<float>({16, 2})));
  EXPECT_TRUE(evaluated("Pow", {row<uint8_t>({3}), row<uint64_t>({6})}).identical(row<uint8_t>({217})));
}

TEST(Arithmetic, Bits) {
  expect_pairs<uint8_t>("BitwiseAnd", {0b1100}, {0b1010}, {0b1000});
  expect_pairs<int64_t>("BitwiseOr", {-16}, {5}, {-11});
  expect_pairs<uint32_t>("BitwiseXor", {0xffffffff}, {1}, {0xfffffffe});
  expect_each<uint8_t>("BitwiseNot", {0, 0x0f}, {255, 0xf0});
  expect_each<int32_t>("BitwiseNot", {0, -1}, {-1, 0});
  expect_pairs<uint8_t>("BitShift", {1, 255, 255, 255}, {3, 1, 8, 200}, {8, 254, 0, 0}, {{"direction", "LEFT"}});
  expect_pairs<uint64_t>("BitShift", {256, UINT64_MAX, 1}, {4, 63, 64}, {16, 1, 0}, {{"direction", "RIGHT"}});
}

TEST(Arithmetic, FloatCorners) {
  EXPECT_TRUE(std::signbit(evaluated("Neg", {Tensor::scalar(0.0f)}).as<float>()[0]));
  expect_each<float>("Sign", {-3, 0, 2, kNaN, -kInf}, {-1, 0, 1, kNaN, -1});
  expect_each<float>("Round", {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e20f, kNaN}, {0, 2, 2, -0.0f, -2, 1e20f, kNaN});
  expect_each<float>("Ceil", {0.1f, -0.1f, 2}, {1, 0, 2});
  expect_each<float>("Floor", {0.1f, -0.1f, 2}, {0, -1, 2});
  expect_each<float>("Reciprocal", {4, 0, -kInf}, {0.25f, kInf, 0});
  expect_each<float>("Sqrt", {4, 2, -1, 0}, {2, 1.41421356f, kNaN, 0});
  expect_each<float>("Exp", {0, 1, 200, -kInf}, {1, 2.71828183f, kInf, 0});
  expect_each<float>("Log", {1, 0, -1, kInf}, {0, -kInf, kNaN, kInf});
}

TEST(Arithmetic, ManyOperands) {
  const Tensor a = row<float>({1, kNaN, 3}), b = row<float>({2, 0, kNaN}), c = Tensor::scalar(1.5f);
  EXPECT_TRUE(compare(evaluated("Max", {a, b, c}), row<float>({2, kNaN, kNaN}), {0, 0}).equal);
  EXPECT_TRUE(compare(evaluated("Min", {a, b, c}), row<float>({1, kNaN, kNaN}), {0, 0}).equal);
  EXPECT_TRUE(evaluated("Sum", {row<float>({1, 2}), Tensor::of<float>({2, 1}, {10, 20}), c})
                  .identical(Tensor::of<float>({2, 2}, {12.5f, 13.5f, 22.5f, 23.5f})));
  EXPECT_TRUE(
      evaluated("Mean", {row<float>({1, 2}), row<float>({2, 4}), Tensor::scalar(6.f)}).identical(row<float>({3, 4})));
  EXPECT_TRUE(evaluated("Max", {row<int8_t>({-3})}).identical(row<int8_t>({-3})));
  // Rounded once: added one after another in f32 the ones would be lost.
  EXPECT_TRUE(evaluated("Sum", {Tensor::scalar(1e8f), Tensor::scalar(1.f), Tensor::scalar(-1e8f)})
                  .identical(Tensor::scalar(1.f)));
}

TEST(Arithmetic, BroadcastsInAnyPieces) {
  std::mt19937 random(30);
  ShreddingParallel parallel(5);
  for (const auto& [da, db] : std::vector<std::pair<Dims, Dims>>{
           {{2, 3, 4}, {3, 1}}, {{1, 5}, {4, 1}}, {{}, {7}}, {{2, 1, 3}, {1, 4, 1}}, {{0, 3}, {3}}, {{}, {}}}) {
    const Tensor a = random_tensor(random, kF32, da), b = random_tensor(random, kF32, db);
    const auto made = evaluate("Sub", {a, b}, {}, 1, parallel);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    const Tensor& y = (*made)[0].tensor();
    ASSERT_EQ(y.dims(), *broadcast(da, db));
    const Dims strides = row_major_strides(y.dims());
    const auto at = [&](const Tensor& x, int64_t i) {
      int64_t offset = 0;
      for (size_t d = 0; d < x.dims().size(); ++d) {
        const size_t of_y = y.dims().size() - x.dims().size() + d;
        offset = offset * x.dim(d) + (x.dim(d) == 1 ? 0 : i / strides[of_y] % y.dim(of_y));
      }
      return x.as<float>()[static_cast<size_t>(offset)];
    };
    for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.as<float>()[static_cast<size_t>(i)], at(a, i) - at(b, i)) << i;
  }
}

}  // namespace
}  // namespace tenon
