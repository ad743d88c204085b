// The fused integer operators: evaluator, decomposition and a plain oracle agree on every bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/by_definition.hpp>
#include <support_lib/evaluated.hpp>
#include <support_lib/inferred.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::fused {
namespace {

using namespace tenon::testing;
using ::testing::HasSubstr;

// The formula of epilogue.hpp in 64 bits: sums in these tests fit 32.
int64_t finished(int64_t acc, const Attributes& attributes) {
  const auto number = [&](Name name, int64_t fallback) {
    const Attribute* found = attributes.find(name);
    return found ? *found->get_if<int64_t>() : fallback;
  };
  const int64_t shift = number("shift", 0);
  if (shift > 0) acc += int64_t{1} << (shift - 1);
  const double floor = std::floor(static_cast<double>(acc) / static_cast<double>(int64_t{1} << shift));
  return std::clamp(static_cast<int64_t>(floor), number("clip_min", -128), number("clip_max", 127));
}

struct Windows {
  int64_t batch, channels, rows, columns, kernel[2], stride[2], dilation[2], pads[4];

  static Windows random(std::mt19937& r) {
    Windows w{pick(r, 1, 2), pick(r, 1, 6), pick(r, 1, 7), pick(r, 1, 7), {}, {}, {}, {}};
    for (int axis = 0; axis < 2; ++axis) {
      w.kernel[axis] = pick(r, 1, 3), w.stride[axis] = pick(r, 1, 3), w.dilation[axis] = pick(r, 1, 2);
      // At least so much that one window fits.
      const int64_t missing = (w.kernel[axis] - 1) * w.dilation[axis] + 1 - (axis == 0 ? w.rows : w.columns);
      w.pads[axis] = pick(r, 0, 2), w.pads[axis + 2] = std::max<int64_t>(pick(r, 0, 2), missing - w.pads[axis]);
    }
    return w;
  }
  int64_t out(int axis) const {
    const int64_t in = axis == 0 ? rows : columns;
    return (in + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1;
  }
  Attributes attributes() const {
    return {{"strides", Attribute::Integers{stride[0], stride[1]}},
            {"dilations", Attribute::Integers{dilation[0], dilation[1]}},
            {"pads", Attribute::Integers{pads[0], pads[1], pads[2], pads[3]}}};
  }
  // visit(tap, x) for the elements of x under the window at [n, c, i, j]; taps in the padding are left out.
  template <class Visit>
  void for_taps(const Tensor& x, int64_t n, int64_t c, int64_t i, int64_t j, Visit visit) const {
    for (int64_t tap = 0; tap < kernel[0] * kernel[1]; ++tap) {
      const int64_t row = i * stride[0] - pads[0] + tap / kernel[1] * dilation[0];
      const int64_t column = j * stride[1] - pads[1] + tap % kernel[1] * dilation[1];
      if (row < 0 || column < 0 || row >= rows || column >= columns) continue;
      visit(tap, x.int_at(((n * channels + c) * rows + row) * columns + column));
    }
  }
  // y[n, m, i, j] = element(n, m, i, j)
  template <class Element>
  Tensor each(int64_t outputs, Element element) const {
    Tensor y = *Tensor::zeros(kI8, {batch, outputs, out(0), out(1)});
    for (int64_t e = 0; e < y.size(); ++e) {
      const int64_t j = e % out(1), i = e / out(1) % out(0), m = e / out(1) / out(0) % outputs;
      y.set_int(e, element(e, e / out(1) / out(0) / outputs, m, i, j));
    }
    return y;
  }
};

Attributes with_epilogue(std::mt19937& r, Attributes attributes) {
  attributes.set("shift", pick(r, 0, 12));
  const int64_t low = pick(r, -128, 20);
  attributes.set("clip_min", low);
  attributes.set("clip_max", pick(r, low, 127));
  return attributes;
}

// Compares evaluator and decomposition with the oracle's `y`.
void expect_both(Name op, const std::vector<Datum>& operands, const Attributes& attributes, const Tensor& y) {
  const Comparison direct = compare(evaluated(op, operands, attributes), y, {.rtol = 0, .atol = 0});
  EXPECT_TRUE(direct.equal) << op.str() << ": " << direct.difference;
  const auto rebuilt = by_definition(op, operands, attributes);
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
  const Comparison decomposed = compare(*rebuilt, y, {.rtol = 0, .atol = 0});
  EXPECT_TRUE(decomposed.equal) << op.str() << ", decomposed: " << decomposed.difference;
}

class Fused : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Fused, ::testing::Range(0, 60));

TEST_P(Fused, ConvolutionIsItsFormula) {
  std::mt19937 r(GetParam());
  Windows w = Windows::random(r);
  const int64_t group = pick(r, 1, 3), per_group = pick(r, 1, 3), outputs = group * pick(r, 1, 3);
  w.channels = group * per_group;
  const Tensor x = random_tensor(r, kI8, {w.batch, w.channels, w.rows, w.columns}, -128, 127);
  const Tensor weights = random_tensor(r, kI8, {outputs, per_group, w.kernel[0], w.kernel[1]}, -128, 127);
  std::vector<Datum> operands{x, weights};
  Attributes attributes = with_epilogue(r, w.attributes());
  attributes.set("group", group);
  const bool has_bias = pick(r, 0, 1) == 1, has_residual = pick(r, 0, 1) == 1;
  const Tensor bias = random_tensor(r, kI32, {outputs}, -30000, 30000);
  const Tensor residual = random_tensor(r, kI8, {w.batch, outputs, w.out(0), w.out(1)}, -128, 127);
  const int64_t residual_shift = has_residual ? pick(r, 0, 9) : 0;
  if (has_bias || has_residual) operands.push_back(has_bias ? Datum(bias) : Datum());
  if (has_residual) operands.push_back(residual);
  if (has_residual) attributes.set("residual_shift", residual_shift);
  const Tensor y = w.each(outputs, [&](int64_t e, int64_t n, int64_t m, int64_t i, int64_t j) {
    int64_t acc = has_bias ? bias.int_at(m) : 0;
    if (has_residual) acc += residual.int_at(e) * (int64_t{1} << residual_shift);
    for (int64_t c = 0; c < per_group; ++c) {
      w.for_taps(x, n, m / (outputs / group) * per_group + c, i, j, [&](int64_t tap, int64_t value) {
        acc += value * weights.int_at((m * per_group + c) * w.kernel[0] * w.kernel[1] + tap);
      });
    }
    return finished(acc, attributes);
  });
  expect_both("fused.QConv", operands, attributes, y);
}

TEST_P(Fused, DenseIsItsFormula) {
  std::mt19937 r(GetParam());
  const int64_t n = pick(r, 1, 4), k = pick(r, 1, 9), m = pick(r, 1, 5), residual_shift = pick(r, 0, 9);
  const Tensor x = random_tensor(r, kI8, {n, k}, -128, 127), w = random_tensor(r, kI8, {m, k}, -128, 127);
  const Tensor bias = random_tensor(r, kI32, {m}, -30000, 30000), residual = random_tensor(r, kI8, {n, m}, -128, 127);
  Attributes attributes = with_epilogue(r, {});
  attributes.set("residual_shift", residual_shift);
  Tensor y = *Tensor::zeros(kI8, {n, m});
  for (int64_t e = 0; e < y.size(); ++e) {
    int64_t acc = bias.int_at(e % m) + residual.int_at(e) * (int64_t{1} << residual_shift);
    for (int64_t i = 0; i < k; ++i) acc += x.int_at(e / m * k + i) * w.int_at(e % m * k + i);
    y.set_int(e, finished(acc, attributes));
  }
  expect_both("fused.QDense", {x, w, bias, residual}, attributes, y);
}

TEST_P(Fused, SumIsItsFormula) {
  std::mt19937 r(GetParam());
  const Dims dims{pick(r, 1, 3), pick(r, 1, 9)};
  const Tensor a = random_tensor(r, kI8, dims, -128, 127), b = random_tensor(r, kI8, dims, -128, 127);
  Attributes attributes = with_epilogue(r, {});
  const int64_t a_shift = pick(r, 0, 12), b_shift = pick(r, 0, 12);
  attributes.set("a_shift", a_shift);
  attributes.set("b_shift", b_shift);
  Tensor y = *Tensor::zeros(kI8, dims);
  for (int64_t i = 0; i < y.size(); ++i) {
    y.set_int(i, finished(a.int_at(i) * (int64_t{1} << a_shift) + b.int_at(i) * (int64_t{1} << b_shift), attributes));
  }
  expect_both("fused.QAdd", {a, b}, attributes, y);
}

TEST_P(Fused, PoolsAreTheirFormulas) {
  std::mt19937 r(GetParam());
  const Windows w = Windows::random(r);
  const Tensor x = random_tensor(r, kI8, {w.batch, w.channels, w.rows, w.columns}, -128, 127);
  Attributes attributes = w.attributes();
  attributes.set("kernel_shape", Attribute::Integers{w.kernel[0], w.kernel[1]});
  const Tensor largest = w.each(w.channels, [&](int64_t, int64_t n, int64_t c, int64_t i, int64_t j) {
    int64_t most = -128;
    w.for_taps(x, n, c, i, j, [&](int64_t, int64_t value) { most = std::max(most, value); });
    return most;
  });
  expect_both("fused.QMaxPool", {x}, attributes, largest);
  attributes = with_epilogue(r, attributes);
  const int64_t multiplier = pick(r, 1, 500);
  attributes.set("multiplier", multiplier);
  const Tensor mean = w.each(w.channels, [&](int64_t, int64_t n, int64_t c, int64_t i, int64_t j) {
    int64_t sum = 0;
    w.for_taps(x, n, c, i, j, [&](int64_t, int64_t value) { sum += value; });
    return finished(sum * multiplier, attributes);
  });
  expect_both("fused.QAvgPool", {x}, attributes, mean);
}

// Accumulators are registers of 32 bits.
TEST(FusedEpilogue, SumsWrapAndHalvesRoundUp) {
  const Epilogue half{.shift = 1};
  EXPECT_EQ(half(3), 2);
  EXPECT_EQ(half(static_cast<uint32_t>(-3)), -1);
  EXPECT_EQ(half(0x7fffffffu), -128);  // the rounding wraps
  EXPECT_EQ((Epilogue{.shift = 30}(0x40000000u)), 1);
  const Tensor x = Tensor::of<int8_t>({1, 1}, {1}), w = Tensor::of<int8_t>({1, 1}, {1});
  const Tensor bias = Tensor::of<int32_t>({1}, {INT32_MAX});
  expect_both("fused.QDense", {x, w, bias}, {{"shift", int64_t{30}}}, Tensor::of<int8_t>({1, 1}, {-2}));
}

TEST(FusedRules, TypesAndShapes) {
  EXPECT_EQ(inferred("(%x: i8[N,4,8,8], %w: i8[6,2,3,3], %b: i32[6]) -> %y { %y = fused.QConv %x, %w, %b {group = 2, "
                     "pads = [1, 1, 1, 1], strides = [2, 2]} }"),
            "i8[N,6,4,4]");
  EXPECT_EQ(inferred("(%x: i8[N,4,8,8], %w: i8[6,4,1,1], %r: i8[2,6,8,8]) -> %y { %y = fused.QConv %x, %w, _, %r }")
                .substr(0, 5),
            "i8[2,");
  EXPECT_THAT(inferred("(%x: i8[1,4,8,8], %w: i8[6,4,1,1], %r: i8[1,6,7,8]) -> %y { %y = fused.QConv %x, %w, _, %r }"),
              HasSubstr("the residual of fused.QConv"));
  EXPECT_THAT(inferred("(%x: i8[1,4,8,8], %w: i8[6,3,1,1]) -> %y { %y = fused.QConv %x, %w }"),
              HasSubstr("x has 4 channels, w takes 3"));
  EXPECT_THAT(inferred("(%x: u8[1,4,8,8], %w: i8[6,4,1,1]) -> %y { %y = fused.QConv %x, %w }"), HasSubstr("error: "));
  EXPECT_EQ(inferred("(%x: i8[N,5], %w: i8[3,5]) -> %y { %y = fused.QDense %x, %w }"), "i8[N,3]");
  EXPECT_THAT(inferred("(%x: i8[N,5], %w: i8[3,4]) -> %y { %y = fused.QDense %x, %w }"),
              HasSubstr("they must agree in their dim 1"));
  EXPECT_EQ(inferred("(%a: i8[N,5], %b: i8[2,M]) -> %y { %y = fused.QAdd %a, %b }"), "i8[2,5]");
  EXPECT_THAT(inferred("(%a: i8[4,5], %b: i8[1,5]) -> %y { %y = fused.QAdd %a, %b }"), HasSubstr("the operands of"));
  EXPECT_EQ(
      inferred("(%x: i8[N,5,8,8]) -> (%y, %z) { %y = fused.QMaxPool %x {kernel_shape = [2, 2], strides = [2, 2]}\n"
               "%z = fused.QAvgPool %x {kernel_shape = [8, 8]} }"),
      "i8[N,5,4,4] i8[N,5,1,1]");
}

TEST(FusedRules, NumbersOutOfRangeAreRefused) {
  const auto conv = [](std::string_view attributes) {
    return inferred(str("(%x: i8[1,4,8,8], %w: i8[6,4,1,1]) -> %y { %y = fused.QConv %x, %w {", attributes, "} }"));
  };
  EXPECT_EQ(conv("shift = 30, clip_min = 0"), "i8[1,6,8,8]");
  EXPECT_THAT(conv("shift = 31"), HasSubstr("is 31, which is outside [0, 30]"));
  EXPECT_THAT(conv("shift = -1"), HasSubstr("is -1, which is outside [0, 30]"));
  EXPECT_THAT(conv("clip_max = 128"), HasSubstr("is 128, which is outside [-128, 127]"));
  EXPECT_THAT(conv("clip_min = 5, clip_max = 4"), HasSubstr("is 4, which is outside [5, 127]"));
  EXPECT_THAT(conv("residual_shift = 2"), HasSubstr("it has no residual"));
  EXPECT_THAT(inferred("(%a: i8[4], %b: i8[4]) -> %y { %y = fused.QAdd %a, %b {b_shift = 24} }"),
              HasSubstr("is 24, which is outside [0, 23]"));
  const auto mean = [](std::string_view attributes) {
    return inferred(str("(%x: i8[1,4,8,8]) -> %y { %y = fused.QAvgPool %x {kernel_shape = [8, 8]", attributes, "} }"));
  };
  EXPECT_THAT(mean(", multiplier = 0"), HasSubstr("the least is 1"));
  EXPECT_EQ(mean(", multiplier = 262143"), "i8[1,4,1,1]");
  EXPECT_THAT(mean(", multiplier = 262144"), HasSubstr("the greatest is 262143"));
}

TEST(FusedText, PrintsWhatItParses) {
  const std::string text =
      "graph @g(%x: i8[1,4,8,8], %w: i8[6,4,1,1], %b: i32[6], %r: i8[1,6,8,8]) -> %y {\n"
      "  %y = fused.QConv %x, %w, %b, %r \"conv1\" {clip_min = 0, residual_shift = 3, shift = 7} : i8[1,6,8,8]\n"
      "}\n";
  const auto graph = parse_graph(text);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ(print(**graph), text);
}

}  // namespace
}  // namespace tenon::fused
