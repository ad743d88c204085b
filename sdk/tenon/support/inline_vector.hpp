// InlineVector<T, N>: a vector that stores up to N elements inside itself, for short lists that exist in large numbers.
//
//   InlineVector<int, 4> ids{1, 2};   // no heap allocation
//   ids.push_back(3);
//
// T must be trivially copyable. With more than N elements it behaves like a std::vector: iterators, pointers and
// references are invalidated by whatever may change the size, and by moves.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {

template <class T, uint32_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && N > 0);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = size_t;

  InlineVector() {}
  InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  InlineVector(const std::vector<T>& values) { assign(values.begin(), values.end()); }
  template <std::forward_iterator It>
  InlineVector(It first, It last) {
    assign(first, last);
  }
  InlineVector(const InlineVector& other) { copy(other); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) copy(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~InlineVector() { release(); }

  T* data() { return in_place() ? memory_.inside : memory_.heap; }
  const T* data() const { return in_place() ? memory_.inside : memory_.heap; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(static_cast<uint32_t>(capacity));
  }
  void push_back(T value) {
    if (size_ == capacity_) grow(2 * capacity_);
    data()[size_++] = value;
  }
  template <std::forward_iterator It>
  void assign(It first, It last) {
    const auto count = static_cast<uint32_t>(std::distance(first, last));
    size_ = 0;  // so that growing copies nothing
    reserve(count);
    std::copy(first, last, data());
    size_ = count;
  }
  T* erase(const T* at) {
    T* const place = begin() + (at - begin());
    std::copy(place + 1, end(), place);
    --size_;
    return place;
  }

  bool operator==(const InlineVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  bool in_place() const { return capacity_ == N; }
  void release() {
    if (!in_place()) delete[] memory_.heap;
  }
  void copy(const InlineVector& other) {
    if (!in_place() || !other.in_place()) return assign(other.begin(), other.end());
    memory_ = other.memory_;
    size_ = other.size_;
  }
  // Takes over the other's elements; owns nothing before.
  void take(InlineVector& other) {
    std::memcpy(static_cast<void*>(&memory_), &other.memory_, sizeof memory_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, N);
  }
  void grow(uint32_t capacity) {
    T* const made = new T[capacity];
    std::copy(begin(), end(), made);
    release();
    memory_.heap = made;
    capacity_ = capacity;
  }

  union Memory {
    Memory() : inside{} {}
    T inside[N];
    T* heap;
  } memory_;
  uint32_t size_ = 0, capacity_ = N;
};

}  // namespace tenon
