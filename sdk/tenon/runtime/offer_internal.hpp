// One range of a short loop, handed to one spinning thread. A cache line that one core has written takes .1 to .2 us to
// reach another, so each direction uses one: the caller's line to the thread holds everything the thread needs, and the
// thread's line to the caller says that the work is done.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tenon::detail {

using RangeBody = std::function<void(int64_t, int64_t)>;

// Data that different threads write at the same time is on different lines.
inline constexpr size_t kLineBytes = 64;

class Offer {
 public:
  // Called by the thread that owns the offers.
  void look(bool looks) { looks_.store(looks, std::memory_order_relaxed); }
  bool is_there() const { return made_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed); }
  // false: there is none, or its caller has taken it back. `work` gets body, begin and end.
  template <class Work>
  bool take(const Work& work) {
    const uint64_t made = made_.load(std::memory_order_acquire);
    if (!take(made)) return false;
    work(*body_, begin_, end_);
    // Sequentially consistent with the waiting caller: one of the two sees what the other has stored.
    done_.store(made, std::memory_order_seq_cst);
    return true;
  }

  // For callers, one at a time from make() until it is done() or taken back.
  bool is_looked_for() const { return looks_.load(std::memory_order_relaxed); }
  void make(const RangeBody& body, int64_t begin, int64_t end) {
    body_ = &body, begin_ = begin, end_ = end;
    made_.store(made_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Happens-after the thread's writes.
  bool done() const { return done_.load(std::memory_order_seq_cst) == made_.load(std::memory_order_relaxed); }
  // false: the thread has taken it, and will finish it.
  template <class Work>
  bool take_back(const Work& work) {
    if (!take(made_.load(std::memory_order_relaxed))) return false;
    work(*body_, begin_, end_);
    return true;
  }

 private:
  // Whether the caller of take() now owns the range exclusively.
  bool take(uint64_t made) {
    uint64_t before = made - 1;
    return taken_.load(std::memory_order_relaxed) == before &&
           taken_.compare_exchange_strong(before, made, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Numbers of offers: the last one made, the last one taken by either side, and the last one that the thread finished.
  alignas(kLineBytes) std::atomic<uint64_t> made_ = 0;
  const RangeBody* body_ = nullptr;
  int64_t begin_ = 0, end_ = 0;
  alignas(kLineBytes) std::atomic<uint64_t> taken_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> looks_ = false;
};

}  // namespace tenon::detail
