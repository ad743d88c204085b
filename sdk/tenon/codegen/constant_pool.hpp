// The constants of one kernel, de-duplicated: each value is stored once, whatever asks for it.
//
//   mulps(out, in, address of pool.add(kF32, bits_of(0.5f)))
//
// The pool is placed after the code, aligned to 64 bytes. Machines that must know its position earlier add what they
// need in Emitter::emit_data. One thread fills it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::codegen {

class TENON_API ConstantPool {
 public:
  // `copies`: how many times each single value is stored in succession: 1 where the machine broadcasts from memory, or
  // the number of 32-bit lanes of a vector; 64-bit values then have half as many.
  explicit ConstantPool(int copies = 1) : copies_(copies) {}

  // Adds a value of 4 or 8 bytes, given by its bits. Returns its offset in bytes from the pool's start, the same for
  // the same bits and size.
  size_t add(ElementType element, uint64_t bits);
  // Adds a table of 4-byte entries, stored once, aligned to 64 bytes. Returns the same offset for the same entries.
  size_t add_table(std::span<const uint32_t> entries);

  int copies() const { return copies_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  size_t append(const void* data, size_t bytes, size_t alignment);
  int copies_;
  std::map<std::pair<size_t, uint64_t>, size_t> values_;  // (bytes of the value, bits) -> offset
  struct Before {                                         // any order; of entries that are looked for without a copy
    using is_transparent = void;
    bool operator()(std::span<const uint32_t> a, std::span<const uint32_t> b) const;
  };
  std::map<std::vector<uint32_t>, size_t, Before> tables_;
  std::vector<std::byte> bytes_;
};

}  // namespace tenon::codegen
