// Bytes in guarded memory (support_lib/guarded.hpp), for use in containers.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>

#include <support_lib/guarded.hpp>

namespace tenon::test {

class GuardedBuffer {
 public:
  GuardedBuffer() : GuardedBuffer(0) {}
  // `bytes` bytes, all equal to `fill`. GuardAt::end: aligned to the largest power of two in their number, up to a
  // page.
  explicit GuardedBuffer(size_t bytes, int fill = 0xa5, testing::GuardAt at = testing::GuardAt::end)
      : memory_(std::make_unique<testing::Guarded<std::byte>>(bytes, at)) {
    if (bytes > 0) std::memset(data(), fill, bytes);
  }
  std::byte* data() const { return memory_->data(); }
  size_t bytes() const { return memory_->values().size(); }

 private:
  std::unique_ptr<testing::Guarded<std::byte>> memory_;
};

}  // namespace tenon::test
