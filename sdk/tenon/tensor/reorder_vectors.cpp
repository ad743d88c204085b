#include <tenon/tensor/reorder_vectors.hpp>

#include <algorithm>

namespace tenon::detail {
namespace {

// Everything below is inlined into functions of one instruction set each. Vectors go by reference: by value their
// calling convention depends on the instruction set.
#define TENON_INLINE [[gnu::always_inline]] inline

template <class T, int64_t kBytes>
using VectorOf = typename Vector<T, kBytes>::Type;

template <class T, int64_t kBytes, int... kLane>
TENON_INLINE void join(const VectorOf<T, kBytes>& a, const VectorOf<T, kBytes>& b, VectorOf<T, 2 * kBytes>& out,
                       std::integer_sequence<int, kLane...>) {
  out = __builtin_shufflevector(a, b, kLane...);
}

// 16 bytes each of lines `step` apart, side by side.
template <class T, int64_t kBytes>
TENON_INLINE void load_lines(const std::byte* from, [[maybe_unused]] int64_t step, VectorOf<T, kBytes>& out) {
  if constexpr (kBytes == kVectorBytes) {
    std::memcpy(&out, from, kVectorBytes);
  } else {
    constexpr int64_t kHalf = kBytes / 2;
    VectorOf<T, kHalf> low, high;
    load_lines<T, kHalf>(from, step, low);
    load_lines<T, kHalf>(from + kHalf / kVectorBytes * step, step, high);
    join<T, kHalf>(low, high, out, std::make_integer_sequence<int, Vector<T, kBytes>::kCount>());
  }
}

// In each 16 bytes: elements of the lower or upper halves of both, taken in turn.
template <class T, int64_t kBytes, bool kUpper>
TENON_INLINE void take_in_turn(const VectorOf<T, kBytes>& a, const VectorOf<T, kBytes>& b, VectorOf<T, kBytes>& out) {
  constexpr int kCount = Vector<T, kBytes>::kCount, kLane = Vector<T>::kCount;
  VectorOf<T, kBytes> order;
  for (int i = 0; i < kCount; ++i) {
    const int start = i / kLane * kLane + (kUpper ? kLane / 2 : 0);
    order[i] = static_cast<T>(start + i % kLane / 2 + (i % 2) * kCount);
  }
  out = __builtin_shuffle(a, b, order);
}

// Squares below one another, one for each 16 bytes of the vector. Rows i and i + n/2 taken in turn, log2(n) times, are
// the columns.
template <class T, int64_t kBytes>
TENON_INLINE void transpose_block(const std::byte* source, int64_t source_pitch, std::byte* destination,
                                  int64_t destination_pitch) {
  constexpr int kCount = Vector<T>::kCount;
  VectorOf<T, kBytes> rows[kCount], next[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) load_lines<T, kBytes>(source + i * source_pitch, kCount * source_pitch, rows[i]);
#pragma GCC unroll 4
  for (int step = 1; step < kCount; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) {
      take_in_turn<T, kBytes, false>(rows[i], rows[i + kCount / 2], next[2 * i]);
      take_in_turn<T, kBytes, true>(rows[i], rows[i + kCount / 2], next[2 * i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) std::memcpy(destination + i * destination_pitch, &rows[i], kBytes);
}

template <class T, int64_t kBytes>
TENON_INLINE int64_t transpose_blocks(const TransposeTask& task, int64_t row) {
  constexpr int64_t kCount = Vector<T>::kCount, kRows = Vector<T, kBytes>::kCount;
  const int64_t size = sizeof(T);
  for (; row + kRows <= task.rows; row += kRows) {
    for (int64_t column = 0; column < task.columns; column += kCount) {
      transpose_block<T, kBytes>(task.source + row * task.source_pitch + column * size, task.source_pitch,
                                 task.destination + column * task.destination_pitch + row * size,
                                 task.destination_pitch);
    }
  }
  return row;
}

// out[i] = the element first + i * stride of all `in` together, in which element e lies in in[e / n], or in
// in[e % kVectors] when they take turns.
template <class T, int64_t kBytes, int kVectors, class At>
TENON_INLINE void pick(const VectorOf<T, kBytes> (&in)[kVectors], VectorOf<T, kBytes>& out, const At& at) {
  constexpr int kCount = Vector<T, kBytes>::kCount;
  out = in[0];
#pragma GCC unroll 4
  for (int v = 1; v < kVectors; ++v) {
    // Lanes of the vectors up to v are in place after this step; the first one also sorts those of in[0].
    VectorOf<T, kBytes> order;
#pragma GCC unroll 64
    for (int i = 0; i < kCount; ++i) {
      const auto [vector, lane] = at(i);
      order[i] = static_cast<T>(vector == v ? kCount + lane : vector == 0 && v == 1 ? lane : i);
    }
    out = __builtin_shuffle(out, in[v], order);
  }
}

// Scalar, for what is less than a vector.
template <class T, int kPlanes, bool kSplit>
TENON_INLINE void move_elements(const std::byte* source, std::byte* destination, int64_t pitch, int64_t begin,
                                int64_t end) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = begin; i < end; ++i) {
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPlanes; ++p) {
      const int64_t mixed = (i * kPlanes + p) * kSize, plane = p * pitch + i * kSize;
      std::memcpy(destination + (kSplit ? plane : mixed), source + (kSplit ? mixed : plane), kSize);
    }
  }
}

template <class T, int64_t kBytes, int kPlanes, bool kSplit>
TENON_INLINE void move_vectors(const std::byte* source, std::byte* destination, int64_t pitch, int64_t first) {
  constexpr int kCount = Vector<T, kBytes>::kCount;
  constexpr int64_t kSize = sizeof(T);
  VectorOf<T, kBytes> in[kPlanes], out;
  struct Place {
    int vector, lane;
  };
#pragma GCC unroll 4
  for (int p = 0; p < kPlanes; ++p) {
    const std::byte* from =
        source + (kSplit ? first * kPlanes * kSize + p * kBytes : p * pitch + first * kSize);
    std::memcpy(&in[p], from, kBytes);
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPlanes; ++p) {
    pick<T, kBytes>(in, out, [p](int i) {
      const int number = kSplit ? i * kPlanes + p : p * kCount + i;
      return kSplit ? Place{number / kCount, number % kCount} : Place{number % kPlanes, number / kPlanes};
    });
    std::byte* to = destination + (kSplit ? p * pitch + first * kSize : first * kPlanes * kSize + p * kBytes);
    std::memcpy(to, &out, kBytes);
  }
}

// The last vectors overlap those before them.
template <class T, int64_t kBytes, int kPlanes, bool kSplit>
TENON_INLINE bool move_planes(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  constexpr int64_t kCount = Vector<T, kBytes>::kCount;
  if (count < kCount) return false;
  for (int64_t i = 0; i + kCount <= count; i += kCount) {
    move_vectors<T, kBytes, kPlanes, kSplit>(source, destination, pitch, i);
  }
  if (count % kCount) move_vectors<T, kBytes, kPlanes, kSplit>(source, destination, pitch, count - kCount);
  return true;
}

// Without a shuffle of bytes, vectors of three planes would be taken apart.
template <class T, int kPlanes>
constexpr bool kShufflesInBaseline = kPlanes != 3 || sizeof(T) >= 4;

template <class T>
int64_t squares_baseline(const TransposeTask& task) {
  return transpose_blocks<T, 16>(task, 0);
}
template <class T, int kPlanes, bool kSplit>
void planes_baseline(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  if constexpr (kShufflesInBaseline<T, kPlanes>) {
    if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  }
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] int64_t squares_avx2(const TransposeTask& task) {
  return transpose_blocks<T, 16>(task, transpose_blocks<T, 32>(task, 0));
}
template <class T, int kPlanes, bool kSplit>
[[gnu::target("avx2")]] void planes_avx2(const std::byte* source, std::byte* destination, int64_t pitch,
                                         int64_t count) {
  if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}

#define TENON_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,prefer-vector-width=512")]]
template <class T>
TENON_AVX512 int64_t squares_avx512(const TransposeTask& task) {
  return transpose_blocks<T, 16>(task, transpose_blocks<T, 64>(task, 0));
}
template <class T, int kPlanes, bool kSplit>
TENON_AVX512 void planes_avx512(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  if (move_planes<T, 64, kPlanes, kSplit>(source, destination, pitch, count)) return;
  if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}
#endif

bool machine_runs([[maybe_unused]] ReorderIsa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == ReorderIsa::avx2) return __builtin_cpu_supports("avx2");
  if (isa == ReorderIsa::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
  }
#endif
  return isa == ReorderIsa::baseline;
}

}  // namespace

std::vector<ReorderIsa> reorder_isas() {
  std::vector<ReorderIsa> out;
  for (const ReorderIsa isa : {ReorderIsa::baseline, ReorderIsa::avx2, ReorderIsa::avx512}) {
    if (machine_runs(isa)) out.push_back(isa);
  }
  return out;
}

#define TENON_PLANES(ISA, SPLIT) \
  { planes_##ISA<T, 2, SPLIT>, planes_##ISA<T, 3, SPLIT>, planes_##ISA<T, 4, SPLIT> }
#define TENON_KERNELS(ISA) \
  { squares_##ISA<T>, TENON_PLANES(ISA, false), TENON_PLANES(ISA, true) }

template <class T>
const TileKernels& tile_kernels([[maybe_unused]] ReorderIsa isa) {
#if defined(__x86_64__)
  static constexpr TileKernels kAvx512 = TENON_KERNELS(avx512), kAvx2 = TENON_KERNELS(avx2);
  if (isa == ReorderIsa::avx512) return kAvx512;
  if (isa == ReorderIsa::avx2) return kAvx2;
#endif
  static constexpr TileKernels kBaseline = TENON_KERNELS(baseline);
  return kBaseline;
}
template const TileKernels& tile_kernels<uint8_t>(ReorderIsa);
template const TileKernels& tile_kernels<uint16_t>(ReorderIsa);
template const TileKernels& tile_kernels<uint32_t>(ReorderIsa);
template const TileKernels& tile_kernels<uint64_t>(ReorderIsa);

}  // namespace tenon::detail
