// The values that bounds accept and refuse, for single operators and for bodies.
#include <tenon/snippet/body/body_bounds.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
float after(float value, int steps = 1) {
  for (; steps > 0; --steps) value = std::nextafterf(value, INFINITY);
  for (; steps < 0; ++steps) value = std::nextafterf(value, -INFINITY);
  return value;
}

Bounds between(float low, float high) { return {{bits(low)}, {bits(high)}, {0}}; }
Bounds at(float value) { return between(value, value); }
Bounds integers(uint64_t low, uint64_t high) { return {{low}, {high}, {0}}; }

Bounds bound(Name op, std::vector<Bounds> operands, const LaneRules& rules = {}, ElementType from = kF32,
             ElementType to = kF32, const Attributes& attributes = {}) {
  const std::vector<ElementType> types(operands.size(), from);
  auto made = bound_lanes(op, attributes, types, operands, to, rules);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *std::move(made);
}
bool within(const Bounds& bounds, float value) { return is_within(bounds, kF32, 0, bits(value)); }

TEST(BodyBounds, WhatIsRoundedOnceOfExactOperandsIsOneNumber) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    const Bounds made = bound(op, {at(1.1f), at(0.3f)});
    EXPECT_EQ(made.low, made.high) << op;
    EXPECT_FALSE(made.open[0]);
  }
  const Bounds quotient = bound("Div", {at(1), at(3)});
  EXPECT_TRUE(within(quotient, 1.0f / 3));
  EXPECT_FALSE(within(quotient, after(1.0f / 3)));
  EXPECT_FALSE(within(quotient, NAN));
}

TEST(BodyBounds, AProductThatIsNotRoundedSpreadsByOneFloat) {
  const Bounds product = bound("Mul", {at(1.1f), at(1.1f)}, {.exact = true});
  const float rounded = 1.1f * 1.1f;
  EXPECT_TRUE(within(product, rounded));
  EXPECT_EQ(after(std::bit_cast<float>(static_cast<uint32_t>(product.low[0]))),
            std::bit_cast<float>(static_cast<uint32_t>(product.high[0])));
  EXPECT_EQ(bound("Mul", {at(1.5f), at(2)}, {.exact = true}).low[0], bits(3));
}

// Units are those of the exact result: that of e^0 = 1 is twice that of the floats below it.
TEST(BodyBounds, UnitsAreThoseOfTheExactResult) {
  const Bounds made = bound("Exp", {at(0)}, {.max_ulp = 2.5});
  EXPECT_TRUE(within(made, 1 - 2.5f * 0x1p-23f));
  EXPECT_FALSE(within(made, 1 - 3.0f * 0x1p-23f));
  EXPECT_TRUE(within(made, 1 + 2 * 0x1p-23f));
  EXPECT_FALSE(within(made, 1 + 4 * 0x1p-23f));
  // The exact results are from 1 - 2^-23 to 1. The lower bound is that of 1, whose unit is larger.
  const Bounds wide = bound("Exp", {between(-0x1p-23f, 0)}, {.max_ulp = 2.5});
  EXPECT_TRUE(within(wide, 1 - 2.5f * 0x1p-23f));
  EXPECT_FALSE(within(wide, 1 - 3.0f * 0x1p-23f));
  const Bounds tiny = bound("Exp", {at(-100)}, {.max_ulp = 1.5});
  EXPECT_TRUE(within(tiny, static_cast<float>(std::exp(-100.0)) + 0x1p-149f));
  EXPECT_FALSE(within(tiny, static_cast<float>(std::exp(-100.0)) + 3 * 0x1p-149f));
}

TEST(BodyBounds, FunctionsThatTurnHoldTheirExtremes) {
  EXPECT_TRUE(within(bound("Cosh", {between(-1, 2)}), 1));
  EXPECT_TRUE(within(bound("Abs", {between(-1, 2)}), 0));
  const Bounds sine = bound("Sin", {between(1.5f, 1.7f)});
  EXPECT_TRUE(within(sine, 1));
  EXPECT_FALSE(within(sine, 1.01f));
  EXPECT_TRUE(within(bound("Gelu", {between(-1.5f, -0.1f)}, {}, kF32, kF32, {{"approximate", std::string("none")}}),
                     -0.16997f));
  EXPECT_FALSE(within(bound("Tanh", {between(0, 1)}), 0.8f));
}

TEST(BodyBounds, JumpsAllowBothSides) {
  const Bounds floor = bound("Floor", {between(after(2, -1), 2)});
  EXPECT_TRUE(within(floor, 1) && within(floor, 2));
  EXPECT_FALSE(within(floor, 3));
  const auto compare = [](const char* op, const Bounds& a, const Bounds& b) {
    const Bounds made = bound(op, {a, b}, {}, kF32, kBool);
    return std::pair(made.low[0], made.high[0]);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(compare("Less", between(0, 1), at(2)), Pair(1, 1));
  EXPECT_EQ(compare("Less", between(0, 3), at(2)), Pair(0, 1));
  EXPECT_EQ(compare("Equal", between(0, 2), at(1)), Pair(0, 1));  // unequal at both ends
  EXPECT_EQ(compare("NotEqual", between(0, 2), at(3)), Pair(1, 1));
  const Bounds whole = bound("Convert", {between(6.9f, 7.1f)}, {}, kF32, kI32);
  EXPECT_EQ(whole.low[0], 6u);
  EXPECT_EQ(whole.high[0], 7u);
}

TEST(BodyBounds, WhatCannotBeToldIsOpen) {
  EXPECT_TRUE(bound("Div", {at(1), between(-1, 1)}).open[0]);
  EXPECT_FALSE(bound("Div", {at(1), at(0)}).open[0]);
  EXPECT_TRUE(bound("Div", {at(1), between(-0.0f, 0)}).open[0]);
  EXPECT_TRUE(bound("Tan", {between(1.5f, 1.6f)}).open[0]);
  EXPECT_TRUE(bound("Sqrt", {between(-1, 1)}).open[0]);
  EXPECT_TRUE(bound("Fmod", {between(2.9f, 3.1f), at(3)}).open[0]);
  EXPECT_TRUE(bound("Convert", {integers(255, 256)}, {}, kI32, kF32).open[0] == 0);
  EXPECT_TRUE(bound("Add", {integers(0x7fffffff, 0x7fffffff), integers(0, 1)}, {}, kI32, kI32).open[0]);
  EXPECT_FALSE(bound("Add", {integers(5, 6), integers(0, 1)}, {}, kI32, kI32).open[0]);
  EXPECT_TRUE(bound("BitwiseXor", {integers(5, 6), integers(1, 1)}, {}, kI32, kI32).open[0]);
}

TEST(BodyBounds, TheGreaterOfTheZerosMayBeEither) {
  const Bounds zero = bound("Max", {at(0.0f), at(-0.0f)});
  EXPECT_EQ(zero.low[0], bits(-0.0f));
  EXPECT_EQ(zero.high[0], bits(0.0f));
}

// ---- Bodies ----

std::vector<Bounds> bounds_of(std::string_view text, std::vector<std::vector<float>> inputs, const Dims& extents,
                              const BoundRules& rules) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  const Op* last = nullptr;
  for (const Op& op : (*graph)->body()) last = &op;
  const auto body = make_body(*last);
  EXPECT_TRUE(body.ok()) << body.error().to_string();
  std::vector<const void*> addresses;
  for (const auto& input : inputs) addresses.push_back(input.data());
  auto made = bound_body(*body, extents, addresses, rules);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *std::move(made);
}

const char* const kProductSum = R"(graph @g(%a: f32[N], %b: f32[N], %c: f32[N]) -> %y {
  %y = snippet.Subgraph %a, %b, %c ((%0: f32[N], %1: f32[N], %2: f32[N]) -> %4 {
    %3 = Mul %0, %1 : f32[N]
    %4 = Add %3, %2 : f32[N]
  }) : f32[N]
})";

const char* const kLessProduct = R"(graph @g(%a: f32[N], %b: f32[N], %c: f32[N]) -> %y {
  %y = snippet.Subgraph %a, %b, %c ((%0: f32[N], %1: f32[N], %2: f32[N]) -> %5 {
    %3 = Mul %0, %1 : f32[N]
    %4 = Neg %3 : f32[N]
    %5 = Add %4, %2 : f32[N]
  }) : f32[N]
})";

// c - a * b, whose product is negated before the addition, is also a single operation.
TEST(BodyBounds, ContractionGoesThroughASign) {
  const float a = 1 + 0x1p-12f, c = 1;
  const float fused = std::fma(-a, a, c), apart = c - a * a;
  ASSERT_NE(fused, apart);
  const auto strict = bounds_of(kLessProduct, {{a}, {a}, {c}}, {1}, {});
  EXPECT_FALSE(is_within(strict[0], kF32, 0, bits(fused)));
  const auto contracted = bounds_of(kLessProduct, {{a}, {a}, {c}}, {1}, {.contract = true});
  EXPECT_TRUE(is_within(contracted[0], kF32, 0, bits(apart)));
  EXPECT_TRUE(is_within(contracted[0], kF32, 0, bits(fused)));
  EXPECT_FALSE(is_within(contracted[0], kF32, 0, bits(fused * 1.01f)));
}

TEST(BodyBounds, ContractionIsAllowedWhereItIsSaid) {
  const float a = 1 + 0x1p-12f, c = -1;
  const float fused = std::fma(a, a, c), apart = a * a + c;
  ASSERT_NE(fused, apart);
  const auto strict = bounds_of(kProductSum, {{a}, {a}, {c}}, {1}, {});
  EXPECT_TRUE(is_within(strict[0], kF32, 0, bits(apart)));
  EXPECT_FALSE(is_within(strict[0], kF32, 0, bits(fused)));
  const auto contracted = bounds_of(kProductSum, {{a}, {a}, {c}}, {1}, {.contract = true});
  EXPECT_TRUE(is_within(contracted[0], kF32, 0, bits(apart)));
  EXPECT_TRUE(is_within(contracted[0], kF32, 0, bits(fused)));
  EXPECT_FALSE(is_within(contracted[0], kF32, 0, bits(fused * 1.01f)));
}

// x (1 + erf x) may be computed without rounding the sum; a sum that is not multiplied is rounded.
TEST(BodyBounds, ContractionGoesThroughGates) {
  const std::string gate = R"(graph @g(%x: f32[N], %c: f32[N]) -> %y {
  %y = snippet.Subgraph %x, %c ((%0: f32[N], %1: f32[N]) -> %5 {
    %2 = Constant {value = dense<f32[]: 1>}
    %3 = Erf %0 : f32[N]
    %4 = Add %3, %2 : f32[N]
    %5 = Mul %4, OTHER : f32[N]
  }) : f32[N]
})";
  const auto of = [&](const char* other, const char* product, const BoundRules& rules) {
    std::string text = gate;
    text.replace(text.find("OTHER"), 5, other);
    text.replace(text.find("Mul"), 3, product);
    return bounds_of(text.c_str(), {{0.3f}, {1}}, {1}, rules)[0];
  };
  const double x = 0.3f;
  const auto once = static_cast<float>(x * (1 + std::erf(x)));
  const float sum = 1 + static_cast<float>(std::erf(x)), apart = 0.3f * sum;
  ASSERT_NE(once, apart);
  EXPECT_TRUE(is_within(of("%0", "Mul", {}), kF32, 0, bits(apart)));
  EXPECT_FALSE(is_within(of("%0", "Mul", {}), kF32, 0, bits(once)));
  for (const float value : {once, apart})
    EXPECT_TRUE(is_within(of("%0", "Mul", {.contract = true}), kF32, 0, bits(value)));
  EXPECT_FALSE(is_within(of("%0", "Mul", {.contract = true}), kF32, 0, bits(once * (1 + 0x1p-20f))));
  EXPECT_TRUE(is_within(of("%1", "Sub", {.contract = true}), kF32, 0, bits(sum - 1)));
  EXPECT_FALSE(is_within(of("%1", "Sub", {.contract = true}), kF32, 0, bits(static_cast<float>(std::erf(x)))));
}

// %9 is FUNCTION of the polynomial %8; REST has operators on it, of which %12 is the last. %c is also available.
const char* const kTable = R"(graph @g(%x: f32[N], %c: f32[N]) -> (out0: %y, out1: %z) {
  %y, %z = snippet.Subgraph %x, %c ((%0: f32[N], %1: f32[N]) -> (out0: FIRST, out1: SECOND) {
    %2 = Constant {value = dense<f32[]: 1>}
    %3 = Constant {value = dense<f32[]: 0.5>}
    %4 = Constant {value = dense<f32[]: 3>}
    %5 = Mul %0, %0 : f32[N]
    %6 = Mul %5, %OTHER : f32[N]
    %7 = Mul %6, %4 : f32[N]
    %8 = Add %7, %OTHER : f32[N]
    %9 = FUNCTION %8 : f32[N]
REST  }) : f32[N], f32[N]
})";

struct TableCase {
  std::string rest;  // computes %12 from %9
  double scale = 1, plus = 1;
  std::string other = "0", second = "%8", function = "Erf";
};

// Whether the bounds of %12 for x = c = 0.1 accept its value with an error of `off` in %9.
bool allows(const TableCase& one, double off, const BoundRules& rules) {
  std::string text = kTable;
  const auto replace = [&](std::string_view name, const std::string& by) {
    for (size_t at = 0; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), by);
  };
  replace("REST", one.rest);
  replace("OTHER", one.other);
  replace("FIRST", "%12");
  replace("SECOND", one.second);
  replace("FUNCTION", one.function);
  const float x = 0.1f;
  const auto value = [&](double y) {
    return one.function == "Erf" ? std::erf(y) : one.function == "Tanh" ? std::tanh(y) : std::atan(y);
  };
  const double at = x + 3.0 * x * x * x, f = value(at) + off;
  const auto made = bounds_of(text, {{x}, {x}}, {1}, rules)[0];
  return is_within(made, kF32, 0, bits(static_cast<float>(one.scale * f + one.plus)));
}

TEST(BodyBounds, TablesAreOffBySoMuchWhereOnlySumsOfAtLeastTheirSizeReadThem) {
  constexpr double kError = 0x1p-12, kNear = 0.99 * kError, kFar = 1.01 * kError;
  const BoundRules rules{.contract = true, .table_error = kError};
  const std::string sum = "    %12 = Add %9, %2 : f32[N]\n";
  const TableCase tables[] = {
      {sum},
      {sum, 1, 1, "0", "%8", "Tanh"},
      {"    %12 = Sub %2, %9 : f32[N]\n", -1, 1},
      {"    %10 = Neg %9 : f32[N]\n    %12 = Add %10, %4 : f32[N]\n", -1, 3},
      {"    %10 = Mul %9, %3 : f32[N]\n    %12 = Add %3, %10 : f32[N]\n", 0.5, 0.5},
      {"    %10 = Div %9, %3 : f32[N]\n    %12 = Add %10, %4 : f32[N]\n", 2, 3},
      {"    %12 = Add %9, %2 : f32[N]\n    %13 = Sub %9, %4 : f32[N]\n", 1, 1, "0", "%13"},
      {"    %10 = Sub %4, %2 : f32[]\n    %12 = Add %9, %10 : f32[N]\n", 1, 2},
      {sum, 1, 1, "1"},  // the argument of the table is a sum of two values
  };
  for (const TableCase& one : tables)
    for (const double sign : {-1.0, 1.0}) {
      EXPECT_TRUE(allows(one, sign * kNear, rules)) << one.rest;
      EXPECT_FALSE(allows(one, sign * kFar, rules)) << one.rest;
      EXPECT_FALSE(allows(one, sign * kNear, {.contract = true})) << one.rest;
      EXPECT_FALSE(allows(one, sign * kNear, {.contract = true, .table_error = kError, .in_any_precision = true}))
          << "the reference has no tables: " << one.rest;
    }
  const TableCase others[] = {
      {"    %12 = Add %9, %3 : f32[N]\n", 1, 0.5},  // the addend is smaller than the table's values
      {"    %10 = Mul %9, %4 : f32[N]\n    %12 = Add %10, %2 : f32[N]\n", 3, 1},
      {"    %10 = Div %9, %3 : f32[N]\n    %12 = Add %10, %2 : f32[N]\n", 2, 1},
      {"    %10 = Mul %9, %4 : f32[N]\n    %12 = Mul %10, %3 : f32[N]\n", 1.5, 0},
      {"    %10 = Sub %3, %4 : f32[]\n    %11 = Add %10, %4 : f32[]\n    %12 = Add %9, %11 : f32[N]\n", 1, 0.5},
      {sum, 1, 1, "0", "%9"},                                    // %9 is an output
      {sum + "    %13 = Atan %9 : f32[N]\n", 1, 1, "0", "%13"},  // other operators read %9
      {sum + "    %13 = Add %9, %3 : f32[N]\n", 1, 1, "0", "%13"},
      {sum + "    %13 = Mul %9, %0 : f32[N]\n", 1, 1, "0", "%13"},
      {sum + "    %10 = Neg %9 : f32[N]\n", 1, 1, "0", "%10"},
      {sum, 1, 1, "0", "%8", "Atan"},
  };
  for (const TableCase& one : others)
    for (const double sign : {-1.0, 1.0}) EXPECT_FALSE(allows(one, sign * kNear, rules)) << one.rest;
}

// The argument is 1024 (x^3 - 1), which rounding of x x changes by up to 2^-14.
TEST(BodyBounds, TablesAreOfPolynomialsThatAreNotRounded) {
  const std::string text = R"(graph @g(%x: f32[N], %c: f32[N]) -> (out0: %y, out1: %z) {
  %y, %z = snippet.Subgraph %x, %c ((%0: f32[N], %1: f32[N]) -> (out0: %9, out1: %6) {
    %2 = Constant {value = dense<f32[]: 1>}
    %3 = Constant {value = dense<f32[]: 1024>}
    %4 = Mul %0, %0 : f32[N]
    %5 = Mul %4, %OTHER : f32[N]
    %6 = Sub %5, %2 : f32[N]
    %7 = Mul %6, %3 : f32[N]
    %8 = Tanh %7 : f32[N]
    %9 = Add %8, %2 : f32[N]
  }) : f32[N], f32[N]
})";
  const float x = 1 + 0x1p-12f, rounded = x * x * x - 1;
  const double exact = static_cast<double>(x) * x * x - 1;
  const auto sum_of = [](double y) { return bits(static_cast<float>(1 + std::tanh(1024 * y))); };
  const auto of = [&](const std::string& other, double error) {
    std::string one = text;
    one.replace(one.find("OTHER"), 5, other);
    return bounds_of(one, {{x}, {x}}, {1}, {.contract = true, .table_error = error});
  };
  constexpr double kSmall = 0x1p-60;
  for (const auto& [other, error] : {std::pair("0", kSmall), std::pair("0", 0.0), std::pair("1", kSmall)}) {
    const auto made = of(other, error);
    // With x^2 c there is no table, since c is another value.
    EXPECT_EQ(is_within(made[0], kF32, 0, sum_of(exact)), error > 0 && other[0] == '0') << other << " " << error;
    EXPECT_TRUE(is_within(made[0], kF32, 0, sum_of(rounded)));
    // The other output is the rounded polynomial.
    EXPECT_TRUE(is_within(made[1], kF32, 0, bits(rounded)));
    EXPECT_FALSE(is_within(made[1], kF32, 0, bits(static_cast<float>(exact))));
  }
}

TEST(BodyBounds, ASumMayBeTakenInAnyOrder) {
  const char* const kSum = R"(graph @g(%x: f32[4]) -> %y {
  %axes = Constant {value = dense<i64[1]: 0>}
  %y = ReduceSum %x, %axes {keepdims = 0}
})";
  const std::vector<float> x = {0x1p24f, 1, 1, -0x1p24f};
  const auto made = bounds_of(kSum, {x}, {4}, {});
  for (const float sum : {0.0f, 1.0f, 2.0f}) EXPECT_TRUE(is_within(made[0], kF32, 0, bits(sum))) << sum;
  EXPECT_FALSE(is_within(made[0], kF32, 0, bits(20)));
  const auto infinite = bounds_of(kSum, {{INFINITY, 1, 1, 1}}, {4}, {});
  EXPECT_FALSE(is_within(infinite[0], kF32, 0, bits(3)));
  const auto nan = bounds_of(kSum, {{INFINITY, 1, -INFINITY, 1}}, {4}, {});
  EXPECT_TRUE(is_within(nan[0], kF32, 0, bits(NAN)));
  EXPECT_FALSE(is_within(nan[0], kF32, 0, bits(INFINITY)));
}

// e^(x - m) computed as e^(x - g) e^(g - m), with both factors correctly rounded. The error is up to 1.5 units of the
// argument, which are many units of the result. The rule permits this error, and not much more.
TEST(BodyBounds, PowersMayBeMovedToTheGreatest) {
  constexpr unsigned kSeed = 20261128;
  const char* const kPower = R"(graph @g(%x: f32[3]) -> %y {
  %y = snippet.Subgraph %x ((%0: f32[3]) -> %4 {
    %1 = Constant {value = dense<i64[1]: 0>} : i64[1]
    %2 = ReduceMax %0, %1 {keepdims = 1} : f32[1]
    %3 = Sub %0, %2 : f32[3]
    %4 = Exp %3 : f32[3]
  }) : f32[3]
})";
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> any(-30, 30);
  const auto power = [](float x) { return static_cast<float>(std::exp(static_cast<double>(x))); };
  const BoundRules plain{.max_ulp = [](const Body&, const BodyNode& node) { return node.op == "Exp" ? 1.0 : 0.0; }};
  BoundRules moved = plain;
  moved.moved_powers = true;
  int beyond_plain = 0;
  for (int i = 0; i < 2000; ++i) {
    float x = any(random), g = any(random), m = any(random);
    if (x > g) std::swap(x, g);
    if (g > m) std::swap(g, m);
    if (x > g) std::swap(x, g);
    SCOPED_TRACE(str("seed ", kSeed, ": ", x, " ", g, " ", m));
    const float made = power(x - g) * power(g - m);
    const auto allowed = bounds_of(kPower, {{x, g, m}}, {3}, moved);
    EXPECT_TRUE(is_within(allowed[0], kF32, 0, bits(made)));
    const float off = 4 * (std::nextafterf(m - x, INFINITY) - (m - x)) + 8 * 0x1p-23f;
    EXPECT_FALSE(is_within(allowed[0], kF32, 0, bits(made * (1 + 3 * off))));
    beyond_plain += !is_within(bounds_of(kPower, {{x, g, m}}, {3}, plain)[0], kF32, 0, bits(made));
    EXPECT_TRUE(is_within(allowed[0], kF32, 2, bits(1)));
  }
  EXPECT_GT(beyond_plain, 0);
}

TEST(BodyBounds, TheReferenceMayLeaveRoundingsOut) {
  const float a = 1 + 0x1p-12f;
  const auto made = bounds_of(kProductSum, {{a}, {a}, {-1}}, {1}, {.in_any_precision = true});
  EXPECT_TRUE(is_within(made[0], kF32, 0, bits(std::fma(a, a, -1.0f))));
  EXPECT_TRUE(within(bound("Div", {at(1), at(3)}, {.exact = true}), after(1.0f / 3, -1)));
}

}  // namespace
}  // namespace tenon::snippet
