#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;

// Index arithmetic over every axis, one element at a time, as in the formulas.
struct Plane {
  int64_t rows, columns;
};

double at(const Tensor& x, int64_t n, int64_t c, int64_t i, int64_t j) {
  if (i < 0 || j < 0 || i >= x.dim(2) || j >= x.dim(3)) return 0;
  return x.double_at(((n * x.dim(1) + c) * x.dim(2) + i) * x.dim(3) + j);
}

struct Case {
  int64_t batch, channels, outputs, group;
  Plane in, kernel, stride, dilation, begin, end;

  Attributes attributes() const {
    return {{"group", group},
            {"strides", Attribute::Integers{stride.rows, stride.columns}},
            {"dilations", Attribute::Integers{dilation.rows, dilation.columns}},
            {"pads", Attribute::Integers{begin.rows, begin.columns, end.rows, end.columns}}};
  }
  Tensor convolve(const Tensor& x, const Tensor& w, const Tensor* b) const {
    const int64_t rows = (in.rows + begin.rows + end.rows - (kernel.rows - 1) * dilation.rows - 1) / stride.rows + 1;
    const int64_t columns =
        (in.columns + begin.columns + end.columns - (kernel.columns - 1) * dilation.columns - 1) / stride.columns + 1;
    Tensor y = *Tensor::zeros(kF64, {batch, outputs, rows, columns});
    for (int64_t e = 0; e < y.size(); ++e) {
      const int64_t j = e % columns, i = e / columns % rows, m = e / columns / rows % outputs,
                    n = e / columns / rows / outputs;
      double sum = b ? b->double_at(m) : 0;
      for (int64_t c = 0; c < channels / group; ++c) {
        for (int64_t k = 0; k < kernel.rows; ++k) {
          for (int64_t l = 0; l < kernel.columns; ++l) {
            sum += at(x, n, m / (outputs / group) * (channels / group) + c,
                      i * stride.rows - begin.rows + k * dilation.rows,
                      j * stride.columns - begin.columns + l * dilation.columns) *
                   at(w, m, c, k, l);
          }
        }
      }
      y.set_double(e, sum);
    }
    return y;
  }
  static Case random(std::mt19937& r) {
    Case c;
    c.group = pick(r, 1, 3);
    c.batch = pick(r, 1, 3), c.channels = c.group * pick(r, 1, 3), c.outputs = c.group * pick(r, 1, 5);
    for (auto [p, low, high] : {std::tuple(&c.in, 6, 14),
                                {&c.kernel, 1, 3},
                                {&c.stride, 1, 3},
                                {&c.dilation, 1, 2},
                                {&c.begin, 0, 3},
                                {&c.end, 0, 3}}) {
      *p = {pick(r, low, high), pick(r, low, high)};
    }
    return c;
  }
};

Tensor as(const Tensor& tensor, ElementType element) { return *convert(tensor, element); }

TEST(Convolution, EqualsTheDefinition) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Case c = Case::random(random);
    const ElementType element = std::vector{kF32, kF64, kF16, kBF16}[seed % 4];
    const Tensor x = random_tensor(random, element, {c.batch, c.channels, c.in.rows, c.in.columns});
    const Tensor w = random_tensor(random, element, {c.outputs, c.channels / c.group, c.kernel.rows, c.kernel.columns});
    const Tensor b = random_tensor(random, element, {c.outputs});
    const bool biased = seed % 3 != 0;
    const Tensor y = evaluated("Conv", biased ? std::vector<Datum>{x, w, b} : std::vector<Datum>{x, w}, c.attributes());
    const auto difference = compare(y, as(c.convolve(x, w, biased ? &b : nullptr), element), {1e-5, 1e-5});
    EXPECT_TRUE(difference.equal) << difference.difference;
  }
}

TEST(Convolution, TransposeIsTheAdjoint) {
  // <conv(x), y> = <x, transpose(y)> for every x and y: what the name says.
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Case c = Case::random(random);
    const Tensor x = random_tensor(random, kF64, {c.batch, c.channels, c.in.rows, c.in.columns});
    const Tensor w = random_tensor(random, kF64, {c.outputs, c.channels / c.group, c.kernel.rows, c.kernel.columns});
    const Tensor image = c.convolve(x, w, nullptr);
    const Tensor y = random_tensor(random, kF64, image.dims());
    Attributes attributes = c.attributes();
    const auto slack = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads) {
      return in + pads - (kernel - 1) * dilation - 1 - (out - 1) * stride;
    };
    attributes.set("output_padding",
                   Attribute::Integers{slack(c.in.rows, image.dim(2), c.kernel.rows, c.stride.rows, c.dilation.rows,
                                             c.begin.rows + c.end.rows),
                                       slack(c.in.columns, image.dim(3), c.kernel.columns, c.stride.columns,
                                             c.dilation.columns, c.begin.columns + c.end.columns)});
    const Tensor back = evaluated("ConvTranspose", {y, w}, attributes);
    ASSERT_EQ(back.dims(), x.dims());
    double left = 0, right = 0;
    for (int64_t i = 0; i < y.size(); ++i) left += image.double_at(i) * y.double_at(i);
    for (int64_t i = 0; i < x.size(); ++i) right += x.double_at(i) * back.double_at(i);
    EXPECT_NEAR(left, right, 1e-9 * (1 + std::abs(left)));
  }
}

TEST(Convolution, AutoPadPutsTheOddOneWhereItSays) {
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4}), w = Tensor::of<float>({1, 1, 2}, {1, 10});
  const auto run = [&](const char* pad) { return evaluated("Conv", {x, w}, {{"auto_pad", pad}}); };
  EXPECT_TRUE(run("SAME_UPPER").identical(Tensor::of<float>({1, 1, 4}, {21, 32, 43, 4})));
  EXPECT_TRUE(run("SAME_LOWER").identical(Tensor::of<float>({1, 1, 4}, {10, 21, 32, 43})));
  EXPECT_TRUE(run("VALID").identical(Tensor::of<float>({1, 1, 3}, {21, 32, 43})));
}

TEST(Convolution, OneAndThreeSpatialAxesAndNone) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(evaluated("Conv", {x, Tensor::of<float>({1, 1, 2, 1, 2}, {1, 2, 3, 4})})
                  .identical(Tensor::of<float>({1, 1, 1, 2, 1}, {1 + 4 + 15 + 24, 3 + 8 + 21 + 32})));
  EXPECT_TRUE(evaluated("Conv", {Tensor::of<float>({1, 2}, {3, 5}), Tensor::of<float>({2, 2}, {1, 0, 1, 2})})
                  .identical(Tensor::of<float>({1, 2}, {3, 13})));
  EXPECT_EQ(evaluated("Conv", {*Tensor::zeros(kF32, {0, 1, 5}), *Tensor::zeros(kF32, {2, 1, 3})}).dims(),
            (Dims{0, 2, 3}));
}

TEST(Convolution, TransposeWithBiasGroupsAndGivenShape) {
  const Tensor x = Tensor::of<float>({1, 2, 2}, {1, 2, 3, 4}), w = Tensor::of<float>({2, 1, 2}, {1, 10, 2, 20});
  const Tensor b = Tensor::of<float>({2}, {100, 200});
  EXPECT_TRUE(evaluated("ConvTranspose", {x, w, b}, {{"group", 2}, {"strides", Attribute::Integers{3}}})
                  .identical(Tensor::of<float>({1, 2, 5}, {101, 110, 100, 102, 120, 206, 260, 200, 208, 280})));
  // The full result has 5 elements; one is cut at the beginning, and SAME_UPPER would cut it at the end.
  EXPECT_TRUE(evaluated("ConvTranspose", {x, w},
                        {{"group", 2}, {"strides", Attribute::Integers{3}}, {"output_shape", Attribute::Integers{4}}})
                  .identical(Tensor::of<float>({1, 2, 4}, {10, 0, 2, 20, 60, 0, 8, 80})));
}

TEST(Convolution, IntegersLessTheirZeroPoints) {
  const Tensor x = Tensor::of<uint8_t>({1, 1, 3}, {2, 3, 255}), w = Tensor::of<int8_t>({2, 1, 2}, {1, -128, 5, 7});
  const Tensor xz = Tensor::scalar<uint8_t>(1), wz = Tensor::of<int8_t>({2}, {0, 5});
  EXPECT_TRUE(evaluated("ConvInteger", {x, w, xz, wz})
                  .identical(Tensor::of<int32_t>({1, 2, 2}, {1 - 256, 2 - 128 * 254, 4, 508})));
  // Padding is the zero point, not 0.
  EXPECT_TRUE(evaluated("ConvInteger", {x, w, xz, wz}, {{"pads", Attribute::Integers{1, 0}}})
                  .identical(Tensor::of<int32_t>({1, 2, 3}, {-128, 1 - 256, 2 - 128 * 254, 2, 4, 508})));
}

// An empty image has no address; UBSan detects arithmetic on a null pointer.
TEST(Convolution, OfAnEmptyImageIsPaddingAlone) {
  const Tensor none = *Tensor::zeros(kU8, {1, 1, 0}), w = Tensor::of<uint8_t>({1, 1, 2}, {3, 4});
  for (const int64_t stride : {1, 2}) {
    const Attributes attributes{{"pads", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{stride}}};
    const Tensor y = evaluated("ConvInteger", {none, w}, attributes);
    EXPECT_TRUE(y.identical(*Tensor::zeros(kI32, {1, 1, stride == 1 ? 3 : 2}))) << y.to_string();
  }
}

TEST(Convolution, QuantisedRoundsHalfToEvenAndSaturates) {
  const auto run = [](float y_scale, int8_t y_zero) {
    return evaluated(
        "QLinearConv",
        {Tensor::of<uint8_t>({1, 1, 4}, {10, 11, 13, 255}), Tensor::scalar(0.5f), Tensor::scalar<uint8_t>(10),
         Tensor::of<int8_t>({2, 1, 1}, {1, 3}), Tensor::of<float>({2}, {1, 2}), Tensor::of<int8_t>({2}, {0, 2}),
         Tensor::scalar(y_scale), Tensor::scalar<int8_t>(y_zero), Tensor::of<int32_t>({2}, {0, 2})});
  };
  EXPECT_TRUE(run(1, 0).identical(Tensor::of<int8_t>({1, 2, 4}, {0, 0, 2, 122, 2, 3, 5, 127})));
  EXPECT_TRUE(run(2, -100).identical(Tensor::of<int8_t>({1, 2, 4}, {-100, -100, -99, -39, -99, -98, -98, 24})));
}

TEST(Convolution, DeformableWithoutOffsetsIsConv) {
  std::mt19937 random(1);
  const Tensor x = random_tensor(random, kF32, {2, 4, 6, 5}), w = random_tensor(random, kF32, {6, 2, 3, 2}),
               b = random_tensor(random, kF32, {6});
  const Attributes conv{
      {"group", 2}, {"strides", Attribute::Integers{2, 1}}, {"pads", Attribute::Integers{1, 1, 1, 1}}};
  const Tensor y = evaluated("Conv", {x, w, b}, conv);
  Attributes deform = conv;
  deform.set("offset_group", 2);
  const Tensor offset = *Tensor::zeros(kF32, {2, 2 * 6 * 2, y.dim(2), y.dim(3)});
  EXPECT_TRUE(compare(evaluated("DeformConv", {x, w, offset, b}, deform), y, {1e-5, 1e-5}).equal);
}

TEST(Convolution, DeformableMovesAndWeightsItsTaps) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 2}, {1, 2, 3, 4}), w = Tensor::of<float>({1, 1, 1, 1}, {1});
  const Tensor mask = Tensor::of<float>({1, 1, 2, 2}, {1, 1, 2, 1});
  // (y, x) offsets: (0.5, 0), (0, 0.25) half outside, (-1, 0.5), NaN.
  const Tensor offset = Tensor::of<float>({1, 2, 2, 2}, {0.5, 0, -1, NAN, 0, 0.25, 0.5, 0});
  EXPECT_TRUE(evaluated("DeformConv", {x, w, offset, Datum(), mask})
                  .identical(Tensor::of<float>({1, 1, 2, 2}, {2, 1.5, 3, 0})));
}

TEST(Convolution, CausalInPiecesIsCausalAtOnce) {
  std::mt19937 random(3);
  const Tensor x = random_tensor(random, kF32, {2, 3, 6}), w = random_tensor(random, kF32, {3, 1, 4}),
               b = random_tensor(random, kF32, {3});
  const auto columns = [&](int64_t begin, int64_t end) {
    Tensor part = *Tensor::zeros(kF32, {2, 3, end - begin});
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t t = begin; t < end; ++t) part.set_double(row * (end - begin) + t - begin, x.double_at(row * 6 + t));
    }
    return part;
  };
  const Attributes silu{{"activation", "silu"}};
  const auto whole = evaluated_all("CausalConvWithState", {x, w, b}, silu, 2);
  const auto first = evaluated_all("CausalConvWithState", {columns(0, 2), w, b}, silu, 2);
  const auto second = evaluated_all("CausalConvWithState", {columns(2, 6), w, b, first[1]}, silu, 2);
  EXPECT_TRUE(second[1].tensor().identical(whole[1].tensor()));
  for (int64_t row = 0; row < 6; ++row) {
    double sum = b.double_at(row % 3);
    for (int64_t t = 0; t < 6; ++t) {
      sum = b.double_at(row % 3);
      for (int64_t k = 0; k < 4; ++k)
        sum += t + k >= 3 ? x.double_at(row * 6 + t + k - 3) * w.double_at(row % 3 * 4 + k) : 0;
      const double expected = sum / (1 + std::exp(-sum));
      EXPECT_NEAR(whole[0].tensor().double_at(row * 6 + t), expected, 1e-6);
      const Tensor& part = t < 2 ? first[0].tensor() : second[0].tensor();
      EXPECT_EQ(part.double_at(row * part.dim(2) + (t < 2 ? t : t - 2)), whole[0].tensor().double_at(row * 6 + t));
    }
  }
}

}  // namespace
}  // namespace tenon
