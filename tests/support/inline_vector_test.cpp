#include <tenon/support/inline_vector.hpp>

#include <gtest/gtest.h>
#include <support/count_allocations.hpp>

#include <numeric>
#include <random>
#include <vector>

namespace tenon {
namespace {

using Numbers = InlineVector<int, 3>;

Numbers counted(int count) {
  Numbers made;
  for (int i = 0; i < count; ++i) made.push_back(i);
  return made;
}

// Around the number of elements that are stored inside.
TEST(InlineVector, HoldsWhatWasPutIn) {
  for (int count = 0; count < 20; ++count) {
    const Numbers made = counted(count);
    ASSERT_EQ(made.size(), static_cast<size_t>(count));
    EXPECT_EQ(made.empty(), count == 0);
    EXPECT_EQ(std::accumulate(made.begin(), made.end(), 0), count * (count - 1) / 2);
    if (count == 0) continue;
    EXPECT_EQ(made.back() - made.front(), count - 1);
  }
}

TEST(InlineVector, CopiesAreApartAndMovesLeaveNothing) {
  for (const int count : {0, 2, 3, 4, 9}) {
    Numbers first = counted(count), copy = first;
    EXPECT_TRUE(copy == first);
    copy.push_back(7);
    EXPECT_FALSE(copy == first);
    Numbers moved = std::move(copy);
    EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): that it is empty is what is said
    EXPECT_EQ(moved.size(), first.size() + 1);
    first = moved;
    moved = counted(1);
    EXPECT_EQ(first.back(), 7);
    EXPECT_EQ(moved.size(), 1u);
    first = std::move(moved);
    EXPECT_TRUE(first == counted(1));
  }
}

TEST(InlineVector, AssignsAndErasesAsAVectorDoes) {
  const unsigned seed = 3;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> plain(random() % 8);
    std::iota(plain.begin(), plain.end(), 0);
    Numbers made = counted(static_cast<int>(random() % 8));
    made.assign(plain.begin(), plain.end());
    if (!plain.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(random() % plain.size());
      plain.erase(plain.begin() + at);
      made.erase(made.begin() + at);
    }
    EXPECT_TRUE(made == Numbers(plain));
  }
}

TEST(InlineVector, TakesNoMemoryWhileItIsShort) {
  const int64_t before = tenon::test::allocations;
  Numbers made{1, 2, 3};
  Numbers copy = made;
  copy = Numbers{4};
  EXPECT_EQ(tenon::test::allocations, before);
  copy = {1, 2, 3, 4};
  EXPECT_GT(tenon::test::allocations, before);
}

}  // namespace
}  // namespace tenon
