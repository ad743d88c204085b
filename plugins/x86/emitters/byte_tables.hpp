// Lookups in tables of 256 bytes, which replace functions of one byte (body/byte_tables.hpp).
//
//   ByteTable x {table, to}   entry x mod 256 of `table`, as a value of `to`. x and the result are lanes of 32 bits
//     table   64 words of four entries each, the first entry in the low byte
//     to      "u8" or "i8": how an entry is extended to 32 bits
//   ByteTableBytes x          the same in lanes of bytes (passes/bytes.cpp)
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <tenon/ir/attribute.hpp>

namespace tenon::x86 {

inline constexpr size_t kTableEntries = 256;
using TableWords = std::array<uint32_t, kTableEntries / 4>;

// Attributes of a table whose entries are the low bytes of `entries`, which has kTableEntries elements.
Attributes byte_table(std::span<const uint64_t> entries, bool is_signed);
TableWords words_of_table(const Attributes& attributes);
// The least and the greatest entry, as values of the type in attribute `to`.
std::pair<int32_t, int32_t> range_of_table(const Attributes& attributes);

}  // namespace tenon::x86
