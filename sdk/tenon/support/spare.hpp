// Spare<T>: a lock-free cache of one idle object. A thread that finds it empty takes an object from the full set; a
// thread that finds it occupied returns its object there.
#pragma once
#include <atomic>

namespace tenon {

// Does not own the object.
template <class T>
class Spare {
 public:
  // Null: none is available. Writes made before give() are visible after take().
  T* take() { return one_.exchange(nullptr, std::memory_order_acquire); }
  // False: the place is occupied.
  bool give(T* one) {
    T* none = nullptr;
    return one_.compare_exchange_strong(none, one, std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  std::atomic<T*> one_ = nullptr;
};

}  // namespace tenon
