#include <tenon/support/spare.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tenon {
namespace {

TEST(Spare, HoldsOne) {
  Spare<int> spare;
  EXPECT_EQ(spare.take(), nullptr);
  int a = 1, b = 2;
  EXPECT_TRUE(spare.give(&a));
  EXPECT_FALSE(spare.give(&b)) << "the place is taken";
  EXPECT_EQ(spare.take(), &a);
  EXPECT_EQ(spare.take(), nullptr);
  EXPECT_TRUE(spare.give(&b));
  EXPECT_EQ(spare.take(), &b);
}

// The thread that has taken it has it exclusively, and sees earlier writes.
TEST(Spare, ServesOneThreadAtATime) {
  constexpr int kThreads = 4, kTurns = 20000;
  Spare<int> spare;
  int shared = 0;
  spare.give(&shared);
  std::vector<int> turns(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      while (turns[static_cast<size_t>(t)] < kTurns) {
        int* const mine = spare.take();
        if (!mine) {
          std::this_thread::yield();
          continue;
        }
        ++*mine, ++turns[static_cast<size_t>(t)];
        EXPECT_TRUE(spare.give(mine));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, kThreads * kTurns);
}

}  // namespace
}  // namespace tenon
