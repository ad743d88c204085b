#include <tenon/expr/bounds.hpp>

#include <gtest/gtest.h>

#include <tenon/expr/text.hpp>

#include "expr/naive.hpp"

namespace tenon {
namespace {

using test::draw;
using test::Random;

const Expr n = Expr::symbol("n"), m = Expr::symbol("m"), x = Expr::symbol("x");

Interval interval(std::optional<int64_t> lower, std::optional<int64_t> upper) { return {lower, upper}; }

TEST(Bounds, OfEveryKind) {
  const Assumptions box = {{"n", {1, 10}}, {"m", {-3, 4}}};
  const std::pair<const char*, Interval> rows[] = {
      {"5", {5, 5}},
      {"n", {1, 10}},
      {"x", {}},
      {"2*n - m + 1", {-1, 24}},
      {"n*m", {-30, 40}},
      {"m*m", {0, 16}},
      {"m floordiv 2", {-2, 2}},
      {"20 floordiv n", {2, 20}},
      {"n mod 4", {0, 3}},
      {"x mod n", {0, 9}},
      {"min(n, m)", {-3, 4}},
      {"max(x, n)", {1, std::nullopt}},
      {"select(x < n, n, m)", {-3, 10}},
      {"n < 11", {1, 1}},
      {"m == 5", {0, 0}},
      {"n - m < 20", {1, 1}},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(bounds(parse_expr(text).value(), box), expected) << text;
}

TEST(Bounds, SeeThroughFloordiv) {
  // Interval arithmetic alone gives [-10, 10] and worse.
  const Assumptions box = {{"a", {0, 10}}, {"b", {0, 10}}, {"n", {0, 1000}}};
  EXPECT_EQ(bounds(parse_expr("(a - b) floordiv 2").value(), box), interval(-5, 5));
  EXPECT_EQ(bounds(n + 1 - 4 * floordiv(n, 4), box), interval(1, 4));
  EXPECT_EQ(bounds(n - 2 * floordiv(n, 4) - 2 * floordiv(n + 2, 4), box).upper, 2);
}

TEST(Bounds, EndsOfInt64) {
  EXPECT_EQ(bounds(n + 1, {{"n", {0, INT64_MAX}}}), interval(1, std::nullopt));
  EXPECT_EQ(bounds(n - 1, {{"n", {INT64_MIN, 0}}}), interval(std::nullopt, -1));
  EXPECT_EQ(bounds(n * n, {}), interval(0, std::nullopt));
  EXPECT_EQ(bounds(n * n * n * n * n, {{"n", {INT64_MAX - 1, INT64_MAX}}}).upper, std::nullopt);
}

TEST(Prove, WhatHoldsAndNotWhatDoesNot) {
  const Assumptions positive = {{"n", {1, std::nullopt}}, {"m", {1, std::nullopt}}};
  EXPECT_TRUE(prove_le(4 * floordiv(n, 4), n));
  EXPECT_TRUE(prove_lt(n, 4 * floordiv(n, 4) + 4));
  EXPECT_TRUE(prove_lt(n, n + m, positive));
  EXPECT_TRUE(prove_lt(0, n * m, positive));
  EXPECT_TRUE(prove_eq(2 * n - 4 * floordiv(n, 4), n + mod(n, 4)));
  EXPECT_TRUE(prove_eq(mod(n, m), n - m * floordiv(n, m), positive));
  EXPECT_TRUE(prove_eq(floordiv(n * m, m), n, positive));
  EXPECT_TRUE(prove_le(min(n, m), n, positive));
  EXPECT_FALSE(prove_eq(floordiv(n * m, m), n));
  EXPECT_FALSE(prove_le(n, m));
  EXPECT_FALSE(prove_lt(n, n));
  EXPECT_FALSE(prove_eq(n, m));
  EXPECT_FALSE(prove_le(n, 4 * floordiv(n, 4)));
}

TEST(Simplify, UsesTheAssumptions) {
  const Assumptions box = {{"n", {0, 7}}, {"m", {1, std::nullopt}}, {"x", {3, 3}}};
  EXPECT_EQ(simplify(mod(n, 8), box), n);
  EXPECT_EQ(simplify(floordiv(n * m, m), box), n);
  EXPECT_EQ(simplify(max(n, -1) + x, box), n + 3);
  const Expr free = Expr::symbol("free");
  EXPECT_EQ(simplify(min(free, free + n), box), free) << "though nothing is known of both";
  EXPECT_EQ(simplify(max(max(free, free + n - 1), free - n), box), max(free, free + n - 1));
  EXPECT_EQ(simplify(select(less(n, 8), n, m), box), n);
  EXPECT_EQ(simplify(mod(n, 7), box), mod(n, 7));
}

TEST(Monotonic, KnownCases) {
  const Assumptions positive = {{"n", {0, 100}}, {"m", {1, 8}}};
  EXPECT_TRUE(is_non_decreasing_in(floordiv(n * m + 3, 4), "n", positive));
  EXPECT_TRUE(is_non_decreasing_in(min(n, 5) + 2 * n, "n"));
  EXPECT_TRUE(is_non_decreasing_in(n * n, "n", positive));
  EXPECT_TRUE(is_non_decreasing_in(m, "n"));
  EXPECT_TRUE(is_non_increasing_in(-n + 7, "n"));
  EXPECT_TRUE(is_non_increasing_in(floordiv(m - n, 2), "n"));
  EXPECT_FALSE(is_non_decreasing_in(mod(n, 4), "n"));
  EXPECT_FALSE(is_non_decreasing_in(n * n, "n"));
  EXPECT_FALSE(is_non_decreasing_in(-n, "n"));
  EXPECT_FALSE(is_non_decreasing_in(n * m, "n"));
}

TEST(Alignment, KnownCases) {
  const SymbolValues align = {{"n", 8}, {"m", 6}};
  EXPECT_EQ(alignment_of(n + 4, align), 4);
  EXPECT_EQ(alignment_of(n * m, align), 48);
  EXPECT_EQ(alignment_of(floordiv(n, 4), align), 2);
  EXPECT_EQ(alignment_of(min(n, m), align), 2);
  EXPECT_EQ(alignment_of(mod(m, 4), align), 2);
  EXPECT_EQ(alignment_of(x, align), 1);
  EXPECT_EQ(alignment_of(0, align), 0);
  EXPECT_EQ(alignment_of(-12, align), 12);
}

// Random expressions in random boxes; every claim is checked at points of the box.
TEST(Bounds, ClaimsHoldAtSampledPoints) {
  int proved = 0, bounded = 0, monotonic = 0, aligned = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    const Expr e = parse_expr(test::random_text(random, static_cast<int>(seed % 4) + 1, false)).value();
    const Expr other = parse_expr(test::random_text(random, static_cast<int>(seed % 3), false)).value();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + e.to_string() + " ; " + other.to_string());
    Assumptions box;
    SymbolValues align;
    for (const auto& name : test::variables()) {
      align[name] = draw(random, 1, 6);
      const int64_t low = draw(random, -12, 12);
      box[name] = {low, low + draw(random, 0, 12)};
    }
    const Interval range = bounds(e, box);
    const bool le = prove_le(e, other, box), lt = prove_lt(e, other, box), eq = prove_eq(e, other, box);
    const bool up = is_non_decreasing_in(e, "n", box), down = is_non_increasing_in(e, "n", box);
    const Expr simple = simplify(e, box);
    const int64_t divisor = alignment_of(e, align);
    bounded += range.lower && range.upper;
    proved += le || lt || eq;
    monotonic += up != down;
    aligned += divisor != 1;
    for (int i = 0; i < 15; ++i) {
      test::Point point, multiple;
      for (const auto& [name, interval] : box) {
        point[name] = draw(random, *interval.lower, *interval.upper);
        multiple[name] = align[name] * draw(random, -9, 9);
      }
      if (const auto v = e.evaluate(multiple); v.ok()) {
        ASSERT_TRUE(divisor == 0 ? *v == 0 : *v % divisor == 0) << *v << " by " << divisor;
      }
      const auto a = e.evaluate(point);
      if (!a.ok()) continue;
      const std::string at = test::to_text(point);
      ASSERT_TRUE((!range.lower || *range.lower <= *a) && (!range.upper || *a <= *range.upper)) << *a << " at " << at;
      ASSERT_EQ(simple.evaluate(point).value(), *a) << simple << " at " << at;
      if (const auto b = other.evaluate(point); b.ok()) {
        ASSERT_TRUE((!le || *a <= *b) && (!lt || *a < *b) && (!eq || *a == *b)) << *a << ", " << *b << " at " << at;
      }
      auto later = point;
      later["n"] = draw(random, point["n"], *box["n"].upper);
      if (const auto c = e.evaluate(later); c.ok()) {
        ASSERT_TRUE((!up || *a <= *c) && (!down || *a >= *c)) << *a << " then " << *c << " at " << at;
      }
    }
  }
  EXPECT_GT(bounded, 3000);
  EXPECT_GT(proved, 500);
  EXPECT_GT(monotonic, 300);
  EXPECT_GT(aligned, 500);
}

}  // namespace
}  // namespace tenon
