// Internal to the room: elements that do not fill machine types, several at a time within one machine word.
#pragma once
#include <tenon/tensor/reorder_bits_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>

namespace tenon::detail {

// Fields of up to this many bits are moved in machine types.
inline constexpr int64_t kMaxFieldBits = 63;

// Unpacks adjacent fields of `width` bits to one T each, as many as a machine word holds, and packs them. Halves,
// quarters and eighths of the word are moved apart step by step.
template <class T>
class FieldWords {
 public:
  static constexpr int64_t kLane = 8 * sizeof(T), kCount = 64 / kLane;

  explicit constexpr FieldWords(int64_t width) : width_(width) {
    for (int64_t step = 0, fields = kCount / 2; fields > 0; ++step, fields /= 2) {
      const uint64_t part = (uint64_t{1} << fields * width) - 1;
      for (int64_t at = 0; at < 64; at += 2 * fields * kLane) masks_[step] |= part << at;
    }
  }
  constexpr int64_t width() const { return width_; }

  constexpr uint64_t spread(uint64_t x) const {
    for (int64_t step = 0, fields = kCount / 2; fields > 0; ++step, fields /= 2) {
      x = (x & masks_[step]) | (x >> fields * width_ & masks_[step]) << fields * kLane;
    }
    return x;
  }
  constexpr uint64_t join(uint64_t x) const {
    for (int64_t step = kSteps - 1, fields = 1; step >= 0; --step, fields *= 2) {
      x = (x & masks_[step]) | (x >> fields * kLane & masks_[step]) << fields * width_;
    }
    return x;
  }

 private:
  static constexpr int64_t kSteps = kCount == 8 ? 3 : kCount == 4 ? 2 : kCount == 2 ? 1 : 0;
  int64_t width_;
  uint64_t masks_[kSteps + 1] = {};
};

// Moves reader.count x writer.count fields: destination[to + r * reader.to + c * width] = source[from + r * width +
// c * writer.from], in bits. Uses machine types, which are transposed in tiles.
void transpose_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& reader,
                      const NestLoop& writer, int64_t width);

// Copies along one loop in which the fields of one side are each within a machine type of their own (any distance of
// whole bytes apart), and those of the other side are adjacent. Preserves other bits of the destination's bytes. False:
// it is not such a loop.
bool copy_fields(const BitSource& source, int64_t from, std::byte* destination, int64_t to, const NestLoop& loop,
                 int64_t width);

}  // namespace tenon::detail
