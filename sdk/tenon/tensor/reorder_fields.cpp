#include <tenon/tensor/reorder_fields_internal.hpp>

#include <algorithm>

#include <tenon/tensor/reorder_tiles_internal.hpp>

namespace tenon::detail {
namespace {

// Number of fields per tile on either side.
template <class T>
constexpr int64_t kTile = sizeof(T) <= 2 ? 64 : 32;

constexpr uint64_t low_bits(uint64_t x, int64_t count) { return count < 64 ? x & ((uint64_t{1} << count) - 1) : x; }

// Unpacks to machine types; writes whole words of them.
template <class T>
void unpack(const FieldWords<T>& fields, const BitSource& source, int64_t at, int64_t count, std::byte* out) {
  constexpr int64_t kCount = FieldWords<T>::kCount;
  const int64_t bits = kCount * fields.width();
  if (((at | bits) & 7) == 0) {
    // For whole bytes.
    const std::byte* from = source.bytes + (at >> 3);
    for (; count >= kCount && source.end - from >= 8; count -= kCount, at += bits, from += bits >> 3, out += 8) {
      uint64_t word;
      std::memcpy(&word, from, 8);
      word = fields.spread(low_bits(word, bits));
      std::memcpy(out, &word, 8);
    }
  }
  for (; count >= kCount; count -= kCount, at += bits, out += 8) {
    const uint64_t word = fields.spread(source.load_wide(at, bits));
    std::memcpy(out, &word, 8);
  }
  if (count == 0) return;
  const uint64_t word = fields.spread(source.load_wide(at, count * fields.width()));
  std::memcpy(out, &word, 8);
}

// Packs from machine types; reads whole words of them.
template <class T>
void pack(const FieldWords<T>& fields, const std::byte* in, int64_t count, std::byte* destination, int64_t at) {
  constexpr int64_t kCount = FieldWords<T>::kCount;
  if (const int64_t whole = kCount * fields.width(); ((at | whole) & 7) == 0) {
    // For whole bytes: excess stored after them is overwritten next.
    for (; count * fields.width() >= 64 && count >= kCount; count -= kCount, at += whole, in += 8) {
      uint64_t word;
      std::memcpy(&word, in, 8);
      word = fields.join(word);
      std::memcpy(destination + (at >> 3), &word, 8);
    }
  }
  BitWriter out(destination, at);
  for (; count > 0; count -= kCount, in += 8) {
    uint64_t word;
    std::memcpy(&word, in, 8);
    const int64_t bits = std::min(count, kCount) * fields.width();
    out.put_wide(low_bits(fields.join(word), bits), bits);
  }
  out.flush();
}

template <class T>
void transpose_as(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& reader,
                  const NestLoop& writer, int64_t width) {
  constexpr int64_t kSide = kTile<T>, kPitch = kSide * sizeof(T);
  const FieldWords<T> fields(width);
  alignas(64) std::byte in[kSide * kPitch], out[kSide * kPitch];
  for (int64_t r = 0; r < reader.count; r += kSide) {
    const int64_t columns = std::min(kSide, reader.count - r);
    for (int64_t c = 0; c < writer.count; c += kSide) {
      const int64_t rows = std::min(kSide, writer.count - c);
      for (int64_t i = 0; i < rows; ++i) {
        unpack(fields, source, from + r * width + (c + i) * writer.from, columns, in + i * kPitch);
      }
      transpose({.source = in,
                 .destination = out,
                 .rows = rows,
                 .columns = columns,
                 .source_pitch = kPitch,
                 .destination_pitch = kPitch},
                sizeof(T));
      for (int64_t i = 0; i < columns; ++i) {
        pack(fields, out + i * kPitch, rows, destination, to + (r + i) * reader.to + c * width);
      }
    }
  }
}

// Whether each field is within the bytes of one T and uses all of them.
template <class T>
bool is_in_cells(int64_t at, int64_t step, int64_t width) {
  return step % 8 == 0 && ((at & 7) + width + 7) / 8 == static_cast<int64_t>(sizeof(T));
}

template <class T>
bool copy_as(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& loop,
             int64_t width) {
  constexpr int64_t kCount = FieldWords<T>::kCount;
  const FieldWords<T> fields(width);
  const T mask = static_cast<T>(low_bits(~uint64_t{0}, width));
  T cells[kCount] = {};
  if (loop.to == width && is_in_cells<T>(from, loop.from, width)) {
    const std::byte* at = source.bytes + (from >> 3);
    const int64_t shift = from & 7, step = loop.from / 8;
    BitWriter out(destination, to);
    for (int64_t left = loop.count; left > 0; left -= kCount) {
      const int64_t some = std::min(left, kCount);
      for (int64_t k = 0; k < some; ++k, at += step) {
        std::memcpy(&cells[k], at, sizeof(T));
        cells[k] = static_cast<T>(cells[k] >> shift & mask);
      }
      uint64_t word;
      std::memcpy(&word, cells, 8);
      out.put_wide(low_bits(fields.join(word), some * width), some * width);
    }
    out.flush();
    return true;
  }
  if (loop.from != width || !is_in_cells<T>(to, loop.to, width)) return false;
  const int64_t shift = to & 7, step = loop.to / 8;
  const T keep = static_cast<T>(~(static_cast<uint64_t>(mask) << shift));
  std::byte* at = destination + (to >> 3);
  for (int64_t left = loop.count; left > 0; left -= kCount, from += kCount * width) {
    const int64_t some = std::min(left, kCount);
    const uint64_t word = fields.spread(source.load_wide(from, some * width)) << shift;
    std::memcpy(cells, &word, 8);
    for (int64_t k = 0; k < some; ++k, at += step) {
      T held;
      std::memcpy(&held, at, sizeof(T));
      held = static_cast<T>((held & keep) | cells[k]);
      std::memcpy(at, &held, sizeof(T));
    }
  }
  return true;
}

// Calls f with the machine type that holds this many bits.
template <class F>
auto with_type_of(int64_t bits, const F& f) {
  if (bits <= 8) return f(uint8_t{});
  if (bits <= 16) return f(uint16_t{});
  if (bits <= 32) return f(uint32_t{});
  return f(uint64_t{});
}

}  // namespace

void transpose_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& reader,
                      const NestLoop& writer, int64_t width) {
  with_type_of(width, [&]<class T>(T) { transpose_as<T>(source, from, destination, to, reader, writer, width); });
}

bool copy_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& loop,
                 int64_t width) {
  // For the side with a machine type of its own for each field.
  const int64_t bits = ((loop.to == width ? from : to) & 7) + width;
  return bits <= 64 && with_type_of(bits, [&]<class T>(T) {
    return copy_as<T>(source, from, destination, to, loop, width);
  });
}

}  // namespace tenon::detail
