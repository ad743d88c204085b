#include "vta/dram.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::vta {
namespace {

uint64_t pages(uint64_t bytes) { return (bytes + Dram::kPageBytes - 1) / Dram::kPageBytes * Dram::kPageBytes; }

}  // namespace

// The first gap that holds the buffer and a page after it. 0 is not a valid address.
uint64_t Dram::free_address(uint64_t bytes) const {
  uint64_t at = kPageBytes;
  for (const auto& [begin, buffer] : buffers_) {
    if (at + pages(bytes) + kPageBytes <= begin) break;
    at = begin + pages(buffer.bytes) + kPageBytes;
  }
  return at;
}

Result<std::byte*> Dram::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > kMaxBufferBytes)
    return error(Code::invalid_argument, "a buffer of ", bytes, " bytes; one has 1 to ", kMaxBufferBytes);
  const uint64_t address = free_address(bytes);
  if (used_ + bytes > capacity_ || address + bytes > uint64_t{1} << 32)
    return error(Code::resource_exhausted, "no memory for a buffer of ", bytes, " bytes: ", used_, " of ", capacity_,
                 " are in use");
  TENON_TRY(data, allocate_aligned(bytes));
  std::memset(data.get(), 0, bytes);
  std::byte* host = data.get();
  buffers_.emplace(address, Buffer{bytes, std::move(data)});
  by_host_.emplace(host, address);
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return host;
}

Result<void> Dram::free(const std::byte* buffer) {
  const auto found = by_host_.find(buffer);
  if (found == by_host_.end()) return error(Code::invalid_argument, "what is freed is no buffer");
  const auto at = buffers_.find(found->second);
  used_ -= at->second.bytes;
  buffers_.erase(at);
  by_host_.erase(found);
  return {};
}

Result<uint32_t> Dram::physical_address(const std::byte* byte) const {
  auto next = by_host_.upper_bound(byte);
  if (next != by_host_.begin()) {
    const auto& [host, address] = *std::prev(next);
    const auto offset = static_cast<uint64_t>(byte - host);
    if (offset < buffers_.at(address).bytes) return static_cast<uint32_t>(address + offset);
  }
  return error(Code::invalid_argument, "an address of the host that lies in no buffer");
}

Result<std::span<std::byte>> Dram::at(uint64_t address, uint64_t bytes) {
  auto next = buffers_.upper_bound(address);
  if (next != buffers_.begin()) {
    auto& [begin, buffer] = *std::prev(next);
    const uint64_t offset = address - begin;
    if (offset <= buffer.bytes && bytes <= buffer.bytes - offset)
      return std::span(buffer.data.get() + offset, static_cast<size_t>(bytes));
    if (offset < buffer.bytes)
      return error(Code::invalid_argument, "[", address, ", ", address + bytes, ") leaves the buffer [", begin, ", ",
                   begin + buffer.bytes, ")");
  }
  return error(Code::invalid_argument, "[", address, ", ", address + bytes, ") lies in no buffer");
}

}  // namespace tenon::vta
