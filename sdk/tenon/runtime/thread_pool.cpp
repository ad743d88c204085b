#include <tenon/runtime/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include <tenon/runtime/offer_internal.hpp>
#include <tenon/runtime/usable_threads_internal.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using detail::kLineBytes;
using detail::kMostThreads;
using detail::Offer;
using detail::RangeBody;

// How long a thread spins for work, or for the end of a loop, before it sleeps. Waking a thread takes as long where a
// hypervisor is involved, in which time a caller has done its work alone.
constexpr std::chrono::microseconds kLooked{100};
// After this many loops of a few microseconds, callers have spent as long alone as it takes to wake a thread.
constexpr uint32_t kLoopsUntilWoken = 8;
// Most concurrent loops; the caller of one more runs it alone.
constexpr size_t kMostLoops = 16;
// Most shares of a loop with which threads begin; with more threads, several have the same share.
constexpr int64_t kMostShares = 64;
// Several ranges per thread, so that a slow one does not keep the others waiting.
constexpr int64_t kRangesPerThread = 4;

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
  constexpr int kLooks = 16;  // polls per reading of the clock
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return done();
}

// Whether this thread is inside the body of a loop.
thread_local bool inside_body = false;

void run_body(const RangeBody& body, int64_t begin, int64_t end) {
  inside_body = true;
  body(begin, end);
  inside_body = false;
}

// A loop in progress. Each of its threads has a share of adjacent ranges, the same one for each loop with as many
// threads, since the data of the previous loop is still in its core's caches; then it takes what others have left.
class alignas(kLineBytes) Loop {
 public:
  // Claims a free loop; false: it is in use.
  bool claim() {
    return !claimed_.load(std::memory_order_relaxed) && !claimed_.exchange(true, std::memory_order_acquire);
  }
  void give_back() { claimed_.store(false, std::memory_order_release); }

  // Called by the claiming thread, which takes the first range itself, before others see the loop. At least one range
  // per share.
  void open(const RangeBody& body, int64_t count, int64_t chunk, int64_t shares) {
    body_ = &body;
    count_ = count;
    chunk_ = chunk;
    shares_ = shares;
    const int64_t ranges = (count - 1) / chunk + 1;
    const auto first_of = [&](int64_t s) { return ranges / shares * s + std::min(s, ranges % shares); };
    for (int64_t s = 0; s < shares; ++s) {
      Share& share = parts_[static_cast<size_t>(s)];
      share.next.store(std::max<int64_t>(first_of(s), 1) * chunk, std::memory_order_relaxed);
      share.end = std::min(count, first_of(s + 1) * chunk);
    }
    state_.store(kOpen, std::memory_order_release);
  }
  // Others may enter while it is open, and must leave(); it does not change meanwhile.
  bool enter() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    while (state & kOpen)
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }
  // Whether this thread was the last to leave a closed loop.
  bool leave() { return state_.fetch_sub(1, std::memory_order_seq_cst) == 1; }
  void close() {
    if (state_.load(std::memory_order_relaxed) & kOpen) state_.fetch_and(~kOpen, std::memory_order_relaxed);
  }
  // Closed, and all threads have left: happens-after their writes.
  bool over() const { return state_.load(std::memory_order_seq_cst) == 0; }

  void work_at(int64_t begin, int64_t end) const { run_body(*body_, begin, std::min(end, begin + chunk_)); }
  void work_first() const { work_at(0, count_); }
  // All remaining ranges, first those of the share of thread `thread`: of the caller, 0, or a thread of the pool.
  void work(int64_t thread) {
    const int64_t own = thread < shares_ ? thread : 1 + thread % (shares_ - 1);
    for (int64_t i = 0; i < shares_; ++i) {
      const int64_t s = own + i < shares_ ? own + i : own + i - shares_;
      Share& share = parts_[static_cast<size_t>(s)];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t begin = share.next.fetch_add(chunk_, std::memory_order_relaxed);
        if (begin < share.end) work_at(begin, share.end);
      }
    }
    close();
  }
  void reserve(int64_t shares) { parts_ = std::vector<Share>(static_cast<size_t>(shares)); }

 private:
  static constexpr uint32_t kOpen = uint32_t{1} << 31;  // the other bits: how many have entered
  struct alignas(kLineBytes) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };

  std::atomic<uint32_t> state_ = 0;
  std::atomic<bool> claimed_ = false;
  const RangeBody* body_ = nullptr;
  int64_t count_ = 0, chunk_ = 1, shares_ = 1;
  std::vector<Share> parts_;
};

}  // namespace

// A caller and its threads synchronise without the mutex, which is for sleeping threads: a thread that goes to sleep
// announces it, then polls once more; a thread with work for it publishes the work, then checks for sleepers.
struct ThreadPool::Impl {
  std::array<Loop, kMostLoops> loops;
  alignas(kLineBytes) std::atomic<uint64_t> listed = 0;  // loops so far, and requests to look for them
  std::atomic<bool> ending = false;
  alignas(kLineBytes) std::atomic<int64_t> sleeping = 0;
  std::atomic<int64_t> waiting = 0;     // callers that sleep until others have left their loops
  std::atomic<uint32_t> by_caller = 0;  // loops that run_by_caller() ran
  alignas(kLineBytes) std::atomic<int64_t> looking = 0;
  alignas(kLineBytes) std::atomic<bool> offering = false;  // some caller makes offers
  std::vector<Offer> offers;                               // one per thread of the pool
  std::mutex mutex;
  std::condition_variable wanted, left;
  std::vector<std::thread> workers;

  int64_t threads() const { return static_cast<int64_t>(workers.size()) + 1; }

  Loop* enter_one() {
    const auto found = std::ranges::find_if(loops, &Loop::enter);
    return found == loops.end() ? nullptr : &*found;
  }

  // Called after the event for which sleeping callers wait.
  void tell_waiting() {
    if (waiting.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard lock(mutex); }
    left.notify_all();
  }
  template <class Over>
  void wait_for(const Over& over) {
    if (over() || spin_until(end_of_looking(), over)) return;
    std::unique_lock lock(mutex);
    waiting.fetch_add(1, std::memory_order_seq_cst);
    left.wait(lock, over);
    waiting.fetch_sub(1, std::memory_order_relaxed);
  }

  // Takes offers, and spins until there is more, or nothing for a long time.
  template <class IsMore>
  bool look(Offer& offer, Time until, const IsMore& is_more) {
    offer.look(true);
    bool found = false;
    while ((found = spin_until(until, [&] { return offer.is_there() || is_more(); })) && offer.take(run_body)) {
      tell_waiting();
      until = end_of_looking();
    }
    offer.look(false);
    return found;
  }

  // A thread that comes too late for a loop, as one that had to be woken for a short one does, continues to spin: it
  // would otherwise be late for each of many loops. But no more threads spin than have a processor besides the
  // caller's, which they would otherwise take from threads that work.
  void serve(int64_t thread) {
    static const int64_t most_looking = std::max<int64_t>(detail::usable_threads() - 1, 1);
    Time until = end_of_looking();
    while (!ending.load(std::memory_order_relaxed)) {
      const auto is_more = [this, before = listed.load(std::memory_order_seq_cst)] {
        return listed.load(std::memory_order_seq_cst) != before || ending.load(std::memory_order_seq_cst);
      };
      if (Loop* loop = enter_one()) {
        loop->work(thread);
        until = end_of_looking();
        if (loop->leave()) tell_waiting();
        continue;
      }
      const bool may_look = looking.fetch_add(1, std::memory_order_relaxed) < most_looking;
      const bool more = may_look && look(offers[static_cast<size_t>(thread - 1)], until, is_more);
      looking.fetch_sub(1, std::memory_order_relaxed);
      if (more) continue;
      {
        std::unique_lock lock(mutex);
        sleeping.fetch_add(1, std::memory_order_seq_cst);
        wanted.wait(lock, is_more);
        sleeping.fetch_sub(1, std::memory_order_seq_cst);
      }
      until = end_of_looking();
    }
  }

  // Called after the work for which they are woken is visible.
  void wake(int64_t threads) {
    if (threads <= 0) return;
    { std::lock_guard lock(mutex); }
    for (; threads > 0; --threads) wanted.notify_one();
  }

  void run_shared(const RangeBody& body, int64_t count, int64_t chunk, int64_t shares, int64_t woken) {
    const auto found = std::ranges::find_if(loops, &Loop::claim);
    if (found == loops.end()) return body(0, count);
    Loop& loop = *found;
    loop.open(body, count, chunk, std::min<int64_t>(shares, kMostShares));
    listed.fetch_add(1, std::memory_order_seq_cst);
    if (woken > 0)
      if (const int64_t asleep = sleeping.load(std::memory_order_seq_cst); asleep > 0)
        wake(std::min(woken - looking.load(std::memory_order_relaxed), asleep));
    loop.work_first();
    loop.work(0);
    wait_for([&] { return loop.over(); });
    loop.give_back();
  }

  // One range each for spinning threads, the same ones in each loop of as many. A range that a thread has not begun
  // when the caller has finished its own, for example because the system does not run the thread, is run by the caller.
  // false: no thread spins, or another caller uses the offers.
  bool run_offered(const RangeBody& body, int64_t count, int64_t grain) {
    if (looking.load(std::memory_order_relaxed) == 0 || offering.load(std::memory_order_relaxed) ||
        offering.exchange(true, std::memory_order_acquire))
      return false;
    std::array<Offer*, kMostShares> made;
    int64_t ranges = 1;
    for (size_t i = 0; i < offers.size() && ranges < kMostShares && ranges * grain < count; ++i)
      if (offers[i].is_looked_for()) made[static_cast<size_t>(ranges++)] = &offers[i];
    const int64_t chunk = std::max(grain, (count - 1) / ranges + 1);
    const bool shared = chunk < count;
    if (shared) {
      ranges = (count - 1) / chunk + 1;
      const std::span others(made.data() + 1, static_cast<size_t>(ranges - 1));
      int64_t begin = 0;
      for (Offer* offer : others) begin += chunk, offer->make(body, begin, std::min(count, begin + chunk));
      run_body(body, 0, chunk);
      for (Offer* offer : others)
        if (!offer->done() && !offer->take_back(run_body)) wait_for([&] { return offer->done(); });
    }
    offering.store(false, std::memory_order_release);
    return shared;
  }

  // A loop that would have been shared with spinning threads. Where such loops recur, threads are woken for those that
  // follow.
  void run_by_caller(const RangeBody& body, int64_t count, int64_t helpers) {
    if (by_caller.fetch_add(1, std::memory_order_relaxed) % kLoopsUntilWoken == kLoopsUntilWoken - 1) {
      listed.fetch_add(1, std::memory_order_seq_cst);
      wake(std::min(helpers, sleeping.load(std::memory_order_seq_cst)));
    }
    body(0, count);
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  const int wanted = std::min(threads > 0 ? threads : detail::usable_threads(), kMostThreads);
  impl_->offers = std::vector<Offer>(static_cast<size_t>(wanted - 1));
  for (Loop& loop : impl_->loops) loop.reserve(std::min<int64_t>(wanted, kMostShares));
  try {
    for (int i = 1; i < wanted; ++i) impl_->workers.emplace_back([impl = impl_.get(), i] { impl->serve(i); });
  } catch (const std::system_error& thrown) {
    log(LogLevel::warning, "a pool of ", wanted, " threads goes on with ", this->threads(), ": ", thrown.what());
  }
}

ThreadPool::~ThreadPool() {
  impl_->ending.store(true, std::memory_order_seq_cst);
  impl_->listed.fetch_add(1, std::memory_order_seq_cst);
  { std::lock_guard lock(impl_->mutex); }
  impl_->wanted.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

void ThreadPool::run(int64_t count, int64_t grain, const RangeBody& body) { run_short(count, grain, grain, body); }

void ThreadPool::run_short(int64_t count, int64_t grain, int64_t waking_grain, const RangeBody& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  waking_grain = std::max(waking_grain, grain);
  const auto threads = [&](int64_t most, int64_t least) { return std::min(most, (count - 1) / least + 1); };
  const int64_t all = impl_->threads();
  if (count <= grain || inside_body || all == 1) return body(0, count);
  const int64_t woken = threads(all, waking_grain);
  if (woken == 1 && impl_->run_offered(body, count, grain)) return;
  const int64_t shares =
      woken == all ? all : std::max(woken, threads(all - impl_->sleeping.load(std::memory_order_relaxed), grain));
  if (shares == 1) return impl_->run_by_caller(body, count, threads(all, grain) - 1);
  // In a short loop each thread has a single range: the data of another's share is in the other's caches.
  const int64_t even = woken == all ? count / (shares * kRangesPerThread) : (count - 1) / shares + 1;
  impl_->run_shared(body, count, std::max(grain, even), shares, woken - 1);
}

int ThreadPool::threads() const { return static_cast<int>(impl_->threads()); }

ParallelFor& default_pool() {
  // Never destroyed: work may still run when the process ends.
  static ThreadPool& pool = *[] {
    int threads = 0;
    if (const char* text = std::getenv("TENON_THREADS")) {
      const auto number = detail::read_number(text);
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
