#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>
#include <support_lib/shredding_parallel.hpp>

namespace tenon {
namespace {

using namespace testing;

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

TEST(Quantize, RoundsToEvenAndSaturates) {
  const Tensor x = row<float>({0, 1, 3, -1, 5, 1000, -1000, std::numeric_limits<float>::infinity()});
  const Tensor scale = Tensor::scalar(2.f);
  EXPECT_TRUE(evaluated("QuantizeLinear", {x, scale}).identical(row<uint8_t>({0, 0, 2, 0, 2, 255, 0, 255})));
  EXPECT_TRUE(evaluated("QuantizeLinear", {x, scale, Tensor::scalar<int8_t>(1)})
                  .identical(row<int8_t>({1, 1, 3, 1, 3, 127, -128, 127})));
  EXPECT_TRUE(evaluated("QuantizeLinear", {x, scale, Tensor::scalar<uint16_t>(100)})
                  .identical(row<uint16_t>({100, 100, 102, 100, 102, 600, 0, 65535})));
  const Tensor narrow = evaluated("QuantizeLinear", {x, scale}, {{"output_dtype", Type(kI4, Shape())}});
  EXPECT_EQ(narrow.to_ints(), (std::vector<int64_t>{0, 0, 2, 0, 2, 7, -8, 7}));
}

TEST(Quantize, ToNarrowFloats) {
  const Tensor x = row<float>({1000, -3, 0.26f}), scale = Tensor::scalar(2.f);
  const Type to(kF8E4M3FN, Shape());
  const Tensor y = evaluated("QuantizeLinear", {x, scale}, {{"output_dtype", to}});
  EXPECT_EQ(y.double_at(0), 448);
  EXPECT_EQ(y.double_at(1), -1.5);
  EXPECT_EQ(y.double_at(2), 0.125);  // 0.13 lies between 0.125 and 0.140625
  EXPECT_TRUE(
      std::isnan(evaluated("QuantizeLinear", {x, scale}, {{"output_dtype", to}, {"saturate", 0}}).double_at(0)));
}

TEST(Quantize, DividesInTheAskedPrecision) {
  // 1.0009765625 / 0.0004: 2502.44 in f32; f16 has steps of 2 there.
  const Tensor x = row<float>({1.0009765625f}), scale = Tensor::scalar(0.0004f), zero = Tensor::scalar<int16_t>(0);
  EXPECT_EQ(evaluated("QuantizeLinear", {x, scale, zero}).int_at(0), 2502);
  EXPECT_EQ(evaluated("QuantizeLinear", {x, scale, zero}, {{"precision", Type(kBF16, Shape())}}).int_at(0), 2496);
}

// The scale of an element (index along `axis`) in the three layouts, implemented independently.
TEST(Quantize, ScalesPerTensorAxisAndBlock) {
  std::mt19937 random(50);
  const Dims dims{2, 5, 3};
  const Tensor x = random_tensor(random, kF32, dims), q = random_tensor(random, kI8, dims);
  struct Layout {
    Dims scale;
    int64_t axis, block;
  };
  for (const Layout& layout : std::vector<Layout>{{{}, 1, 0},
                                                  {{1}, 1, 0},
                                                  {{5}, 1, 0},
                                                  {{3}, -1, 0},
                                                  {{2}, 0, 0},
                                                  {{2, 3, 3}, 1, 2},
                                                  {{1, 5, 3}, 0, 4},
                                                  {{2, 5, 3}, 2, 1}}) {
    SCOPED_TRACE(Shape(layout.scale).to_string());
    Tensor scale = *Tensor::zeros(kF32, layout.scale), zero = *Tensor::zeros(kI8, layout.scale);
    for (int64_t i = 0; i < scale.size(); ++i)
      scale.set_double(i, std::ldexp(1, -static_cast<int>(i % 5))), zero.set_int(i, i);
    const Attributes attributes{{"axis", layout.axis}, {"block_size", layout.block}};
    ShreddingParallel parallel(4);
    const auto quantized = evaluate("QuantizeLinear", {x, scale, zero}, attributes, 1, parallel);
    const auto back = evaluate("DequantizeLinear", {q, scale, zero}, attributes, 1, parallel);
    ASSERT_TRUE(quantized.ok()) << quantized.error().to_string();
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    const auto axis = static_cast<size_t>(layout.axis < 0 ? layout.axis + 3 : layout.axis);
    for (int64_t i = 0; i < x.size(); ++i) {
      Dims index{i / 15, i / 3 % 5, i % 3};
      int64_t at = scale.size() == 1 ? 0 : index[axis];
      if (layout.block > 0) {
        index[axis] /= layout.block;
        at = (index[0] * layout.scale[1] + index[1]) * layout.scale[2] + index[2];
      }
      const double s = scale.double_at(at), z = zero.double_at(at);
      EXPECT_EQ((*quantized)[0].tensor().double_at(i), std::min(127.0, std::nearbyint(x.double_at(i) / s) + z)) << i;
      EXPECT_EQ((*back)[0].tensor().double_at(i), (q.double_at(i) - z) * s) << i;
    }
  }
}

TEST(Quantize, DequantizesEveryType) {
  EXPECT_TRUE(
      evaluated("DequantizeLinear", {row<uint8_t>({0, 128, 255}), Tensor::scalar(0.5f), Tensor::scalar<uint8_t>(128)})
          .identical(row<float>({-64, 0, 63.5f})));
  EXPECT_TRUE(evaluated("DequantizeLinear", {row<int32_t>({-7, 1 << 20}), Tensor::scalar(0.5f)})
                  .identical(row<float>({-3.5f, 524288})));
  EXPECT_EQ(evaluated("DequantizeLinear", {iota(kU4, {16}), Tensor::scalar(2.f)}).double_at(15), 30);
  EXPECT_EQ(evaluated("DequantizeLinear", {iota(kF8E5M2, {61}), Tensor::scalar(2.f)}).double_at(60), 2);
  const Tensor wide = evaluated("DequantizeLinear", {row<int8_t>({3}), Tensor::of<f16>({}, {f16(0.5f)})},
                                {{"output_dtype", Type(kF64, Shape())}});
  EXPECT_TRUE(wide.identical(row<double>({1.5})));
}

TEST(Quantize, ByItsOwnRange) {
  const auto made = evaluated_all("DynamicQuantizeLinear", {row<float>({-1, 0, 1.5f, 4.1f})}, {}, 3);
  EXPECT_FLOAT_EQ(made[1].tensor().as<float>()[0], 5.1f / 255);
  EXPECT_EQ(made[2].tensor().int_at(0), 50);
  EXPECT_EQ(made[0].tensor().to_ints(), (std::vector<int64_t>{0, 50, 125, 255}));
  // All positive: the range begins at 0.
  const auto positive = evaluated_all("DynamicQuantizeLinear", {row<float>({51, 255})}, {}, 3);
  EXPECT_EQ(positive[2].tensor().int_at(0), 0);
  EXPECT_EQ(positive[0].tensor().to_ints(), (std::vector<int64_t>{51, 255}));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(evaluated_all("DynamicQuantizeLinear", {row<float>({-infinity, 1})}, {}, 3)[2].tensor().int_at(0), 0);
  const auto zeros = evaluated_all("DynamicQuantizeLinear", {row<float>({0, 0})}, {}, 3);
  EXPECT_EQ(zeros[1].tensor().as<float>()[0], 1);
  EXPECT_EQ(zeros[0].tensor().to_ints(), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace tenon
