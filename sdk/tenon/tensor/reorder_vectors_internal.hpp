// Internal to the room: compiler vectors, and the kernels on them, which are compiled for several instruction sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <tenon/tensor/reorder_tiles_internal.hpp>

namespace tenon::detail {

inline constexpr int64_t kVectorBytes = 16;

template <class T, int64_t kBytes = kVectorBytes>
struct Vector {
  using Type [[gnu::vector_size(kBytes)]] = T;
  static constexpr int kCount = kBytes / static_cast<int64_t>(sizeof(T));
};

template <class T, int64_t kBytes>
using VectorOf = typename Vector<T, kBytes>::Type;

// For functions that are inlined into functions of one instruction set each. Vectors are passed by reference: the
// calling convention for values depends on the instruction set.
#define TENON_INLINE [[gnu::always_inline]] inline

#define TENON_TARGET_AVX512 "avx512f,avx512bw,avx512vl,avx512vbmi,prfchw,prefer-vector-width=512"

// Copies up to 16 bytes, as two overlapping pieces.
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

// Copies any length, for runs too short for a call.
inline void copy_short(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes <= kVectorBytes) return copy_up_to_vector(to, from, bytes);
  for (int64_t at = 0; at < bytes - kVectorBytes; at += kVectorBytes) std::memcpy(to + at, from + at, kVectorBytes);
  std::memcpy(to + bytes - kVectorBytes, from + bytes - kVectorBytes, kVectorBytes);
}

// Up to this length, copy_short is faster than a call.
inline constexpr int64_t kShortRun = 256;

// Transposes all matrices of a task; nothing outside their elements is written, or read except for gaps of the source.
// `far`: the source is prefetched one 64-byte line ahead.
using BlocksFn = void (*)(const TransposeTask& task, bool far);
template <class T>
BlocksFn blocks_kernel(ReorderIsa isa);

// Interleaves planes of `count` elements each: destination[i * planes + p] = source[p * pitch + i]; and splits them:
// destination[p * pitch + i] = source[i * planes + p].
using PlanesFn = void (*)(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count);
struct PlaneKernels {
  PlanesFn interleave[3], split[3];  // of 2, 3 and 4 planes
};
template <class T>
const PlaneKernels& plane_kernels(ReorderIsa isa);

}  // namespace tenon::detail
