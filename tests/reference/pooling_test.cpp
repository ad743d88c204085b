#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Windows of two axes, element by element as in the formulas.
struct Case {
  int64_t in[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
  bool ceil;

  static Case random(std::mt19937& r) {
    Case c;
    for (int axis = 0; axis < 2; ++axis) {
      c.in[axis] = pick(r, 6, 10), c.kernel[axis] = pick(r, 1, 3), c.stride[axis] = pick(r, 1, 3),
      c.dilation[axis] = pick(r, 1, 2);
      c.begin[axis] = pick(r, 0, c.kernel[axis] - 1), c.end[axis] = pick(r, 0, c.kernel[axis] - 1);
    }
    c.ceil = pick(r, 0, 1);
    return c;
  }
  Attributes attributes() const {
    return {{"kernel_shape", Attribute::Integers{kernel[0], kernel[1]}},
            {"strides", Attribute::Integers{stride[0], stride[1]}},
            {"dilations", Attribute::Integers{dilation[0], dilation[1]}},
            {"pads", Attribute::Integers{begin[0], begin[1], end[0], end[1]}},
            {"ceil_mode", ceil}};
  }
  // Calls body(output row, output column, input index or -1 in the padding) for every tap in the input or its padding.
  template <class Body>
  void each(const Dims& out, Body&& body) const {
    for (int64_t i = 0; i < out[2]; ++i) {
      for (int64_t j = 0; j < out[3]; ++j) {
        for (int64_t k = 0; k < kernel[0]; ++k) {
          for (int64_t l = 0; l < kernel[1]; ++l) {
            const int64_t row = i * stride[0] - begin[0] + k * dilation[0],
                          column = j * stride[1] - begin[1] + l * dilation[1];
            if (row >= in[0] + end[0] || column >= in[1] + end[1]) continue;
            const bool inside = row >= 0 && column >= 0 && row < in[0] && column < in[1];
            body(i * out[3] + j, inside ? row * in[1] + column : -1);
          }
        }
      }
    }
  }
};

TEST(Pooling, EqualsTheDefinition) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Case c = Case::random(random);
    const Tensor x = random_tensor(random, kF32, {1, 1, c.in[0], c.in[1]});
    const auto largest = evaluated_all("MaxPool", {x}, c.attributes(), 2);
    const Dims dims = largest[0].tensor().dims();
    const int64_t count = largest[0].tensor().size();
    std::vector<double> best(count, -INFINITY), sum(count), squares(count), inside(count), padded(count);
    c.each(dims, [&](int64_t at, int64_t from) {
      ++padded[at];
      if (from < 0) return;
      ++inside[at];
      best[at] = std::max(best[at], x.double_at(from));
      sum[at] += x.double_at(from);
      squares[at] += x.double_at(from) * x.double_at(from);
    });
    Attributes with_padding = c.attributes();
    with_padding.set("count_include_pad", 1);
    const Tensor mean = evaluated("AveragePool", {x}, c.attributes()),
                 mean_padded = evaluated("AveragePool", {x}, with_padding);
    const Tensor norm = evaluated("LpPool", {x}, c.attributes());
    for (int64_t i = 0; i < count; ++i) {
      if (inside[i] == 0) continue;  // a window of padding alone: -inf, and nothing to point at
      EXPECT_EQ(largest[0].tensor().double_at(i), best[i]);
      EXPECT_EQ(x.double_at(largest[1].tensor().int_at(i)), best[i]);
      EXPECT_NEAR(mean.double_at(i), sum[i] / inside[i], 1e-6);
      EXPECT_NEAR(mean_padded.double_at(i), sum[i] / padded[i], 1e-6);
      EXPECT_NEAR(norm.double_at(i), std::sqrt(squares[i]), 1e-6);
    }
  }
}

TEST(Pooling, IndicesCountThroughTheWholeTensorInEitherOrder) {
  Tensor x = *Tensor::zeros(kU8, {2, 1, 2, 3});
  x.set_int(5, 9), x.set_int(6 + 2, 9);
  const Attributes whole{{"kernel_shape", Attribute::Integers{2, 3}}};
  EXPECT_EQ(evaluated_all("MaxPool", {x}, whole, 2)[1].tensor().to_ints(), (std::vector<int64_t>{5, 8}));
  Attributes columns = whole;
  columns.set("storage_order", 1);
  EXPECT_EQ(evaluated_all("MaxPool", {x}, columns, 2)[1].tensor().to_ints(), (std::vector<int64_t>{5, 6 + 4}));
}

TEST(Pooling, NaNWinsAndTheLowestIntegersStand) {
  const Attributes two{{"kernel_shape", Attribute::Integers{2}}};
  const Tensor y = evaluated("MaxPool", {Tensor::of<float>({1, 1, 4}, {1, kNaN, 3, 4})}, two);
  EXPECT_TRUE(std::isnan(y.double_at(0)) && std::isnan(y.double_at(1)));
  EXPECT_EQ(y.double_at(2), 4);
  EXPECT_TRUE(evaluated("MaxPool", {Tensor::of<int8_t>({1, 1, 2}, {-128, -128})}, two)
                  .identical(Tensor::of<int8_t>({1, 1, 1}, {-128})));
}

TEST(Pooling, Global) {
  const Tensor x = Tensor::of<double>({1, 2, 2}, {1, -3, 2, 4});
  EXPECT_TRUE(evaluated("GlobalAveragePool", {x}).identical(Tensor::of<double>({1, 2, 1}, {-1, 3})));
  EXPECT_TRUE(evaluated("GlobalMaxPool", {x}).identical(Tensor::of<double>({1, 2, 1}, {1, 4})));
  EXPECT_TRUE(evaluated("GlobalLpPool", {x}, {{"p", 1}}).identical(Tensor::of<double>({1, 2, 1}, {4, 6})));
}

TEST(Pooling, UnpoolUndoes) {
  std::mt19937 random(2);
  const Tensor x = random_tensor(random, kF32, {2, 3, 4, 6});
  const Attributes attributes{{"kernel_shape", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{2, 2}}};
  const auto pooled = evaluated_all("MaxPool", {x}, attributes, 2);
  const Tensor back = evaluated("MaxUnpool", pooled, attributes);
  ASSERT_EQ(back.dims(), x.dims());
  EXPECT_TRUE(evaluated("MaxPool", {back}, {{"kernel_shape", Attribute::Integers{1, 1}}}).identical(back));
  int64_t kept = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    kept += back.double_at(i) != 0;
    EXPECT_TRUE(back.double_at(i) == 0 || back.double_at(i) == x.double_at(i));
  }
  EXPECT_LE(kept, pooled[0].tensor().size());
  EXPECT_THAT(error_of("MaxUnpool", {Tensor::of<float>({1, 1, 1}, {1}), Tensor::of<int64_t>({1, 1, 1}, {2})},
                       {{"kernel_shape", Attribute::Integers{2}}}),
              HasSubstr("is 2, X was pooled from 2 elements"));
}

TEST(Pooling, OfIntegersTakesThoseOfEightBits) {
  const Attributes attributes{{"kernel_shape", Attribute::Integers{2}}};
  EXPECT_TRUE(evaluated("MaxPool", {Tensor::of<uint8_t>({1, 1, 3}, {3, 200, 7})}, attributes)
                  .identical(Tensor::of<uint8_t>({1, 1, 2}, {200, 200})));
  EXPECT_THAT(error_of("MaxPool", {Tensor::of<int32_t>({1, 1, 3}, {3, 200, 7})}, attributes),
              HasSubstr("X is of i32, floats and integers of 8 bits are pooled"));
}

TEST(Pooling, BoxesOfMaxRoiPool) {
  const Tensor x = iota(kU8, {1, 1, 4, 4}), image = *convert(x, kF32);
  // The box of columns 0 to 2 and rows 0 to 3, halves of which overlap by one column.
  const Tensor y = evaluated("MaxRoiPool", {image, Tensor::of<float>({1, 5}, {0, 0, 0, 4, 6})},
                             {{"pooled_shape", Attribute::Integers{2, 2}}, {"spatial_scale", 0.5f}});
  EXPECT_TRUE(y.identical(Tensor::of<float>({1, 1, 2, 2}, {5, 6, 13, 14})));
  EXPECT_THAT(error_of("MaxRoiPool", {image, Tensor::of<float>({1, 5}, {1, 0, 0, 4, 6})},
                       {{"pooled_shape", Attribute::Integers{2, 2}}}),
              HasSubstr("box 0 lies in image 1, there are 1"));
}

TEST(Pooling, RoiAlignOfAnImageWithoutRowsIsZero) {
  // In memory of something else, which a read before the image would find.
  std::vector<float> around(64, 7);
  const Tensor image = *Tensor::borrow(kF32, {1, 1, 0, 6}, around.data() + 32, 0);
  const Tensor y =
      evaluated("RoiAlign", {image, Tensor::of<float>({1, 4}, {0, 0, 3, 3}), Tensor::of<int64_t>({1}, {0})},
                {{"output_height", int64_t{2}}, {"output_width", int64_t{2}}, {"sampling_ratio", int64_t{2}}});
  for (const float value : y.as<float>()) EXPECT_EQ(value, 0);
}

TEST(Pooling, RoiAlignOfAPlaneIsThePlane) {
  // x[i, j] = 4 i + j is linear, so the mean of any bin inside is its value at the bin's centre.
  const Tensor image = *convert(iota(kU8, {1, 1, 4, 4}), kF32);
  const Tensor y =
      evaluated("RoiAlign", {image, Tensor::of<float>({1, 4}, {1, 1, 3, 3}), Tensor::of<int64_t>({1}, {0})},
                {{"output_height", 2}, {"output_width", 1}});
  EXPECT_TRUE(compare(y, Tensor::of<float>({1, 1, 2, 1}, {4 * 1 + 1.5f, 4 * 2 + 1.5f}), {1e-6, 1e-6}).equal);
  EXPECT_THAT(error_of("RoiAlign", {image, Tensor::of<float>({1, 4}, {1, 1, 3, 3}), Tensor::of<int64_t>({1}, {-1})}),
              HasSubstr("image -1"));
}

}  // namespace
}  // namespace tenon
