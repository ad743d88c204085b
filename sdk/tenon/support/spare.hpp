// Spare<T>: one idle object that threads take and give back without a lock. Whoever finds none takes one from where all
// others are; whoever finds the place taken puts his there.
#pragma once
#include <atomic>

namespace tenon {

// Owns nothing.
template <class T>
class Spare {
 public:
  // Null: there is none at the moment. What the one who gave it back has written is seen.
  T* take() { return one_.exchange(nullptr, std::memory_order_acquire); }
  // False: another is there already.
  bool give(T* one) {
    T* none = nullptr;
    return one_.compare_exchange_strong(none, one, std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  std::atomic<T*> one_ = nullptr;
};

}  // namespace tenon
