#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;

Tensor row(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
Tensor resized(const Tensor& x, float scale, Attributes attributes) {
  return evaluated("Resize", {x, Datum(), row({scale})}, attributes);
}
void expect_row(const Tensor& y, const std::vector<float>& values) {
  const auto difference = compare(y, row(values), {1e-5, 1e-5});
  EXPECT_TRUE(difference.equal) << difference.difference;
}

TEST(Resize, NearestModesAtTies) {
  // Doubled from corners: x = 0, 0.5, 1, 1.5.
  const Tensor x = row({1, 2});
  const auto run = [&](const char* mode) {
    return resized(x, 2, {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", mode}});
  };
  expect_row(run("round_prefer_floor"), {1, 1, 2, 2});
  expect_row(run("round_prefer_ceil"), {1, 2, 2, 2});
  expect_row(run("floor"), {1, 1, 2, 2});
  expect_row(run("ceil"), {1, 2, 2, 2});
}

TEST(Resize, NearestMovesElementsOfEveryType) {
  for (const ElementType element : kSampleTypes) {
    const Tensor x = iota(element, {2}), y = evaluated("Resize", {x, Datum(), row({2})});
    ASSERT_EQ(y.dims(), Dims{4}) << element.to_string();
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(element_text(y, i), element_text(x, i / 2)) << element.to_string();
  }
}

// Along each axis the same as a column of that length, for random shapes and scales; doubling has special code.
TEST(Resize, NearestAxesAreApart) {
  constexpr unsigned kSeed = 20261124;
  std::mt19937 random(kSeed);
  const auto draw = [&](int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(random); };
  constexpr float kScales[] = {1, 2, 2, 3, 0.5f, 1.5f, 0.7f};
  for (int round = 0; round < 200; ++round) {
    const auto rank = static_cast<size_t>(draw(1, 4));
    Attributes attributes{{"mode", "nearest"},
                          {"nearest_mode", std::array{"floor", "ceil", "round_prefer_floor"}[draw(0, 2)]},
                          {"coordinate_transformation_mode", std::array{"asymmetric", "half_pixel"}[draw(0, 1)]}};
    Dims dims;
    std::vector<float> scales;
    std::vector<Tensor> indices;
    for (size_t d = 0; d < rank; ++d) {
      dims.push_back(draw(2, d + 1 == rank ? 40 : 6));
      scales.push_back(kScales[draw(0, 6)]);
      indices.push_back(evaluated("Resize", {iota(kI64, {dims[d], 1}), Datum(), row({scales[d], 1})}, attributes));
    }
    for (const ElementType element : {kU8, kF16, kF32, kI64}) {
      const Tensor x = random_tensor(random, element, dims),
                   y = evaluated("Resize", {x, Datum(), Tensor::of<float>({static_cast<int64_t>(rank)}, scales)},
                                 attributes);
      for (int64_t i = 0; i < y.size(); ++i) {
        int64_t rest = i, place = 0, stride = 1;
        for (size_t d = rank; d-- > 0; rest /= y.dim(d), stride *= dims[d])
          place += indices[d].int_at(rest % y.dim(d)) * stride;
        ASSERT_EQ(element_text(y, i), element_text(x, place))
            << element.to_string() << str(dims) << " at " << i << ", round " << round << ", seed " << kSeed;
      }
    }
  }
}

TEST(Resize, LinearByTransformation) {
  const Tensor x = row({0, 10, 20});
  const auto run = [&](const char* transformation, float scale) {
    return resized(x, scale, {{"mode", "linear"}, {"coordinate_transformation_mode", transformation}});
  };
  expect_row(run("half_pixel", 2), {0, 2.5, 7.5, 12.5, 17.5, 20});
  expect_row(run("asymmetric", 2), {0, 5, 10, 15, 20, 20});
  expect_row(run("align_corners", 2), {0, 4, 8, 12, 16, 20});
  expect_row(run("align_corners", 0.4f), {0});
  expect_row(run("pytorch_half_pixel", 0.4f), {0});
  expect_row(run("half_pixel", 0.4f), {7.5f});
  // 3 * 0.4 = 1.2 outputs: half_pixel_symmetric takes the middle of X.
  expect_row(run("half_pixel_symmetric", 0.4f), {10});
}

TEST(Resize, CubicKeepsLinesInsideAndSeparatesAxes) {
  // Keys' kernel with a = -0.5 reproduces quadratics; any a reproduces constants.
  std::vector<float> squares;
  for (int i = 0; i < 8; ++i) squares.push_back(static_cast<float>(i * i));
  const Tensor y = resized(row(squares), 2, {{"mode", "cubic"}, {"cubic_coeff_a", -0.5f}});
  for (int64_t i = 4; i < 12; ++i) {
    const double at = (static_cast<double>(i) + 0.5) / 2 - 0.5;
    EXPECT_NEAR(y.double_at(i), at * at, 1e-4) << i;
  }
  std::mt19937 random(4);
  const Tensor image = random_tensor(random, kF32, {4, 5});
  const auto scaled = [&](const Tensor& x, std::vector<float> scales) {
    return evaluated("Resize", {x, Datum(), row(scales)}, {{"mode", "cubic"}});
  };
  EXPECT_TRUE(compare(scaled(image, {2, 3}), scaled(scaled(image, {2, 1}), {1, 3}), {1e-5, 1e-5}).equal);
  expect_row(resized(row({3, 3, 3}), 2, {{"mode", "cubic"}, {"exclude_outside", 1}}), {3, 3, 3, 3, 3, 3});
}

TEST(Resize, AntialiasAveragesWhenShrinking) {
  expect_row(resized(row({0, 0, 8, 0, 0, 0}), 0.5f, {{"mode", "linear"}}), {0, 4, 0});
  expect_row(resized(row({0, 0, 8, 0, 0, 0}), 0.5f, {{"mode", "linear"}, {"antialias", 1}}), {1, 3, 0});
  expect_row(resized(row({1, 2}), 2, {{"mode", "linear"}, {"antialias", 1}}), {1, 1.25f, 1.75f, 2});
}

TEST(Resize, CropTakesWhatIsOutsideFromElsewhere) {
  const Tensor x = row({0, 10, 20});
  const Attributes crop{
      {"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}, {"extrapolation_value", -1.0f}};
  expect_row(evaluated("Resize", {x, row({0.5f, 1.5f}), Datum(), ints({3})}, crop), {10, 20, -1});
  Attributes nearest = crop;
  nearest.set("mode", "nearest");
  expect_row(evaluated("Resize", {x, row({0.5f, 1.5f}), Datum(), ints({3})}, nearest), {10, 20, -1});
}

TEST(Resize, IntegersTruncate) {
  EXPECT_TRUE(evaluated("Resize", {Tensor::of<uint8_t>({2}, {0, 10}), Datum(), row({2})}, {{"mode", "linear"}})
                  .identical(Tensor::of<uint8_t>({4}, {0, 2, 7, 10})));
}

// One row of points over the image 0 10 20.
Tensor sampled(const std::vector<float>& points, Attributes attributes) {
  const auto count = static_cast<int64_t>(points.size());
  return *evaluated("GridSample", {Tensor::of<float>({1, 1, 3}, {0, 10, 20}), Tensor::of<float>({1, count, 1}, points)},
                    attributes)
              .reshaped({count});
}

TEST(GridSample, ModesAndPaddings) {
  const Attributes aligned{{"align_corners", 1}};
  const auto with = [&](const char* key, const char* value) {
    Attributes attributes = aligned;
    attributes.set(key, value);
    return attributes;
  };
  expect_row(sampled({-1, -0.5, 0, 1, 1.5}, aligned), {0, 5, 10, 20, 10});
  expect_row(sampled({1.5, 9, -3}, with("padding_mode", "border")), {20, 20, 0});
  expect_row(sampled({1.5, -1.25, 3}, with("padding_mode", "reflection")), {15, 2.5, 0});
  expect_row(sampled({-0.6f, 0.4f, 1.6f}, with("mode", "nearest")), {0, 10, 0});
  expect_row(sampled({-1, 0, 1}, with("mode", "cubic")), {0, 10, 20});
  expect_row(sampled({-1}, {}), {0});  // a border, half outside
  expect_row(sampled({0, NAN}, {}), {10, 0});
}

TEST(GridSample, IdentityGridGivesTheImage) {
  std::mt19937 random(9);
  const Tensor x = random_tensor(random, kF32, {2, 3, 4, 5, 2});
  for (const int64_t aligned : {0, 1}) {
    const Attributes attributes{{"align_corners", aligned}};
    Tensor theta = *Tensor::zeros(kF32, {2, 3, 4});
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t i = 0; i < 3; ++i) theta.set_double(n * 12 + i * 5, 1);
    }
    const Tensor grid = evaluated("AffineGrid", {theta, ints({2, 3, 4, 5, 2})}, attributes);
    ASSERT_EQ(grid.dims(), (Dims{2, 4, 5, 2, 3}));
    for (const char* mode : {"linear", "nearest", "cubic"}) {
      Attributes sampling = attributes;
      sampling.set("mode", mode);
      EXPECT_TRUE(compare(evaluated("GridSample", {x, grid}, sampling), x, {1e-5, 1e-5}).equal)
          << mode << " " << aligned;
    }
  }
}

TEST(Col2Im, OverlapsAdd) {
  // Windows of 2 over 3 elements: the middle one is in both.
  EXPECT_TRUE(evaluated("Col2Im", {Tensor::of<float>({1, 2, 2}, {1, 2, 10, 20}), ints({3}), ints({2})})
                  .identical(Tensor::of<float>({1, 1, 3}, {1, 12, 20})));
  EXPECT_TRUE(evaluated("Col2Im", {Tensor::of<int32_t>({1, 2, 2}, {1, 2, 10, 20}), ints({2}), ints({2})},
                        {{"pads", Attribute::Integers{1, 0}}})
                  .identical(Tensor::of<int32_t>({1, 1, 2}, {12, 20})));
}

}  // namespace
}  // namespace tenon
