#include <tenon/support/parallel.hpp>

#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<int64_t, int64_t>> ranges_of(int64_t count, int64_t grain) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  serial().run(count, grain, [&](int64_t begin, int64_t end) { ranges.emplace_back(begin, end); });
  return ranges;
}

TEST(Serial, RunsTheWholeRangeAtOnce) {
  EXPECT_EQ(serial().threads(), 1);
  EXPECT_THAT(ranges_of(10, 3), ElementsAre(Pair(0, 10)));
  EXPECT_THAT(ranges_of(1, 100), ElementsAre(Pair(0, 1)));
}

TEST(Serial, RunsNothingForAnEmptyRange) {
  EXPECT_THAT(ranges_of(0, 1), IsEmpty());
  EXPECT_THAT(ranges_of(-5, 1), IsEmpty());
}

TEST(Serial, RunsOnTheCallingThreadAndInsideItself) {
  std::vector<std::thread::id> threads;
  serial().run(2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      serial().run(3, 1, [&](int64_t, int64_t) { threads.push_back(std::this_thread::get_id()); });
  });
  EXPECT_THAT(threads, ElementsAre(std::this_thread::get_id(), std::this_thread::get_id()));
}

}  // namespace
}  // namespace tenon
