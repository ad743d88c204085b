#include <tenon/tensor/reorder_fields_internal.hpp>

#include <algorithm>

#include <tenon/tensor/reorder_tiles.hpp>

namespace tenon::detail {
namespace {

constexpr int64_t kTile = 64;  // fields on either side

// To bytes; writes whole groups of eight.
void unpack(const BitSource& source, int64_t at, int64_t width, int64_t count, std::byte* out) {
  for (; count > 0; count -= 8, at += 8 * width, out += 8) {
    const uint64_t bytes = spread_fields(source.load(at, std::min<int64_t>(count, 8) * width), width);
    std::memcpy(out, &bytes, 8);
  }
}

// From bytes; reads whole groups of eight.
void pack(const std::byte* in, int64_t width, int64_t count, std::byte* destination, int64_t at) {
  BitWriter out(destination, at);
  for (; count > 0; count -= 8, in += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, in, 8);
    const int64_t bits = std::min<int64_t>(count, 8) * width;
    out.put_wide(join_fields(bytes, width) & ((uint64_t{1} << bits) - 1), bits);
  }
  out.flush();
}

bool in_bytes(int64_t at, int64_t step, int64_t width) { return step % 8 == 0 && (at & 7) + width <= 8; }

}  // namespace

void transpose_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& reader,
                      const NestLoop& writer, int64_t width) {
  alignas(kTile) std::byte in[kTile * kTile], out[kTile * kTile];
  for (int64_t r = 0; r < reader.count; r += kTile) {
    const int64_t columns = std::min(kTile, reader.count - r);
    for (int64_t c = 0; c < writer.count; c += kTile) {
      const int64_t rows = std::min(kTile, writer.count - c);
      for (int64_t i = 0; i < rows; ++i) {
        unpack(source, from + r * width + (c + i) * writer.from, width, columns, in + i * kTile);
      }
      transpose({.source = in,
                 .destination = out,
                 .rows = rows,
                 .columns = columns,
                 .source_pitch = kTile,
                 .destination_pitch = kTile},
                1);
      for (int64_t i = 0; i < columns; ++i) {
        pack(out + i * kTile, width, rows, destination, to + (r + i) * reader.to + c * width);
      }
    }
  }
}

bool copy_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& loop,
                 int64_t width) {
  if (loop.to == width && in_bytes(from, loop.from, width)) {
    std::byte bytes[8] = {};
    const auto mask = static_cast<uint8_t>((1 << width) - 1);
    BitWriter out(destination, to);
    for (int64_t i = 0; i < loop.count; i += 8) {
      const int64_t some = std::min<int64_t>(loop.count - i, 8);
      for (int64_t k = 0; k < some; ++k) {
        const int64_t at = from + (i + k) * loop.from;
        bytes[k] = static_cast<std::byte>(static_cast<uint8_t>(source.bytes[at >> 3]) >> (at & 7) & mask);
      }
      uint64_t x;
      std::memcpy(&x, bytes, 8);
      out.put_wide(join_fields(x, width) & ((uint64_t{1} << some * width) - 1), some * width);
    }
    out.flush();
    return true;
  }
  if (loop.from != width || !in_bytes(to, loop.to, width)) return false;
  const int64_t shift = to & 7;
  const auto keep = static_cast<std::byte>(~(((1 << width) - 1) << shift) & 0xff);
  for (int64_t i = 0; i < loop.count; i += 8) {
    const int64_t some = std::min<int64_t>(loop.count - i, 8);
    const uint64_t x = spread_fields(source.load(from + i * width, some * width), width) << shift;
    std::byte bytes[8];
    std::memcpy(bytes, &x, 8);
    std::byte* at = destination + (to >> 3) + i * (loop.to >> 3);
    for (int64_t k = 0; k < some; ++k, at += loop.to >> 3) *at = (*at & keep) | bytes[k];
  }
  return true;
}

}  // namespace tenon::detail
