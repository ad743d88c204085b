// Memory of the strict driver. Host and device see different bytes of cached buffers until they are flushed or
// invalidated; addresses that the host gets can be accessed only by copies; physical addresses are unrelated to them;
// fresh memory is noise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace strict {

class Memory {
 public:
  explicit Memory(uint32_t seed) : random_(seed) {}

  // Null if `size` is not a valid size of a buffer.
  void* allocate(size_t size, bool cached);
  // All of them throw a Fault for an address that belongs to no buffer. `physical` requires the first byte of one.
  void free(void* buffer);
  uint32_t physical(void* buffer);
  void from_host(void* to, const void* from, size_t size);
  void to_host(void* to, const void* from, size_t size);
  void flush(void* at, uint32_t physical, int size);
  void invalidate(void* at, uint32_t physical, int size);

  // What the device sees at [address, address + size), which must be in one buffer.
  uint8_t* device(uint64_t address, uint64_t size);

 private:
  struct Buffer {
    uint64_t size = 0, physical = 0;
    bool cached = false;
    std::vector<uint8_t> host, device;
  };
  struct Part {
    Buffer* buffer;
    uint64_t offset;
  };
  Part part(const void* at, uint64_t size);
  Part coherent_part(const void* at, uint32_t physical, int size);
  uint64_t free_physical(uint64_t size);
  bool is_free(uint64_t address, uint64_t size) const;
  std::vector<uint8_t> noise(size_t size);

  std::mt19937 random_;
  std::map<uintptr_t, Buffer> buffers_;        // by the host's address
  std::map<uint64_t, uintptr_t> by_physical_;  // first byte
};

}  // namespace strict
