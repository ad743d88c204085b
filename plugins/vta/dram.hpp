// Dram: the memory outside of the accelerator, as buffers with physical addresses of 32 bits.
//
// Each buffer begins at a page of its own and a page of nothing lies behind it, so an access that leaves a buffer is
// found and said, whatever lies next.
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

  // Zeros. Where the host reads and writes it, until free().
  Result<std::byte*> allocate(uint64_t bytes);
  // An address that allocate() did not give is an error.
  Result<void> free(const std::byte* buffer);
  // Of any byte of a buffer.
  Result<uint32_t> physical_address(const std::byte* byte) const;
  // The bytes at a physical address; all of them lie in one buffer.
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
