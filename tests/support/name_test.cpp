#include <tenon/support/name.hpp>

#include <map>
#include <thread>
#include <unordered_set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using ::testing::ElementsAre;

TEST(Name, IsEqualWhereItsTextIs) {
  const std::string text = "Conv";
  const Name a("Conv"), b(text), c(std::string_view("Convolution").substr(0, 4));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
  EXPECT_EQ(a.hash(), c.hash());
  EXPECT_EQ(&a.str(), &c.str());
  EXPECT_FALSE(a == Name("conv"));
  EXPECT_FALSE(a == Name("Con"));
}

TEST(Name, KeepsAnyTextToTheLastByte) {
  EXPECT_TRUE(Name().empty());
  EXPECT_EQ(Name(), Name(""));
  const std::string_view with_zero("a\0b", 3);
  EXPECT_EQ(Name(with_zero).view(), with_zero);
  EXPECT_FALSE(Name(with_zero) == Name("a"));
  EXPECT_FALSE(Name("a").empty());
  EXPECT_EQ(str(Name("x86.Fma"), "/", Name()), "x86.Fma/");
}

TEST(Name, SortsByText) {
  const Name late("zz"), early("aa");
  std::map<Name, int> sorted = {{late, 1}, {early, 2}, {Name("mm"), 3}};
  std::vector<std::string> order;
  for (const auto& [name, value] : sorted) order.push_back(name.str());
  EXPECT_THAT(order, ElementsAre("aa", "mm", "zz"));
  EXPECT_FALSE(early < Name("aa"));
}

TEST(Name, IsInternedOnceByManyThreads) {
  constexpr int kThreads = 8, kNames = 5000;  // more than the table begins with
  std::vector<std::vector<Name>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) seen[t].emplace_back(str("race.", i));
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(seen[t], seen[0]);
  EXPECT_EQ(std::unordered_set<Name>(seen[0].begin(), seen[0].end()).size(), static_cast<size_t>(kNames));
}

}  // namespace
}  // namespace tenon
