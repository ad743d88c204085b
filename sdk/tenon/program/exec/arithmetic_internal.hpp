// Inside the room: arithmetic of bound programs. Intermediate results of address computations wrap around.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::program::detail {

inline int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline int64_t address_of(const std::byte* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)); }

}  // namespace tenon::program::detail
