// Memory whose end is the end of the world: an access beyond it, by compiled code that no sanitizer sees through,
// faults.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include <tenon/support/check.hpp>

namespace tenon::testing {

// Where the elements lie between the two pages that nobody may touch.
enum class GuardAt {
  end,  // they end where one begins: an access behind the last faults always, one before the first where it is far off
  begin,  // they begin where one ends: the other way round
  lines,  // as near to the one behind as the first is at a multiple of 64 bytes
};

// `count` elements, zero at first.
template <class T>
requires std::is_trivially_copyable_v<T>
class Guarded {
 public:
  explicit Guarded(size_t count, GuardAt at = GuardAt::end) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = count * sizeof(T), open = std::max(page, (bytes + page - 1) / page * page);
    mapped_ = open + 2 * page;
    void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TENON_CHECK(memory != MAP_FAILED, "no ", mapped_, " bytes of address space for a guarded buffer");
    base_ = static_cast<std::byte*>(memory);
    TENON_CHECK(mprotect(base_ + page, open, PROT_READ | PROT_WRITE) == 0, "mprotect refuses ", open, " bytes");
    const size_t room = open - bytes, before = at == GuardAt::begin ? 0 : at == GuardAt::lines ? room / 64 * 64 : room;
    values_ = {reinterpret_cast<T*>(base_ + page + before), count};
  }
  explicit Guarded(std::span<const T> values, GuardAt at = GuardAt::end) : Guarded(values.size(), at) {
    std::ranges::copy(values, values_.begin());
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::span<T> values() { return values_; }
  T* data() { return values_.data(); }

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
  std::span<T> values_;
};

}  // namespace tenon::testing
