// Inside of the room: elements below a byte, eight at a time within one machine word.
#pragma once
#include <tenon/tensor/reorder_bits.hpp>
#include <tenon/tensor/reorder_internal.hpp>

namespace tenon::detail {

// Fields of up to so many bits: eight of them are loaded at once.
inline constexpr int64_t kMaxFieldBits = 7;

// Eight fields of `width` bits side by side, to one byte each; and back. Halves, quarters and eighths move apart.
constexpr uint64_t spread_fields(uint64_t x, int64_t width) {
  const uint64_t four = (uint64_t{1} << 4 * width) - 1, two = ((uint64_t{1} << 2 * width) - 1) * 0x0000000100000001,
                 one = ((uint64_t{1} << width) - 1) * 0x0001000100010001;
  x = (x & four) | (x >> 4 * width & four) << 32;
  x = (x & two) | (x >> 2 * width & two) << 16;
  return (x & one) | (x >> width & one) << 8;
}
constexpr uint64_t join_fields(uint64_t x, int64_t width) {
  const uint64_t four = (uint64_t{1} << 4 * width) - 1, two = ((uint64_t{1} << 2 * width) - 1) * 0x0000000100000001,
                 one = ((uint64_t{1} << width) - 1) * 0x0001000100010001;
  x = (x & one) | (x >> 8 & one) << width;
  x = (x & two) | (x >> 16 & two) << 2 * width;
  return (x & four) | (x >> 32 & four) << 4 * width;
}

// reader.count x writer.count fields: destination[to + r * reader.to + c * width] = source[from + r * width +
// c * writer.from], in bits. Through bytes, which are transposed in tiles.
void transpose_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& reader,
                      const NestLoop& writer, int64_t width);

// Along one loop, where fields of one side lie within bytes of their own (at any distance of whole bytes) and those of
// the other one side by side. Other bits of the destination's bytes stay. False: it is no such loop.
bool copy_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& loop,
                 int64_t width);

}  // namespace tenon::detail
