#include <tenon/expr/text.hpp>

#include <gtest/gtest.h>

#include <ctime>

#include "expr/naive.hpp"

namespace tenon {
namespace {

using test::Random;

Expr parsed(std::string_view text) {
  auto e = parse_expr(text);
  EXPECT_TRUE(e.ok()) << text << ": " << (e.ok() ? "" : e.error().to_string());
  return e.ok() ? *e : Expr();
}

// Each line states what the first text simplifies to. Texts are evaluated independently of Expr, at random points.
struct Rule {
  const char *from, *to;
};
constexpr Rule kRules[] = {
    // sums
    {"n + n", "2*n"},
    {"b + a", "a + b"},
    {"n - n", "0"},
    {"n + 3 - 5", "n - 2"},
    {"2*(n + 3*m) - 6*m", "2*n"},
    {"9223372036854775807 + n + 1 - 1", "n + 9223372036854775807"},
    {"-n", "-n"},
    {"3 - (a floordiv 2)", "-(a floordiv 2) + 3"},
    // products
    {"b*a*2*a", "2*a*a*b"},
    {"(a + b)*(a - b)", "a*a - b*b"},
    {"0*(a floordiv b)", "0"},
    {"(n + 1)*(m + 1)", "m + n + m*n + 1"},
    // floordiv
    {"(4*n + 8) floordiv 4", "n + 2"},
    {"n floordiv 1", "n"},
    {"n floordiv -1", "-n"},
    {"(4*n + 7) floordiv 4", "n + 1"},
    {"(5*n - 3) floordiv 4", "n + (n + 1) floordiv 4 - 1"},
    {"(6*n + 5) floordiv 9", "(2*n + 1) floordiv 3"},
    {"(n floordiv 2 + 1) floordiv 3", "(n + 2) floordiv 6"},
    {"n floordiv -3", "-n + (2*n) floordiv 3"},
    {"(n mod 4) floordiv 4", "0"},
    {"(n mod 4 + 4*m) floordiv 4", "m"},
    {"-7 floordiv 2", "-4"},
    {"7 floordiv -2", "-4"},
    {"n*m floordiv m", "(m*n) floordiv m"},
    {"n*max(m, 1) floordiv max(m, 1)", "n"},
    {"(n*max(m, 1) + 3*max(m, 1)) floordiv max(m, 1)", "n + 3"},
    {"n ceildiv 4", "(n + 3) floordiv 4"},
    {"n ceildiv m", "-((-n) floordiv m)"},
    {"n floordiv 0", "n floordiv 0"},
    // mod
    {"(4*n + 3) mod 4", "3"},
    {"n mod 1", "0"},
    {"(5*n - 1) mod 4", "(n + 3) mod 4"},
    {"(6*n + 5) mod 9", "3*((2*n + 1) mod 3) + 2"},
    {"(n mod 12) mod 4", "n mod 4"},
    {"(n mod 4) mod 12", "n mod 4"},
    {"-7 mod 2", "1"},
    {"7 mod -2", "-1"},
    {"n mod -4", "-((3*n) mod 4)"},
    {"(n*max(m, 1) + 3) mod max(m, 1)", "3 mod max(1, m)"},
    {"n mod m", "n mod m"},
    // x, c * (x floordiv c) and x mod c
    {"4*(n floordiv 4) + n mod 4", "n"},
    {"n - 4*(n floordiv 4)", "n mod 4"},
    {"n - n mod 4", "4*(n floordiv 4)"},
    {"(n - n mod 4) floordiv 4", "n floordiv 4"},
    {"n - 3*(n floordiv 4)", "n - 3*(n floordiv 4)"},
    // min, max
    {"min(n, n)", "n"},
    {"min(b, min(a, n))", "min(a, b, n)"},
    {"min(n, n + 1)", "n"},
    {"max(n, n + 1)", "n + 1"},
    {"min(a + 1, b + 1)", "min(a, b) + 1"},
    {"max(2*a, 4*b + 6)", "2*max(a, 2*b + 3)"},
    {"min(-a, -b)", "-max(a, b)"},
    {"min(3, 7)", "3"},
    {"max(n mod 4, 0)", "n mod 4"},
    {"min(n mod 4, 2)", "min(2, n mod 4)"},
    {"max(min(a, b), n)", "max(n, min(a, b))"},
    // comparisons, select
    {"n < n", "0"},
    {"n <= n", "1"},
    {"n mod 4 < 4", "1"},
    {"4*n < 7", "n <= 1"},
    {"2*n == 3", "0"},
    {"2*n == 4*m", "n == 2*m"},
    {"select(n < m, a, a)", "a"},
    {"select(1, a, b)", "a"},
    {"select(0, a, b)", "b"},
    {"(a < b) <= (m == 9)", "(a <= b - 1) <= (0 == m - 9)"},
    {"(a < b) + 2*(m == 9)", "(a <= b - 1) + 2*(0 == m - 9)"},
    {"select(a < b, 1, 0)", "a <= b - 1"},
    // what would overflow
    {"(9223372036854775807 + 2) mod 8", "1"},
    {"(9223372036854775807 + 1 + n mod 4) mod 8", "((1) + (9223372036854775807) + (n mod 4)) + -9223372036854775808"},
    {"9223372036854775807 + 1", "((1) + (9223372036854775807))"},
    {"4611686018427387904*n*2", "((2)*(4611686018427387904)*(n))"},
};

TEST(ExprRules, HoldAtRandomPoints) {
  for (const auto& [from, to] : kRules) {
    SCOPED_TRACE(std::string(from) + "  ->  " + to);
    const Expr e = parsed(from);
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      const auto point = test::random_point(random, seed % 2 == 1);
      const auto expected = test::naive(from, point);
      if (!expected || *expected > INT64_MAX || *expected < INT64_MIN) continue;
      const auto value = e.evaluate(point);
      ASSERT_TRUE(value.ok()) << value.error().to_string() << " at " << test::to_text(point);
      ASSERT_TRUE(*value == *expected) << e << ": " << *value << " at " << test::to_text(point) << " seed " << seed;
    }
  }
}

TEST(ExprRules, GiveTheCanonicalText) {
  for (const auto& [from, to] : kRules) EXPECT_EQ(parsed(from).to_string(), to) << from;
}

// Random expressions: the value agrees with the text, and the printed form parses to the same expression.
TEST(ExprText, RandomExpressionsKeepTheirValueAndReadBack) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const bool extremes = seed % 4 == 0;
    const std::string text = test::random_text(random, static_cast<int>(seed % 5) + 1, extremes);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    const Expr e = parsed(text);
    const std::string printed = e.to_string();
    const Expr again = parsed(printed);
    ASSERT_EQ(again, e) << printed << "\n   reads back as\n" << again.to_string();
    for (int i = 0; i < 10; ++i) {
      const auto point = test::random_point(random, extremes);
      const auto expected = test::naive(text, point);
      if (!expected) continue;
      const auto value = e.evaluate(point);
      const bool fits = *expected <= INT64_MAX && *expected >= INT64_MIN;
      if (!extremes && fits) {
        ASSERT_TRUE(value.ok()) << printed << ": " << value.error().to_string();
      }
      if (!value.ok()) continue;
      ASSERT_TRUE(fits && *value == *expected) << printed << ": " << *value << " at " << test::to_text(point);
      ++compared;
    }
  }
  EXPECT_GT(compared, 20000);
}

TEST(ExprText, NamesThatNeedQuotes) {
  for (const char* name : {"", "min", "floordiv", "a b", "1st", "quote\"back\\slash\n\t\x01", "größe", "a-b"}) {
    const Expr e = Expr::symbol(name) + 1;
    EXPECT_EQ(parsed(e.to_string()), e) << e.to_string();
    EXPECT_NE(e.to_string().find('"'), std::string::npos) << e.to_string();
  }
  EXPECT_EQ((Expr::symbol("batch.0_x") + 1).to_string(), "batch.0_x + 1");
}

TEST(ExprText, BadTextIsAnError) {
  for (const char* text : {"",
                           " ",
                           "n +",
                           "* n",
                           "(n",
                           "n)",
                           "n m",
                           "min",
                           "min()",
                           "min(1",
                           "floordiv",
                           "n floordiv",
                           "1 mod",
                           "select(1, 2)",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "99999999999999999999999999",
                           "\"open",
                           "\"\\",
                           "\"\\x",
                           "\"\\q\"",
                           "\"\\x1\"",
                           "n < m < 3",
                           "1.5",
                           "n # m",
                           "min(1,)",
                           "(1, 2)",
                           "--",
                           "\xff"}) {
    const auto e = parse_expr(text);
    ASSERT_FALSE(e.ok()) << text << " read as " << *e;
    EXPECT_EQ(e.error().code(), Code::parse) << text;
    EXPECT_NE(e.error().message().find("column"), std::string::npos) << e.error().message();
  }
  EXPECT_EQ(parsed("-9223372036854775808").constant(), INT64_MIN);
}

TEST(ExprText, HostileTextIsRefusedOrCheap) {
  const auto repeat = [](std::string_view part, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += part;
    return out;
  };
  for (const std::string& text :
       {repeat("(", 100000), repeat("min(", 50000), repeat("select(1,", 20000), repeat("-(", 100000),
        repeat("(", 201) + "n" + repeat(")", 201), repeat("n+", kMaxExprTextBytes) + "n"}) {
    const auto e = parse_expr(text);
    ASSERT_FALSE(e.ok());
    EXPECT_EQ(e.error().code(), Code::resource_exhausted) << e.error().message().substr(0, 200);
  }
  EXPECT_EQ(parsed(repeat("(", 200) + "n" + repeat(")", 200)), Expr::symbol("n"));
  const std::clock_t start = std::clock();  // processor time: other load on the machine is no fault of ours
  EXPECT_EQ(parsed(repeat("-", 100001) + "n"), -Expr::symbol("n"));
  EXPECT_EQ(parsed(repeat("n+", 100000) + "n"), 100001 * Expr::symbol("n"));
  parsed(repeat("n*", 100000) + "n");
  parsed(repeat("(a+b+1)*", 20000) + "n");
  parsed(repeat("n floordiv 3 floordiv m mod ", 5000) + "7");
  std::string horner = "1", distinct;
  for (int i = 0; i < 190; ++i) horner = "x*(" + horner + "+a)";
  parsed(horner);
  for (int i = 0; i < 5000; ++i) distinct += str("s", i, " - 4*(s", i, " floordiv 4) + ");
  parsed(distinct + "1");
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 20);
}

TEST(ExprText, MutatedTextNeverCrashes) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::string text = test::random_text(random, 3, true);
    for (int i = 0; i < 3; ++i)
      text[static_cast<size_t>(test::draw(random, 0, static_cast<int64_t>(text.size()) - 1))] =
          "()+-*<=, \"\\09anm.\xff"[test::draw(random, 0, 18)];
    if (const auto e = parse_expr(text); e.ok()) {
      EXPECT_EQ(parsed(e->to_string()), *e) << "seed " << seed << ": " << text;
    }
  }
}

TEST(ExprText, DeepExpressionsPrintAnEllipsis) {
  Expr e = Expr::symbol("n");
  for (int i = 0; i < 100000; ++i) e = floordiv(e * Expr::symbol("m") + 1, 3);
  EXPECT_NE(e.to_string().find("..."), std::string::npos);
}

}  // namespace
}  // namespace tenon
