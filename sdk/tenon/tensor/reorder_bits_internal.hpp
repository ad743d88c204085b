// Internal to the room: ranges of bits, written without accessing bytes outside them.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenon::detail {

static_assert(std::endian::native == std::endian::little, "words are moved as they lie in memory");

// Bits to read. Only bytes up to `end` are accessed, and none before the requested one.
struct BitSource {
  const std::byte* bytes;
  const std::byte* end;

  // `count` bits from bit `at` on, 1 to 57.
  uint64_t load(int64_t at, int64_t count) const {
    const int64_t shift = at & 7;
    const std::byte* p = bytes + (at >> 3);
    uint64_t word = 0;
    if (end - p >= 8) {
      std::memcpy(&word, p, 8);
    } else {
      for (int64_t i = 0; i < (shift + count + 7) >> 3; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
    }
    return word >> shift & ((uint64_t{1} << count) - 1);
  }
  // 1 to 64 bits.
  uint64_t load_wide(int64_t at, int64_t count) const {
    if (count <= 57) return load(at, count);
    return load(at, 32) | load(at + 32, count - 32) << 32;
  }
};

// Writes bits from position `at` on, in order. Preserves the other bits of the first and the last byte.
class BitWriter {
 public:
  BitWriter(std::byte* bytes, int64_t at) : next_(bytes + (at >> 3)), held_(at & 7) {
    if (held_) word_ = static_cast<uint64_t>(*next_) & ((uint64_t{1} << held_) - 1);
  }

  // `count` bits, at most 32; the bits above must be 0.
  void put(uint64_t value, int64_t count) {
    word_ |= value << held_;
    held_ += count;
    if (held_ < 32) return;
    const auto low = static_cast<uint32_t>(word_);
    std::memcpy(next_, &low, 4);
    next_ += 4;
    word_ >>= 32;
    held_ -= 32;
  }
  // Up to 64 bits.
  void put_wide(uint64_t value, int64_t count) {
    const int64_t low = std::min<int64_t>(count, 32);
    put(value & ((uint64_t{1} << low) - 1), low);
    if (count > 32) put(value >> 32, count - 32);
  }
  void put_zeros(int64_t count) {
    for (; count > 0; count -= 32) put(0, std::min<int64_t>(count, 32));
  }
  void copy(const BitSource& source, int64_t from, int64_t count) {
    for (; count > 0; count -= 32, from += 32) {
      const int64_t some = std::min<int64_t>(count, 32);
      put(source.load(from, some), some);
    }
  }
  // To be called after the last bits.
  void flush() {
    for (; held_ >= 8; held_ -= 8, word_ >>= 8) *next_++ = static_cast<std::byte>(word_ & 0xff);
    if (held_ == 0) return;
    const auto mask = static_cast<uint64_t>((1 << held_) - 1);
    *next_ = static_cast<std::byte>((static_cast<uint64_t>(*next_) & ~mask) | (word_ & mask));
  }

 private:
  std::byte* next_;
  int64_t held_;  // bits in word_, below 40
  uint64_t word_ = 0;
};

// Copies a long range of bits, a word at a time.
inline void copy_bits(const BitSource& source, int64_t from, std::byte* destination, int64_t to, int64_t count) {
  const int64_t head = std::min(-to & 7, count), words = (count - head) >> 6;
  BitWriter front(destination, to);
  front.copy(source, from, head);
  front.flush();
  from += head;
  to += head;
  if ((from & 7) == 0) {
    std::memcpy(destination + (to >> 3), source.bytes + (from >> 3), static_cast<size_t>(words * 8));
  } else {
    const std::byte* in = source.bytes + (from >> 3);
    std::byte* out = destination + (to >> 3);
    const int64_t shift = from & 7;
    for (int64_t i = 0; i < words; ++i, in += 8, out += 8) {
      // The last bits of the word are in a ninth byte.
      uint64_t word;
      std::memcpy(&word, in, 8);
      word = word >> shift | static_cast<uint64_t>(in[8]) << (64 - shift);
      std::memcpy(out, &word, 8);
    }
  }
  BitWriter back(destination, to + words * 64);
  back.copy(source, from + words * 64, count - head - words * 64);
  back.flush();
}

}  // namespace tenon::detail
