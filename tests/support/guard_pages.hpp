// Memory that ends where a page that nobody may touch begins: whoever writes or reads one byte behind it is killed on
// the spot. The byte before the first is in such a page as well when the size is a whole number of pages.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include <tenon/support/check.hpp>

namespace tenon::test {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  // `bytes` bytes, each `fill`; aligned as their number is, up to a page.
  explicit GuardedBuffer(size_t bytes, int fill = 0xa5) : bytes_(bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (bytes + page - 1) / page * page;
    mapped_ = usable + 2 * page;
    void* base = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TENON_CHECK(base != MAP_FAILED, "mmap of ", mapped_, " bytes");
    base_ = static_cast<std::byte*>(base);
    if (usable > 0)
      TENON_CHECK(mprotect(base_ + page, usable, PROT_READ | PROT_WRITE) == 0, "mprotect of ", usable, " bytes");
    data_ = base_ + page + usable - bytes;
    if (bytes > 0) std::memset(data_, fill, bytes);
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept { swap(other); }
  GuardedBuffer& operator=(GuardedBuffer other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedBuffer() {
    if (base_) munmap(base_, mapped_);
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(GuardedBuffer& other) {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
  }
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, mapped_ = 0;
};

}  // namespace tenon::test
