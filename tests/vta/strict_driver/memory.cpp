#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "options.hpp"

namespace strict {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 25, kAll = uint64_t{1} << 32, kApart = 4096;

// Reserves memory that cannot be read or written.
void* reserve(size_t size) {
  void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

std::string range(uint64_t at, uint64_t size) {
  return "[" + std::to_string(at) + ", " + std::to_string(at + size) + ")";
}

}  // namespace

std::vector<uint8_t> Memory::noise(size_t size) {
  std::vector<uint8_t> bytes(size);
  const uint32_t start = random_();
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>((start + i * 2654435761u) >> 13);
  return bytes;
}

bool Memory::is_free(uint64_t address, uint64_t size) const {
  return std::none_of(by_physical_.begin(), by_physical_.end(), [&](const auto& entry) {
    const uint64_t begin = entry.first, end = begin + buffers_.at(entry.second).size;
    return address < end + kApart && begin < address + size + kApart;
  });
}

// The first buffer ends at the end of the address space, the second begins at its start; the others are anywhere, some
// aligned to only 4 bytes.
uint64_t Memory::free_physical(uint64_t size) {
  if (by_physical_.empty()) return (kAll - size) / 4096 * 4096;
  if (is_free(0, size)) return 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t step = random_() % 3 == 0 ? 4 : 4096;
    const uint64_t address = random_() % (kAll - size) / step * step;
    if (is_free(address, size)) return address;
  }
  throw Fault("no room between the buffers");
}

void* Memory::allocate(size_t size, bool cached) {
  if (size == 0 || size > kMostBytes) return nullptr;
  const uint64_t address = free_physical(size);
  void* host = reserve(size);
  if (!host) return nullptr;
  const auto at = reinterpret_cast<uintptr_t>(host);
  Buffer& buffer = buffers_[at];
  buffer.size = size, buffer.physical = address, buffer.cached = cached;
  buffer.device = noise(size);
  if (cached) buffer.host = noise(size);
  by_physical_[address] = at;
  return host;
}

void Memory::free(void* buffer) {
  const auto found = buffers_.find(reinterpret_cast<uintptr_t>(buffer));
  if (found == buffers_.end()) throw Fault("VTAMemFree: no buffer begins there");
  munmap(buffer, found->second.size);
  by_physical_.erase(found->second.physical);
  buffers_.erase(found);
}

uint32_t Memory::physical(void* buffer) {
  const auto found = buffers_.find(reinterpret_cast<uintptr_t>(buffer));
  if (found == buffers_.end()) throw Fault("VTAMemGetPhyAddr: no buffer begins there");
  return static_cast<uint32_t>(found->second.physical);
}

Memory::Part Memory::part(const void* at, uint64_t size) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const auto next = buffers_.upper_bound(address);
  if (next == buffers_.begin()) throw Fault("an address of the host that lies in no buffer");
  const auto& [begin, buffer] = *std::prev(next);
  const uint64_t offset = address - begin;
  if (offset >= buffer.size || size > buffer.size - offset)
    throw Fault("bytes " + range(offset, size) + " of a buffer of " + std::to_string(buffer.size));
  return {&std::prev(next)->second, offset};
}

void Memory::from_host(void* to, const void* from, size_t size) {
  const Part p = part(to, size);
  std::vector<uint8_t>& bytes = p.buffer->cached ? p.buffer->host : p.buffer->device;
  std::memcpy(bytes.data() + p.offset, from, size);
}

void Memory::to_host(void* to, const void* from, size_t size) {
  const Part p = part(from, size);
  const std::vector<uint8_t>& bytes = p.buffer->cached ? p.buffer->host : p.buffer->device;
  std::memcpy(to, bytes.data() + p.offset, size);
}

Memory::Part Memory::coherent_part(const void* at, uint32_t physical, int size) {
  if (size <= 0) throw Fault("a cache is flushed for " + std::to_string(size) + " bytes");
  const Part p = part(at, static_cast<uint64_t>(size));
  if (p.buffer->physical + p.offset != physical)
    throw Fault("a cache is flushed at physical address " + std::to_string(physical) + ", the host's is " +
                std::to_string(p.buffer->physical + p.offset));
  return p;
}

void Memory::flush(void* at, uint32_t physical, int size) {
  const Part p = coherent_part(at, physical, size);
  if (p.buffer->cached) std::memcpy(p.buffer->device.data() + p.offset, p.buffer->host.data() + p.offset, size_t(size));
}

void Memory::invalidate(void* at, uint32_t physical, int size) {
  const Part p = coherent_part(at, physical, size);
  if (p.buffer->cached) std::memcpy(p.buffer->host.data() + p.offset, p.buffer->device.data() + p.offset, size_t(size));
}

uint8_t* Memory::device(uint64_t address, uint64_t size) {
  const auto next = by_physical_.upper_bound(address);
  if (next != by_physical_.begin()) {
    const auto& [begin, host] = *std::prev(next);
    Buffer& buffer = buffers_.at(host);
    const uint64_t offset = address - begin;
    if (offset < buffer.size && size <= buffer.size - offset) return buffer.device.data() + offset;
  }
  throw Fault("the device reaches for " + range(address, size) + ", which no buffer holds");
}

}  // namespace strict
