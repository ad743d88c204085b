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

// The same at the edge of a matrix: rows that it has not are 0, columns that it has not anything.
template <class T, int64_t kBytes>
TENON_INLINE void load_edge(const TransposeTask& task, const TransposeBounds& bounds, int64_t row, int64_t step,
                            int64_t column, VectorOf<T, kBytes>& out) {
  if constexpr (kBytes == kVectorBytes) {
    constexpr int64_t kSize = sizeof(T);
    out = VectorOf<T, kBytes>{};
    if (row >= task.rows) return;
    const std::byte* from = task.source + row * task.source_pitch + column * kSize;
    if (bounds.readable - from >= kVectorBytes) {
      std::memcpy(&out, from, kVectorBytes);
    } else {
      std::memcpy(&out, from, static_cast<size_t>(std::min<int64_t>((task.columns - column) * kSize, kVectorBytes)));
    }
  } else {
    constexpr int64_t kHalf = kBytes / 2;
    VectorOf<T, kHalf> low, high;
    load_edge<T, kHalf>(task, bounds, row, step, column, low);
    load_edge<T, kHalf>(task, bounds, row + kHalf / kVectorBytes * step, step, column, high);
    join<T, kHalf>(low, high, out, std::make_integer_sequence<int, Vector<T, kBytes>::kCount>());
  }
}

// Squares below one another, one for each 16 bytes of the vector. Rows i and i + n/2 taken in turn, log2(n) times, are
// the columns.
template <class T, int64_t kBytes>
TENON_INLINE void transpose_vectors(VectorOf<T, kBytes> (&rows)[Vector<T>::kCount]) {
  constexpr int kCount = Vector<T>::kCount;
  VectorOf<T, kBytes> next[kCount];
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
}

template <class T, int64_t kBytes>
TENON_INLINE void transpose_block(const TransposeTask& task, int64_t row, int64_t column) {
  constexpr int kCount = Vector<T>::kCount;
  constexpr int64_t kSize = sizeof(T);
  const std::byte* source = task.source + row * task.source_pitch + column * kSize;
  std::byte* destination = task.destination + column * task.destination_pitch + row * kSize;
  VectorOf<T, kBytes> rows[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    load_lines<T, kBytes>(source + i * task.source_pitch, kCount * task.source_pitch, rows[i]);
  }
  transpose_vectors<T, kBytes>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) std::memcpy(destination + i * task.destination_pitch, &rows[i], kBytes);
}

// Where rows, columns or elements of a vector may be missing.
template <class T, int64_t kBytes>
TENON_INLINE void transpose_edge(const TransposeTask& task, const TransposeBounds& bounds, int64_t row,
                                 int64_t column) {
  constexpr int kCount = Vector<T>::kCount;
  constexpr int64_t kSize = sizeof(T);
  VectorOf<T, kBytes> rows[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) load_edge<T, kBytes>(task, bounds, row + i, kCount, column, rows[i]);
  transpose_vectors<T, kBytes>(rows);
  const int64_t bytes = std::min<int64_t>((task.rows + task.zero_rows - row) * kSize, kBytes);
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    if (column + i >= task.columns) return;
    std::byte* to = task.destination + (column + i) * task.destination_pitch + row * kSize;
    if (bytes == kBytes || (bounds.overwrites && bounds.writable - to >= kBytes)) {
      std::memcpy(to, &rows[i], kBytes);
    } else {
      copy_short(to, reinterpret_cast<const std::byte*>(&rows[i]), bytes);
    }
  }
}

template <class T, int64_t kBytes>
TENON_INLINE void transpose_rows(const TransposeTask& task, const TransposeBounds& bounds, int64_t row, int64_t column,
                                 int64_t end) {
  constexpr int64_t kColumns = Vector<T>::kCount;
  if (row + Vector<T, kBytes>::kCount <= task.rows && end >= kColumns) {
    for (; column + kColumns <= end; column += kColumns) transpose_block<T, kBytes>(task, row, column);
    if (column < end) transpose_block<T, kBytes>(task, row, end - kColumns);
    return;
  }
  for (; column < end; column += kColumns) transpose_edge<T, kBytes>(task, bounds, row, column);
}

// Columns up to `end`, rows from `row` on, in vectors of up to `kBytes`.
template <class T, int64_t kBytes>
TENON_INLINE void transpose_columns(const TransposeTask& task, const TransposeBounds& bounds, int64_t row,
                                    int64_t column, int64_t end) {
  constexpr int64_t kRows = Vector<T, kBytes>::kCount;
  const int64_t all_rows = task.rows + task.zero_rows;
  for (; row + kRows <= all_rows; row += kRows) transpose_rows<T, kBytes>(task, bounds, row, column, end);
  if (row == all_rows) return;
  if constexpr (kBytes > kVectorBytes) {
    transpose_columns<T, kBytes / 2>(task, bounds, row, column, end);
  } else {
    transpose_rows<T, kBytes>(task, bounds, std::max<int64_t>(all_rows - kRows, 0), column, end);
  }
}

// Line by line of the source, so that there are no more streams to the destination than the processor sees. Rows of one
// vector have one stream.
template <class T, int64_t kBytes>
TENON_INLINE void transpose_blocks(const TransposeTask& task, const TransposeBounds& bounds) {
  constexpr int64_t kLine = kTileBytes / static_cast<int64_t>(sizeof(T));
  if (task.rows + task.zero_rows <= Vector<T, kBytes>::kCount) {
    return transpose_columns<T, kBytes>(task, bounds, 0, 0, task.columns);
  }
  for (int64_t column = 0; column < task.columns; column += kLine) {
    transpose_columns<T, kBytes>(task, bounds, 0, column, std::min(column + kLine, task.columns));
  }
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
void blocks_baseline(const TransposeTask& task, const TransposeBounds& bounds) {
  transpose_blocks<T, 16>(task, bounds);
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
[[gnu::target("avx2")]] void blocks_avx2(const TransposeTask& task, const TransposeBounds& bounds) {
  transpose_blocks<T, 32>(task, bounds);
}
template <class T, int kPlanes, bool kSplit>
[[gnu::target("avx2")]] void planes_avx2(const std::byte* source, std::byte* destination, int64_t pitch,
                                         int64_t count) {
  if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}

#define TENON_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,prefer-vector-width=512")]]
template <class T>
TENON_AVX512 void blocks_avx512(const TransposeTask& task, const TransposeBounds& bounds) {
  transpose_blocks<T, 64>(task, bounds);
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
  { blocks_##ISA<T>, TENON_PLANES(ISA, false), TENON_PLANES(ISA, true) }

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
