#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;

Tensor einsum(const char* equation, std::vector<Datum> operands) {
  return evaluated("Einsum", std::move(operands), {{"equation", equation}});
}

TEST(MatMul, BroadcastsLeadingAxes) {
  std::mt19937 random(7);
  const Tensor a = random_tensor(random, kF32, {2, 1, 3, 4}), b = random_tensor(random, kF32, {5, 4, 2});
  const Tensor y = evaluated("MatMul", {a, b});
  ASSERT_EQ(y.dims(), (Dims{2, 5, 3, 2}));
  for (int64_t e = 0; e < y.size(); ++e) {
    const int64_t j = e % 2, i = e / 2 % 3, t = e / 6 % 5, s = e / 30;
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) sum += a.double_at((s * 3 + i) * 4 + k) * b.double_at((t * 4 + k) * 2 + j);
    EXPECT_EQ(y.double_at(e), sum) << e;  // multiples of 2^-12 below 16: exact in f32
  }
}

TEST(MatMul, VectorsAndEmptyMatrices) {
  const Tensor v = Tensor::of<float>({2}, {3, 4}), m = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(evaluated("MatMul", {v, v}).identical(Tensor::scalar(25.f)));
  EXPECT_TRUE(evaluated("MatMul", {v, m}).identical(Tensor::of<float>({2}, {15, 22})));
  EXPECT_TRUE(evaluated("MatMul", {m, v}).identical(Tensor::of<float>({2}, {11, 25})));
  EXPECT_TRUE(evaluated("MatMul", {*Tensor::zeros(kF32, {2, 0}), *Tensor::zeros(kF32, {0, 2})})
                  .identical(*Tensor::zeros(kF32, {2, 2})));
  EXPECT_EQ(evaluated("MatMul", {*Tensor::zeros(kF32, {0, 3, 2}), m}).dims(), (Dims{0, 3, 2}));
}

TEST(MatMul, EveryTypeInItsArithmetic) {
  for (const ElementType element : {kF64, kF16, kBF16, kF8E4M3FN, kI64, kI32, kI16, kI8, kU64, kU32, kU8, kI4}) {
    Tensor a = *Tensor::zeros(element, {1, 2}), b = *Tensor::zeros(element, {2, 1});
    for (int i = 0; i < 2; ++i) a.set_int(i, i + 1), b.set_int(i, i + 1);
    EXPECT_EQ(evaluated("MatMul", {a, b}).double_at(0), 5) << element.to_string();
  }
  // Wraps as two's complement: 2^31 - 1 times 2 is -2.
  EXPECT_TRUE(evaluated("MatMul", {Tensor::of<int32_t>({1}, {INT32_MAX}), Tensor::of<int32_t>({1}, {2})})
                  .identical(Tensor::scalar<int32_t>(-2)));
  EXPECT_TRUE(evaluated("MatMul", {Tensor::of<int64_t>({1}, {INT64_MAX}), Tensor::of<int64_t>({1}, {3})})
                  .identical(Tensor::scalar<int64_t>(INT64_MAX - 2)));
}

TEST(MatMul, NaNAndInfinityStayWhereTheyAre) {
  const Tensor a = Tensor::of<float>({5, 2}, {1, INFINITY, 1, 1, 1, 1, NAN, 1, 1, 1}),
               b = Tensor::of<float>({2, 1}, {1, 2});
  const Tensor y = evaluated("MatMul", {a, b});
  EXPECT_EQ(y.double_at(0), INFINITY);
  EXPECT_EQ(y.double_at(1), 3);
  EXPECT_TRUE(std::isnan(y.double_at(3)));
  EXPECT_EQ(y.double_at(4), 3);
}

TEST(Gemm, FactorsTransposesAndAddends) {
  const Tensor a = Tensor::of<float>({2, 1}, {1, 2}), b = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Attributes attributes{{"transA", 1}, {"transB", 1}, {"alpha", 2.0f}, {"beta", 0.5f}};
  EXPECT_TRUE(evaluated("Gemm", {a, b, Tensor::of<float>({3}, {2, 4, 6})}, attributes)
                  .identical(Tensor::of<float>({1, 3}, {11, 24, 37})));
  EXPECT_TRUE(evaluated("Gemm", {a, b}, attributes).identical(Tensor::of<float>({1, 3}, {10, 22, 34})));
  EXPECT_TRUE(evaluated("Gemm", {b, b, Tensor::of<float>({3, 1}, {0, 10, 20})}, {{"transB", 1}})
                  .identical(Tensor::of<float>({3, 3}, {5, 11, 17, 21, 35, 49, 37, 59, 81})));
  EXPECT_TRUE(
      evaluated("Gemm",
                {Tensor::of<int32_t>({1, 1}, {-7}), Tensor::of<int32_t>({1, 1}, {3}), Tensor::scalar<int32_t>(4)},
                {{"alpha", 0.5f}})
          .identical(Tensor::of<int32_t>({1, 1}, {-6})));
  // beta 0 leaves C out, even where it is no number.
  EXPECT_TRUE(evaluated("Gemm", {a, b, Tensor::scalar(NAN)}, {{"transA", 1}, {"transB", 1}, {"beta", 0.0f}})
                  .identical(Tensor::of<float>({1, 3}, {5, 11, 17})));
}

TEST(MatMulInteger, ZeroPointsOfRowsAndColumns) {
  const Tensor a = Tensor::of<uint8_t>({2, 2}, {1, 2, 3, 4}), b = Tensor::of<int8_t>({2, 2}, {-1, 2, -3, 4});
  EXPECT_TRUE(evaluated("MatMulInteger", {a, b}).identical(Tensor::of<int32_t>({2, 2}, {-7, 10, -15, 22})));
  EXPECT_TRUE(evaluated("MatMulInteger", {a, b, Tensor::of<uint8_t>({2}, {1, 3}), Tensor::of<int8_t>({2}, {-1, 2})})
                  .identical(Tensor::of<int32_t>({2, 2}, {-2, 2, -2, 2})));
}

TEST(QLinearMatMul, ScalesOfRowsAndColumns) {
  const Tensor a = Tensor::of<uint8_t>({2, 2}, {1, 2, 3, 4}), b = Tensor::of<uint8_t>({2, 2}, {1, 2, 3, 4}),
               zero = Tensor::scalar<uint8_t>(0);
  const auto run = [&](const Tensor& a_scale, const Tensor& b_scale, uint8_t y_zero) {
    return evaluated("QLinearMatMul",
                     {a, a_scale, zero, b, b_scale, zero, Tensor::scalar(2.f), Tensor::scalar(y_zero)});
  };
  // Products: 7 10 15 22.
  EXPECT_TRUE(run(Tensor::scalar(1.f), Tensor::scalar(1.f), 1).identical(Tensor::of<uint8_t>({2, 2}, {5, 6, 9, 12})));
  EXPECT_TRUE(run(Tensor::of<float>({2}, {1, 10}), Tensor::of<float>({2}, {2, 4}), 0)
                  .identical(Tensor::of<uint8_t>({2, 2}, {7, 20, 150, 255})));
}

TEST(QLinearMatMul, EightBitFloats) {
  const auto narrow = [](Dims dims, std::vector<float> values) {
    return *convert(Tensor::of<float>(std::move(dims), values), kF8E4M3FN);
  };
  const Tensor zero = narrow({}, {0}),
               y = evaluated("QLinearMatMul",
                             {narrow({1, 2}, {1.5, 2}), Tensor::scalar(2.f), zero, narrow({2, 1}, {1, 0.25}),
                              Tensor::scalar(1.f), zero, Tensor::scalar(0.5f), zero});
  EXPECT_EQ(y.element(), kF8E4M3FN);
  EXPECT_EQ(y.double_at(0), 8);
}

TEST(Einsum, KnownForms) {
  const Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), s = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(einsum("ij->ji", {a}).identical(Tensor::of<float>({3, 2}, {1, 4, 2, 5, 3, 6})));
  EXPECT_TRUE(einsum("ba", {a}).identical(Tensor::of<float>({3, 2}, {1, 4, 2, 5, 3, 6})));
  EXPECT_TRUE(einsum("ij->", {a}).identical(Tensor::scalar(21.f)));
  EXPECT_TRUE(einsum("ii", {s}).identical(Tensor::scalar(5.f)));
  EXPECT_TRUE(einsum("ii->i", {s}).identical(Tensor::of<float>({2}, {1, 4})));
  EXPECT_TRUE(einsum("i,j->ij", {Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({2}, {3, 4})})
                  .identical(Tensor::of<float>({2, 2}, {3, 4, 6, 8})));
  EXPECT_TRUE(einsum(" i j , j k ", {s, s}).identical(Tensor::of<float>({2, 2}, {7, 10, 15, 22})));
  EXPECT_TRUE(einsum("...,...->...", {s, Tensor::scalar(2.f)}).identical(Tensor::of<float>({2, 2}, {2, 4, 6, 8})));
  EXPECT_TRUE(einsum("ij,ij->i", {s, Tensor::of<float>({2, 1}, {1, 10})}).identical(Tensor::of<float>({2}, {3, 70})));
}

// Iterates over all values of every label, for random equations of up to three operands.
TEST(Einsum, EqualsTheDefinition) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::string letters = "abcd";
    const std::array<int64_t, 4> extents{2, 3, 1, 4};
    std::string equation, output;
    std::vector<std::string> terms;
    std::vector<Datum> operands;
    for (int64_t i = pick(random, 1, 3); i > 0; --i) {
      Dims dims;
      terms.emplace_back();
      for (int64_t axis = pick(random, 0, 3); axis > 0; --axis) {
        const size_t letter = pick(random, 0, 3);
        terms.back() += letters[letter];
        dims.push_back(extents[letter]);
      }
      operands.push_back(random_tensor(random, kI64, dims));
      equation += (equation.empty() && terms.size() == 1 ? "" : ",") + terms.back();
    }
    for (const char letter : letters) {
      if (equation.find(letter) != std::string::npos && pick(random, 0, 1)) output += letter;
    }
    std::shuffle(output.begin(), output.end(), random);
    equation += "->" + output;
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " " << equation);
    const Tensor y = einsum(equation.c_str(), operands);
    std::vector<int64_t> expected(y.size());
    for (int64_t point = 0; point < 2 * 3 * 1 * 4; ++point) {
      const std::array<int64_t, 4> at{point % 2, point / 2 % 3, 0, point / 6};
      bool counts = true;  // a label in no term is not summed over
      for (size_t l = 0; l < 4; ++l) counts = counts && (at[l] == 0 || equation.find(letters[l]) != std::string::npos);
      if (!counts) continue;
      const auto index = [&](const std::string& term) {
        int64_t offset = 0;
        for (const char letter : term) offset = offset * extents[letters.find(letter)] + at[letters.find(letter)];
        return offset;
      };
      int64_t product = 1;
      for (size_t i = 0; i < terms.size(); ++i) product *= operands[i].tensor().int_at(index(terms[i]));
      expected[index(output)] += product;
    }
    EXPECT_EQ(y.to_ints(), expected);
  }
}

TEST(Det, PivotsAndBatches) {
  const Tensor x = Tensor::of<float>({3, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0, 1, 2, 2, 4});
  EXPECT_TRUE(compare(evaluated("Det", {x}), Tensor::of<float>({3}, {-2, -1, 0}), {1e-6, 1e-6}).equal);
  EXPECT_EQ(evaluated("Det", {Tensor::of<double>({3, 3}, {2, 0, 0, 0, 3, 0, 0, 0, 4})}).double_at(0), 24);
  EXPECT_EQ(evaluated("Det", {*Tensor::zeros(kF32, {0, 0})}).double_at(0), 1) << "the empty product";
}

}  // namespace
}  // namespace tenon
