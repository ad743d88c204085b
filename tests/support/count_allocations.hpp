// Counts every allocation of the process, and the requested bytes. Replaces the global operators, so only one file of a
// test program may include it.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tenon::test {
inline std::atomic<int64_t> allocations{0}, allocated_bytes{0};
inline void count_allocation(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}
}  // namespace tenon::test

// Not inlined: otherwise g++ would see malloc paired with delete, and warn.
#define TENON_HOOK [[gnu::noinline]]
TENON_HOOK void* operator new(size_t bytes) {
  tenon::test::count_allocation(bytes);
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
TENON_HOOK void* operator new(size_t bytes, std::align_val_t align) {
  tenon::test::count_allocation(bytes);
  const auto a = static_cast<size_t>(align);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
// std::stable_sort allocates its memory in this way.
TENON_HOOK void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  tenon::test::count_allocation(bytes);
  return std::malloc(bytes > 0 ? bytes : 1);
}
// Array forms end up here anyway, except for AddressSanitizer's, which would not be counted.
TENON_HOOK void* operator new[](size_t bytes) { return operator new(bytes); }
TENON_HOOK void* operator new[](size_t bytes, std::align_val_t align) { return operator new(bytes, align); }
TENON_HOOK void* operator new[](size_t bytes, const std::nothrow_t& t) noexcept { return operator new(bytes, t); }
TENON_HOOK void operator delete[](void* p) noexcept { std::free(p); }
TENON_HOOK void operator delete[](void* p, size_t) noexcept { std::free(p); }
TENON_HOOK void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
TENON_HOOK void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
TENON_HOOK void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
TENON_HOOK void operator delete(void* p) noexcept { std::free(p); }
TENON_HOOK void operator delete(void* p, size_t) noexcept { std::free(p); }
TENON_HOOK void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
TENON_HOOK void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
TENON_HOOK void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
#undef TENON_HOOK
