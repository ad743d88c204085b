// Dram: the memory outside the accelerator, as buffers with 32-bit physical addresses.
//
// Each buffer begins at a page boundary and is followed by an unused page, so an access that leaves a buffer is
// detected and reported, whatever the next buffer is.
#pragma once
#include <cstdint>
#include <map>
#include <span>

#include <tenon/support/memory.hpp>
#include <tenon/support/result.hpp>

namespace tenon::vta {

class Dram {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 25;

  explicit Dram(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Allocates zeros. The host accesses them at the returned address, until free().
  Result<std::byte*> allocate(uint64_t bytes);
  // An error for addresses that allocate() did not return.
  Result<void> free(const std::byte* buffer);
  // The physical address of any byte of a buffer.
  Result<uint32_t> physical_address(const std::byte* byte) const;
  // The bytes at a physical address, which must be in one buffer.
  Result<std::span<std::byte>> at(uint64_t address, uint64_t bytes);

  uint64_t used_bytes() const { return used_; }
  uint64_t peak_bytes() const { return peak_; }
  size_t buffers() const { return buffers_.size(); }

 private:
  struct Buffer {
    uint64_t bytes = 0;
    AlignedBytes data;
  };
  uint64_t free_address(uint64_t bytes) const;

  const uint64_t capacity_;
  uint64_t used_ = 0, peak_ = 0;
  std::map<uint64_t, Buffer> buffers_;            // by physical address
  std::map<const std::byte*, uint64_t> by_host_;  // first byte -> physical address
};

}  // namespace tenon::vta
