#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenon/runtime/thread_pool.hpp>

namespace tenon {
namespace {

// Every index once, and no range but the last below the grain.
void expect_covers(ParallelFor& pool, int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::atomic<int> short_ranges = 0;
  pool.run(count, grain, [&](int64_t begin, int64_t end) {
    if (end - begin < grain && end != count) ++short_ranges;
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  EXPECT_EQ(short_ranges, 0) << count << " by " << grain;
  const bool once = std::ranges::all_of(seen, [](const auto& times) { return times == 1; });
  EXPECT_TRUE(once) << count << " by " << grain;
}

// What the caller wrote there in one loop is in its core's caches for the next.
TEST(ThreadPool, TheCallerTakesTheFirstRange) {
  ThreadPool pool(4);
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> at_caller = 0;
    pool.run(4, 1, [&](int64_t begin, int64_t) {
      if (begin == 0 && std::this_thread::get_id() == caller) ++at_caller;
    });
    ASSERT_EQ(at_caller, 1) << "loop " << i;
  }
}

TEST(ThreadPool, CoversEveryRangeOnce) {
  std::mt19937 random(20240117);
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int i = 0; i < 200; ++i) {
      const auto count = static_cast<int64_t>(random() % 1000), grain = static_cast<int64_t>(random() % 60);
      expect_covers(pool, count, std::max<int64_t>(grain, 1));
    }
    expect_covers(pool, -3, 1);
    expect_covers(pool, 5, 1 << 30);
  }
}

TEST(ThreadPool, AShortLoopStaysWithItsCaller) {
  ThreadPool pool(4);
  for (int i = 0; i < 100; ++i) {
    int calls = 0;
    pool.run(16, 16, [&](int64_t begin, int64_t end) {
      ++calls;
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 16);
    });
    EXPECT_EQ(calls, 1);
  }
}

// Each range of `count` is run once, by the thread that it was assigned to: returns those of the caller and those of
// the other of two threads. `at` is called in each range with the index and whether the caller runs it.
template <class At>
std::array<std::vector<int64_t>, 2> ranges_of_two(ThreadPool& pool, int64_t count, const At& at) {
  const std::thread::id caller = std::this_thread::get_id();
  std::array<std::vector<int64_t>, 2> ranges;
  pool.run(count, 1, [&](int64_t begin, int64_t) {
    const bool other = std::this_thread::get_id() != caller;
    ranges[other].push_back(begin);
    at(begin, !other);
  });
  return ranges;
}

TEST(ThreadPool, EachThreadBeginsWithItsOwnRanges) {
  ThreadPool pool(2);
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> other_came = false;
    const auto ranges = ranges_of_two(pool, 8, [&](int64_t, bool caller) {
      if (!caller) other_came = true;
      while (!other_came) std::this_thread::yield();
    });
    ASSERT_EQ(ranges[0].front(), 0) << "loop " << i;
    ASSERT_EQ(ranges[1].front(), 4) << "loop " << i;
  }
}

TEST(ThreadPool, ThreadsTakeWhatOthersHaveLeft) {
  ThreadPool pool(2);
  for (const bool caller_waits : {false, true}) {
    std::atomic<int> done = 0;
    std::atomic<bool> other_came = false;
    const auto ranges = ranges_of_two(pool, 8, [&](int64_t, bool caller) {
      if (!caller) other_came = true;
      while (!other_came || (caller == caller_waits && done < 7)) std::this_thread::yield();
      ++done;
    });
    EXPECT_EQ(ranges[caller_waits ? 0 : 1].size(), 1u);
    EXPECT_EQ(ranges[caller_waits ? 1 : 0].size(), 7u);
  }
}

// Whether a loop of two ranges, each worth sharing with an awake thread, is shared.
bool is_shared(ParallelFor& pool) {
  std::atomic<int> calls = 0, indices = 0;
  pool.run_short(2, 1, 2, [&](int64_t begin, int64_t end) {
    ++calls;
    indices += static_cast<int>(end - begin);
  });
  EXPECT_EQ(indices, 2);
  return calls == 2;
}
// Whether `met()` becomes true within a generous limit. A condition that is met earlier does not depend on time.
template <class Met>
bool comes_true(const Met& met) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    if (met()) return true;
  } while (std::chrono::steady_clock::now() < begin + std::chrono::seconds(20));
  return false;
}

TEST(ThreadPool, ShortLoopsAreSharedWithThreadsThatAreAwake) {
  ThreadPool pool(2);
  // The other thread has come to a loop that was worth waking it for.
  EXPECT_TRUE(comes_true([&] {
    std::atomic<int> arrived = 0;
    pool.run_short(2, 1, 1, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    return is_shared(pool);
  }));
  // Once it sleeps nobody waits for it.
  EXPECT_TRUE(comes_true([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return !is_shared(pool);
  }));
}

// A short loop is handed from thread to thread without using one of the few loop slots that all threads poll: it works
// even if callers occupy all of these, so that a further caller would run its own loop alone.
TEST(ThreadPool, ShortLoopsAreHandedToThreadsThatLookForThem) {
  ThreadPool pool(2);
  constexpr int kCallers = 24;  // more than loops that it has under way at the same time
  std::atomic<int> inside = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> callers;
  for (int t = 0; t < kCallers; ++t)
    callers.emplace_back([&] {
      pool.run(2, 1, [&](int64_t begin, int64_t) {
        if (begin != 0) return;
        ++inside;
        over.wait(false);
      });
    });
  EXPECT_TRUE(comes_true([&] { return inside == kCallers; }));
  const std::thread::id caller = std::this_thread::get_id();
  // Both at once: the range that the other thread was given is not taken back.
  EXPECT_TRUE(comes_true([&] {
    std::atomic<int> at_caller = 0, at_other = 0;
    pool.run_short(2, 1, 2, [&](int64_t begin, int64_t end) {
      ++(std::this_thread::get_id() == caller ? at_caller : at_other);
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (begin == 0 && end == 1 && at_other == 0 && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    });
    return at_caller == 1 && at_other == 1;
  }));
  over = true;
  over.notify_all();
  for (std::thread& each : callers) each.join();
}

TEST(ThreadPool, ThreadsAreWokenForShortLoopsThatKeepComing) {
  ThreadPool pool(2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(comes_true([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return !is_shared(pool);
    }));
    ASSERT_TRUE(comes_true([&] { return is_shared(pool); }));
  }
}

TEST(ThreadPool, ShortLoopsCoverEveryRangeOnce) {
  std::mt19937 random(20261127);
  for (const int threads : {1, 2, 3, 70}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 300; ++i) {
      const auto count = static_cast<int64_t>(random() % 300);
      const auto grain = static_cast<int64_t>(random() % 40), waking_grain = static_cast<int64_t>(random() % 80);
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      pool.run_short(count, grain, waking_grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) ++seen[static_cast<size_t>(k)];
      });
      ASSERT_TRUE(std::ranges::all_of(seen, [](const auto& times) { return times == 1; }))
          << count << " by " << grain << ", " << waking_grain << " with " << threads << " threads";
    }
  }
}

// A loop without a pool has no awake threads to share with.
TEST(ParallelFor, ShortLoopsAreCutAsThoseThatWake) {
  class Recording final : public ParallelFor {
   public:
    void run(int64_t, int64_t grain, const std::function<void(int64_t, int64_t)>&) override { grain_ = grain; }
    int threads() const override { return 2; }
    int64_t grain_ = 0;
  };
  Recording recording;
  recording.run_short(100, 3, 20, [](int64_t, int64_t) {});
  EXPECT_EQ(recording.grain_, 20);
}

TEST(ThreadPool, OtherThreadsHelp) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  // Both ranges wait for each other: this ends only when two threads are at work.
  pool.run(2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

// All threads meet in each loop, whatever the others were doing when it began: working, polling, about to sleep, or
// asleep. That they continue to poll after a loop that they missed cannot be tested this way: it only saves time.
TEST(ThreadPool, NoLoopIsMissedBetweenLookingAndSleeping) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kTooLong{20};  // for any loop; what is met earlier does not depend on time
  for (const int threads : {2, 4}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 3000; ++i) {
      // Threads look for work for 100 us.
      const auto pause = std::chrono::microseconds(i % 3 == 0 ? 0 : i % 240);
      for (const auto begin = Clock::now(); Clock::now() < begin + pause;) {}
      if (i % 2 == 0) pool.run(2, 1, [](int64_t, int64_t) {});  // over before others come
      std::atomic<int> arrived = 0, alone = 0;
      pool.run(threads, 1, [&](int64_t, int64_t) {
        ++arrived;
        const auto begin = Clock::now();
        while (arrived < threads && Clock::now() < begin + kTooLong) std::this_thread::yield();
        alone += arrived < threads;
      });
      ASSERT_EQ(alone, 0) << "loop " << i << " of " << threads << " threads";
    }
  }
}

TEST(ThreadPool, NestedLoopsRunOnTheirThread) {
  ThreadPool pool(3);
  std::atomic<int> strangers = 0, sum = 0;
  pool.run(30, 1, [&](int64_t begin, int64_t end) {
    const auto mine = std::this_thread::get_id();
    pool.run(100, 1, [&](int64_t b, int64_t e) {
      if (std::this_thread::get_id() != mine) ++strangers;
      sum += static_cast<int>((e - b) * (end - begin));
    });
  });
  EXPECT_EQ(strangers, 0);
  EXPECT_EQ(sum, 3000);
}

TEST(ThreadPool, ServesSeveralCallers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  constexpr int kCallers = 24;  // more than loops that it has under way at the same time
  for (int t = 0; t < kCallers; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::atomic<int64_t> sum = 0;
        const auto body = [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) sum += k;
        };
        if (i % 2 == 0)
          pool.run(1000, 10, body);
        else
          pool.run_short(1000, 10, 1000, body);
        total += sum;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, kCallers * 300 * int64_t{499500});
}

TEST(ThreadPool, WritesOfTheBodyAreSeen) {
  ThreadPool pool(4);
  std::vector<int> data(4096);
  for (int round = 1; round <= 200; ++round) {
    pool.run(4096, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[static_cast<size_t>(i)] += static_cast<int>(i);
    });
  }
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], 200 * static_cast<int>(i));
}

TEST(ThreadPool, ComesAndGoesWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, ZeroMeansWhatTheProcessMayUse) {
  const int threads = ThreadPool(0).threads();
  EXPECT_GE(threads, 1);
  EXPECT_LE(threads, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST(DefaultPool, IsOne) {
  ParallelFor& pool = default_pool();
  EXPECT_EQ(&pool, &default_pool());
  // Set where ctest runs this.
  if (const char* wanted = std::getenv("TENON_THREADS")) {
    EXPECT_EQ(std::to_string(pool.threads()), wanted);
  } else {
    EXPECT_EQ(pool.threads(), ThreadPool(0).threads());
  }
}

// What a thread takes of another's share is in the other's caches: a short loop is shared evenly, or not at all.
TEST(ThreadPool, ShortLoopsHaveOneRangeForEachThread) {
  ThreadPool pool(2);
  constexpr int64_t kCount = 100;
  EXPECT_TRUE(comes_true([&] {
    std::atomic<int> halves = 0;
    pool.run_short(kCount, 1, kCount, [&](int64_t begin, int64_t end) {
      EXPECT_TRUE(end - begin == kCount || end - begin == kCount / 2) << begin << " to " << end;
      halves += end - begin == kCount / 2;
    });
    return halves == 2;
  }));
}

}  // namespace
}  // namespace tenon
