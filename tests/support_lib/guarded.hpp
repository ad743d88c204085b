// Memory surrounded by inaccessible pages: an access beyond its end faults, even in generated code, which sanitizers do
// not check.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include <tenon/support/check.hpp>

namespace tenon::testing {

// The position of the elements between the two inaccessible pages.
enum class GuardAt {
  end,    // adjacent to the page after them: an access after the last always faults, one before the first only far off
  begin,  // adjacent to the page before them: the reverse
  lines,  // as close to the page after them as possible with the first at a multiple of 64 bytes
};

// `count` elements, initially zero.
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
