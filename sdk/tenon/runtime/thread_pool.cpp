#include <tenon/runtime/thread_pool.hpp>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

constexpr int kMostThreads = 4096;
// How long a thread looks for work, or for the end of a loop, before it sleeps. To wake one takes as long where a
// hypervisor has to be asked, in which time a caller has done its work alone.
constexpr std::chrono::microseconds kLooked{100};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

using Time = std::chrono::steady_clock::time_point;
Time end_of_looking() { return std::chrono::steady_clock::now() + kLooked; }

template <class Done>
bool spin_until(Time until, const Done& done) {
  constexpr int kLooks = 16;  // for each look at the clock
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return done();
}

// Is this thread inside the body of a loop?
thread_local bool inside_body = false;

std::optional<int64_t> read_number(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// CPUs that the quota of one control group amounts to, rounded up; nullopt without a quota.
std::optional<int64_t> quota_of(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return std::max<int64_t>(1, (*quota + *period - 1) / *period);
}

// The tightest quota of this process' control groups (version 2: cpu.max of the group and those around it; version 1:
// cpu.cfs_quota_us), as cgroups(7) describes them.
std::optional<int64_t> cgroup_cpus() {
  std::optional<int64_t> least;
  const auto consider = [&](std::optional<int64_t> cpus) {
    if (cpus && (!least || *cpus < *least)) least = cpus;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const auto controllers = split(fields[1], ',');
    const bool unified = fields[0] == "0";
    if (!unified && std::ranges::find(controllers, std::string_view("cpu")) == controllers.end()) continue;
    for (std::string group(fields[2]);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      if (unified) {
        const std::string entry = first_line(str("/sys/fs/cgroup", group, "/cpu.max"));
        const auto words = split(trim(entry), ' ');
        if (words.size() == 2) consider(quota_of(read_number(words[0]), read_number(words[1])));
      } else {
        const std::string folder = str("/sys/fs/cgroup/cpu", group);
        consider(quota_of(read_number(first_line(folder + "/cpu.cfs_quota_us")),
                          read_number(first_line(folder + "/cpu.cfs_period_us"))));
      }
      if (group.empty()) break;
    }
  }
  return least;
}

int usable_threads() {
  int64_t cpus = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  // Fails on machines with more CPUs than the set holds; the hardware's number stands then.
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
  if (const auto quota = cgroup_cpus()) cpus = std::min(cpus, *quota);
  return static_cast<int>(std::min<int64_t>(cpus, kMostThreads));
}

}  // namespace

// Loops in progress are listed; a worker joins the first that still has ranges to give away. A loop lives on its
// caller's stack: `users` changes only under the mutex, and only while the loop is listed may it grow.
struct ThreadPool::Impl {
  struct Loop {
    const std::function<void(int64_t, int64_t)>* body;
    int64_t count, chunk;
    std::atomic<int64_t> next = 0;
    std::atomic<int> users = 0;

    bool open() const { return next.load(std::memory_order_relaxed) < count; }
    void work() {
      while (open()) {
        const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= count) break;
        work_at(begin);
      }
    }
    void work_at(int64_t begin) const {
      inside_body = true;
      (*body)(begin, std::min(count, begin + chunk));
      inside_body = false;
    }
  };

  std::mutex mutex;
  std::condition_variable wanted, left;
  std::vector<Loop*> loops;
  std::atomic<uint64_t> listed = 0;  // loops so far, to look at without the mutex
  int sleeping = 0, looking = 0;
  bool ending = false;
  std::vector<std::thread> workers;

  Loop* find_open() {
    const auto found = std::ranges::find_if(loops, [](const Loop* loop) { return loop->open(); });
    return found == loops.end() ? nullptr : *found;
  }

  // A thread that comes too late for a loop, as one does that had to be woken for a short one, goes on looking: it
  // would be late for each of many loops otherwise. But no more look than have a processor beside the caller's, which
  // they would take from those that work.
  void serve() {
    static const int most_looking = std::max(usable_threads() - 1, 1);
    std::unique_lock lock(mutex);
    Time until = end_of_looking();
    while (!ending) {
      if (Loop* loop = find_open()) {
        loop->users.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        loop->work();
        until = end_of_looking();
        lock.lock();
        // The caller may return once it sees 0: the loop is not touched afterwards.
        loop->users.fetch_sub(1, std::memory_order_release);
        left.notify_all();
        continue;
      }
      const auto is_more = [this, before = listed.load(std::memory_order_relaxed)] {
        return listed.load(std::memory_order_relaxed) != before;
      };
      if (looking < most_looking) {
        ++looking;
        lock.unlock();
        const bool more = spin_until(until, is_more);
        lock.lock();
        --looking;
        if (more) continue;
      }
      ++sleeping;
      wanted.wait(lock, [&] { return ending || is_more(); });
      --sleeping;
      until = end_of_looking();
    }
  }

  void run(Loop& loop) {
    // The caller takes the first range itself, before others see the loop: what it wrote there in the loop before is in
    // its core's caches still.
    loop.next.store(loop.chunk, std::memory_order_relaxed);
    const int64_t helpers = (loop.count - 1) / loop.chunk;
    int64_t wake = 0;
    {
      std::lock_guard lock(mutex);
      loops.push_back(&loop);
      listed.fetch_add(1, std::memory_order_relaxed);
      wake = std::min<int64_t>(helpers, sleeping);
    }
    for (; wake > 0; --wake) wanted.notify_one();
    loop.work_at(0);
    loop.work();
    {
      std::lock_guard lock(mutex);
      std::erase(loops, &loop);
    }
    const auto alone = [&] { return loop.users.load(std::memory_order_acquire) == 0; };
    if (spin_until(end_of_looking(), alone)) return;
    std::unique_lock lock(mutex);
    left.wait(lock, alone);
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  const int wanted = std::min(threads > 0 ? threads : usable_threads(), kMostThreads);
  try {
    for (int i = 1; i < wanted; ++i) impl_->workers.emplace_back([impl = impl_.get()] { impl->serve(); });
  } catch (const std::system_error& thrown) {
    log(LogLevel::warning, "a pool of ", wanted, " threads goes on with ", this->threads(), ": ", thrown.what());
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->wanted.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

void ThreadPool::run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (count <= grain || inside_body || impl_->workers.empty()) return body(0, count);
  // Several ranges per thread, so that a slow one does not keep the others waiting.
  constexpr int64_t kRangesPerThread = 4;
  const int64_t even = count / (threads() * kRangesPerThread);
  Impl::Loop loop{&body, count, std::max(grain, even)};
  impl_->run(loop);
}

int ThreadPool::threads() const { return static_cast<int>(impl_->workers.size()) + 1; }

ParallelFor& default_pool() {
  // Never destroyed: work may still run when the process ends.
  static ThreadPool& pool = *[] {
    int threads = 0;
    if (const char* text = std::getenv("TENON_THREADS")) {
      const auto number = read_number(text);
      if (number && *number >= 1 && *number <= kMostThreads) {
        threads = static_cast<int>(*number);
      } else {
        log(LogLevel::warning, "TENON_THREADS is ", quote(text), ", not a number from 1 to ", kMostThreads,
            "; ignored");
      }
    }
    return new ThreadPool(threads);
  }();
  return pool;
}

}  // namespace tenon
