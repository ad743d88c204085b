// PointerMap<K, T>: values keyed by the address of a K, for frequent lookups over many objects.
//
//   PointerMap<Value, Type> types;
//   types[&value] = type;
//   if (const Type* found = types.find(&value)) ...
//
// Entries are stored contiguously in insertion order; an open-addressing table of their numbers finds them. A lookup
// touches two places where a bucket list touches three, and entries are not allocated one by one. Entries cannot be
// erased. Insertion beyond the reserved capacity invalidates references.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/support/check.hpp>

namespace tenon {

template <class K, class T>
class PointerMap {
 public:
  size_t size() const { return entries_.size(); }
  void reserve(size_t count) {
    entries_.reserve(count);
    if (2 * count > table_.size()) rebuild(count);
  }

  const T* find(const K* key) const {
    if (table_.empty()) return nullptr;
    const uint32_t number = table_[slot_of(key)];
    return number == kFree ? nullptr : &entries_[number].second;
  }
  T* find(const K* key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  bool contains(const K* key) const { return find(key) != nullptr; }
  const T& at(const K* key) const {
    const T* found = find(key);
    TENON_CHECK(found, "no value of that address");
    return *found;
  }
  // Inserts the key if it is absent.
  T& operator[](const K* key) {
    if (2 * (entries_.size() + 1) > table_.size()) rebuild(2 * (entries_.size() + 1));
    uint32_t& number = table_[slot_of(key)];
    if (number == kFree) {
      number = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back(key, T());
    }
    return entries_[number].second;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  // The slot of the key, or the one where it would be inserted. At most half of the table is occupied.
  size_t slot_of(const K* key) const {
    // Fibonacci hashing (Knuth, volume 3, 6.4): the upper bits of a product with 2^64 by the golden ratio.
    const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key));
    auto slot = static_cast<size_t>(address * 0x9e3779b97f4a7c15u >> shift_);
    while (table_[slot] != kFree && entries_[table_[slot]].first != key) slot = (slot + 1) & (table_.size() - 1);
    return slot;
  }

  void rebuild(size_t count) {
    const size_t slots = std::bit_ceil(2 * count + 2);
    shift_ = 64 - std::countr_zero(slots);
    table_.assign(slots, kFree);
    for (size_t i = 0; i < entries_.size(); ++i) table_[slot_of(entries_[i].first)] = static_cast<uint32_t>(i);
  }

  std::vector<std::pair<const K*, T>> entries_;
  std::vector<uint32_t> table_;  // entry numbers; its size is a power of two
  int shift_ = 64;
};

}  // namespace tenon
