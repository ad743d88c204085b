#include <tenon/expr/expr.hpp>

#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <unordered_set>

#include <tenon/expr/text.hpp>

#include "expr/naive.hpp"

namespace tenon {
namespace {

const Expr n = Expr::symbol("n"), m = Expr::symbol("m");

TEST(Expr, ConstantsAreInlineAndFold) {
  static_assert(sizeof(Expr) == 16);
  EXPECT_TRUE(Expr().is_constant(0));
  const Expr seven = floordiv(Expr(30), 4);
  EXPECT_TRUE(seven.is_constant());
  EXPECT_EQ(seven.constant(), 7);
  EXPECT_EQ(Expr(2) + 3, 5);
  EXPECT_TRUE(seven.operands().empty());
  EXPECT_FALSE(n.is_constant());
}

TEST(Expr, WhatWouldOverflowStaysUnfolded) {
  const Expr e = Expr(INT64_MAX) + 1;
  EXPECT_EQ(e.kind(), ExprKind::unfolded_sum);
  EXPECT_FALSE(e.evaluate({}).ok());
  EXPECT_EQ((e + n).evaluate({{"n", -5}}).value(), INT64_MAX - 4);
  EXPECT_EQ((Expr(INT64_MIN) * -1).kind(), ExprKind::unfolded_product);
  EXPECT_EQ(floordiv(Expr(INT64_MIN), -1).evaluate({}).ok(), false);
  EXPECT_EQ(mod(Expr(INT64_MIN), -1), 0);
  EXPECT_EQ(less(Expr(INT64_MAX), Expr(INT64_MIN)), 0);
}

TEST(Expr, EqualFormsAreEqualHoweverBuilt) {
  EXPECT_EQ((n + 1) * (m + 1) - 1, n * m + m + n);
  EXPECT_EQ((n + 1).hash(), (1 + n).hash());
  EXPECT_NE(n + 1, n + 2);
  EXPECT_NE(n, m);
  EXPECT_EQ(Expr::symbol("n"), n);
  EXPECT_EQ(sum(std::vector<Expr>{n, 2, m, -2}), m + n);
  EXPECT_EQ(product(std::vector<Expr>{n, 2, m}), 2 * m * n);
}

TEST(Expr, OrderIsTotalAndAgreesWithEquality) {
  std::vector<Expr> all = {3, -1, n, m};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    test::Random random(seed);
    all.push_back(parse_expr(test::random_text(random, 3, seed % 2 == 0)).value());
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j) {
      const auto order = all[i] <=> all[j];
      ASSERT_EQ(order == 0, all[i] == all[j]) << all[i] << " and " << all[j];
      if (all[i] != all[j]) {
        ASSERT_EQ(order < 0, i < j) << all[i] << " and " << all[j];
      }
    }
}

TEST(Expr, SymbolsAndSubstitution) {
  const Expr e = floordiv(n * m + 1, 2) + max(n, Expr::symbol("k"));
  EXPECT_EQ(e.symbols(), (std::vector<std::string>{"k", "m", "n"}));
  EXPECT_EQ(e.substitute({{"n", 3}, {"m", 5}, {"k", 0}}), 11);
  EXPECT_EQ((n - m).substitute({{"n", m}, {"m", n}}), m - n);  // all at once
  EXPECT_EQ(e.substitute({{"unused", 1}}), e);
}

TEST(Expr, SubstitutionAgreesWithEvaluation) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    test::Random random(seed);
    const Expr e = parse_expr(test::random_text(random, 4, false)).value();
    const auto point = test::random_point(random, false);
    const auto value = e.evaluate(point);
    if (!value.ok()) continue;
    const Substitution some = {{"a", point.at("a")}, {"m", point.at("m")}, {"n", Expr::symbol("x") + 1}};
    Substitution all;
    for (const auto& [name, v] : point) all[name] = v;
    ASSERT_EQ(e.substitute(all), *value) << "seed " << seed << ": " << e;
    auto moved = point;
    moved["n"] = point.at("x") + 1;
    const auto direct = e.evaluate(moved), through = e.substitute(some).evaluate(point);
    if (!direct.ok()) continue;
    ASSERT_TRUE(through.ok()) << through.error().to_string();
    ASSERT_EQ(*direct, *through) << "seed " << seed << ": " << e;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

TEST(Expr, EvaluationErrorsNameTheCause) {
  const auto unbound = (n + 1).evaluate({{"m", 1}});
  ASSERT_FALSE(unbound.ok());
  EXPECT_EQ(unbound.error().code(), Code::not_found);
  EXPECT_NE(unbound.error().message().find("'n'"), std::string::npos);
  const auto zero = floordiv(n, m).evaluate({{"n", 1}, {"m", 0}});
  ASSERT_FALSE(zero.ok());
  EXPECT_NE(zero.error().message().find("m is 0 in n floordiv m"), std::string::npos) << zero.error().message();
  EXPECT_FALSE((n * n).evaluate({{"n", INT64_MAX}}).ok());
  EXPECT_EQ(select(equal(m, 0), 7, floordiv(n, m)).evaluate({{"n", 1}, {"m", 0}}).value(), 7);
}

TEST(Expr, LargeSumsAndDeepChainsAreQuick) {
  const std::clock_t start = std::clock();  // processor time: other load on the machine is no fault of ours
  std::vector<Expr> terms;
  for (int i = 0; i < 1000; ++i) terms.push_back(Expr::symbol(str("s", i)) * (i + 1));
  Expr total;
  for (const Expr& term : terms) total += term;
  EXPECT_EQ(total, sum(terms));
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 2);

  Expr deep = n;
  for (int i = 0; i < 100000; ++i) deep = floordiv(deep * m + 1, 3);
  EXPECT_EQ(deep.symbols().size(), 2u);
  EXPECT_EQ(deep.evaluate({{"n", 1}, {"m", 3}}).value(), 1);
  EXPECT_EQ(deep.substitute({{"n", 1}, {"m", 3}}), 1);
  Expr shared = n;  // as a tree it would have 2^60 leaves
  for (int i = 0; i < 60; ++i) shared = min(shared + m, floordiv(shared, 2));
  EXPECT_TRUE(shared.evaluate({{"n", 5}, {"m", 2}}).ok());
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 20);
}

TEST(Expr, ThreadsShareNodes) {
  std::vector<std::thread> threads;
  std::vector<Expr> results(4);
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3000; ++i) results[t] = floordiv(Expr::symbol(str("t", i % 7)) * 3 + i, 7) + mod(n, i + 2);
    });
  for (auto& thread : threads) thread.join();
  for (const Expr& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace tenon
