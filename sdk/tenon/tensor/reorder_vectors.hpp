// Inside of the room: vectors of the compiler, and the kernels on them that are compiled for several instruction sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <tenon/tensor/reorder_tiles.hpp>

namespace tenon::detail {

inline constexpr int64_t kVectorBytes = 16;

template <class T, int64_t kBytes = kVectorBytes>
struct Vector {
  using Type [[gnu::vector_size(kBytes)]] = T;
  static constexpr int kCount = kBytes / static_cast<int64_t>(sizeof(T));
};

// Up to 16 bytes, as two pieces that overlap.
inline void copy_up_to_vector(std::byte* to, const std::byte* from, int64_t bytes) {
  const auto ends = [&]<class Piece>(Piece) {
    Piece first, last;
    constexpr int64_t kSize = sizeof(Piece);
    std::memcpy(&first, from, kSize);
    std::memcpy(&last, from + bytes - kSize, kSize);
    std::memcpy(to, &first, kSize);
    std::memcpy(to + bytes - kSize, &last, kSize);
  };
  if (bytes == kVectorBytes) {
    std::memcpy(to, from, kVectorBytes);
  } else if (bytes >= 8) {
    ends(uint64_t{});
  } else if (bytes >= 4) {
    ends(uint32_t{});
  } else if (bytes >= 2) {
    ends(uint16_t{});
  } else if (bytes == 1) {
    *to = *from;
  }
}

// Of any length, for runs too short for a call.
inline void copy_short(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes <= kVectorBytes) return copy_up_to_vector(to, from, bytes);
  for (int64_t at = 0; at < bytes - kVectorBytes; at += kVectorBytes) std::memcpy(to + at, from + at, kVectorBytes);
  std::memcpy(to + bytes - kVectorBytes, from + bytes - kVectorBytes, kVectorBytes);
}

// Up to here copy_short is quicker than a call.
inline constexpr int64_t kShortRun = 256;

// A square of elements: one vector of 16 bytes on either side.
template <class T>
inline constexpr int64_t kSquare = Vector<T>::kCount;

// What a kernel may touch beyond the elements of its task.
struct TransposeBounds {
  const std::byte* readable;  // end of the source
  std::byte* writable;        // end of the destination
  bool overwrites;            // what is written behind the rows of one column is the start of the next ones, which come later
};
// All of a task: in the widest vectors that its rows fill, the last ones over those before them.
using BlocksFn = void (*)(const TransposeTask& task, const TransposeBounds& bounds);
// Planes of `count` elements each to elements side by side: destination[i * planes + p] = source[p * pitch + i]; and
// back: destination[p * pitch + i] = source[i * planes + p].
using PlanesFn = void (*)(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count);

struct TileKernels {
  BlocksFn blocks;
  PlanesFn interleave[3], split[3];  // of 2, 3 and 4 planes
};
template <class T>
const TileKernels& tile_kernels(ReorderIsa isa);

}  // namespace tenon::detail
