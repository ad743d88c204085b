// Transposes matrices in squares of 16 bytes.
#include <algorithm>
#include <array>
#include <bit>

#include <tenon/tensor/reorder_vectors_internal.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::detail {
namespace {

// The side of a square, and the number of interleaving steps of its rows.
template <class T>
constexpr int kSquare = Vector<T>::kCount;
template <class T>
constexpr int kSteps = std::countr_zero(unsigned{kSquare<T>});
template <class T, int kLanes>
using Squares = VectorOf<T, kLanes * kVectorBytes>[kSquare<T>];

// A step from row to row. The result is opaque to the compiler, which would otherwise keep a pointer for each row, in
// memory.
template <class Byte>
TENON_INLINE Byte* next_of(Byte* row, int64_t pitch) {
  row += pitch;
  asm("" : "+r"(row));
  return row;
}

// The rows of a source, starting at one of them.
struct AllRows {
  const std::byte* first;
  int64_t pitch;
  TENON_INLINE const std::byte* or_zeros(const std::byte* row, int64_t) const { return row; }
};
// The same, with zeros for rows from number `held` on.
struct HeldRows {
  const std::byte* first;
  int64_t pitch, held;
  alignas(kTileBytes) static constexpr std::byte kZeros[kTileBytes] = {};
  // Selected immediately; otherwise the compiler duplicates all that follows.
  TENON_INLINE const std::byte* or_zeros(const std::byte* row, int64_t number) const {
    const std::byte* chosen = number < held ? row : kZeros;
    asm("" : "+r"(chosen));
    return chosen;
  }
};

// In place of a distance: whole, aligned lines are stored non-temporally.
constexpr int64_t kNonTemporal = INT64_MIN;

// Columns of a destination, of some rows each.
struct Strip {
  std::byte* first;
  int64_t pitch, bytes;
  int64_t ahead;  // distance to what is written next, or kNonTemporal
};

// Prefetches the next line of the rows: they are too far apart for the hardware prefetchers.
template <class T>
void fetch_line(const TransposeTask& task, int64_t row, int64_t rows, int64_t column) {
  if (column >= task.columns) return;
  const int64_t end = std::min(row + rows, task.rows);
  for (; row < end; ++row) {
    __builtin_prefetch(task.source + row * task.source_pitch + column * static_cast<int64_t>(sizeof(T)));
  }
}

// In each lane of 16 bytes: interleaves the elements of the lower or upper halves of both.
template <class T, int kLanes, bool kUpper>
TENON_INLINE void take_in_turn(const VectorOf<T, kLanes * kVectorBytes>& a, const VectorOf<T, kLanes * kVectorBytes>& b,
                               VectorOf<T, kLanes * kVectorBytes>& out) {
  constexpr int kSide = kSquare<T>, kCount = kSide * kLanes;
  VectorOf<T, kLanes * kVectorBytes> order;
  for (int i = 0; i < kCount; ++i) {
    const int start = i / kSide * kSide + (kUpper ? kSide / 2 : 0);
    order[i] = static_cast<T>(start + i % kSide / 2 + (i % 2) * kCount);
  }
  out = __builtin_shuffle(a, b, order);
}

// Interleaves vectors i and i + n/2 several times. Each time, the highest bit of (vector, element of the lane) becomes
// the lowest: log2(n) times turn rows into columns, and as many times as an element's number has bits turn columns into
// rows.
template <class T, int kLanes, int kTimes, int kVectors>
TENON_INLINE void take_turns(VectorOf<T, kLanes * kVectorBytes> (&vectors)[kVectors]) {
  VectorOf<T, kLanes * kVectorBytes> next[kVectors];
#pragma GCC unroll 4
  for (int step = 0; step < kTimes; ++step) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors / 2; ++i) {
      take_in_turn<T, kLanes, false>(vectors[i], vectors[i + kVectors / 2], next[2 * i]);
      take_in_turn<T, kLanes, true>(vectors[i], vectors[i + kVectors / 2], next[2 * i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) vectors[i] = next[i];
  }
}

// A call of its own: inlined, the compiler warns about lengths that do not occur.
[[gnu::noinline]] void copy_part(std::byte* to, const std::byte* from, int64_t bytes) {
  copy_up_to_vector(to, from, bytes);
}

// At most a square of columns and rows, at the borders of matrices that are no longer than that.
template <class T>
void move_small(const TransposeTask& task, int64_t row) {
  constexpr int64_t kSide = kSquare<T>, kSize = sizeof(T);
  Squares<T, 1> squares = {};
  const int64_t rows = std::min(task.rows + task.zero_rows - row, kSide);
  for (int64_t i = 0; i < std::min(rows, task.rows - row); ++i) {
    const std::byte* from = task.source + (row + i) * task.source_pitch;
    copy_part(reinterpret_cast<std::byte*>(&squares[i]), from, task.columns * kSize);
  }
  take_turns<T, 1, kSteps<T>>(squares);
  for (int64_t i = 0; i < task.columns; ++i) {
    std::byte* to = task.destination + i * task.destination_pitch + row * kSize;
    copy_part(to, reinterpret_cast<const std::byte*>(&squares[i]), rows * kSize);
  }
}

// The number of rows with 16 readable bytes.
template <class T>
int64_t readable_rows(const TransposeTask& task) {
  constexpr int64_t kSize = sizeof(T);
  if (task.source_pitch <= 0) return 0;
  const int64_t bytes = (task.rows - 1) * task.source_pitch + task.columns * kSize;
  return std::clamp<int64_t>((bytes - kVectorBytes) / task.source_pitch + 1, 0, task.rows);
}

// TENON_TARGET is expanded where this is used.
#define TENON_KERNEL [[gnu::always_inline]] TENON_TARGET inline

namespace baseline {
#define TENON_TARGET
#define TENON_LANES 1
#include <tenon/tensor/reorder_blocks_internal.hpp>
#undef TENON_TARGET
#undef TENON_LANES
}  // namespace baseline

#if defined(__x86_64__)
// For warnings about what the compiler's own headers leave undefined.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
__m128i load_vector(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

namespace avx2 {
#define TENON_TARGET [[gnu::target("avx2")]]
#define TENON_LANES 2
#include <tenon/tensor/reorder_blocks_internal.hpp>
#undef TENON_TARGET
#undef TENON_LANES
}  // namespace avx2

namespace avx512 {
#define TENON_TARGET [[gnu::target(TENON_TARGET_AVX512)]]
#define TENON_LANES 4
#include <tenon/tensor/reorder_blocks_internal.hpp>
#include <tenon/tensor/reorder_dense_internal.hpp>
#undef TENON_TARGET
#undef TENON_LANES
}  // namespace avx512
#pragma GCC diagnostic pop
#endif
#undef TENON_KERNEL

}  // namespace

template <class T>
BlocksFn blocks_kernel([[maybe_unused]] ReorderIsa isa) {
#if defined(__x86_64__)
  if (isa == ReorderIsa::avx512) return avx512::blocks_or_dense<T>;
  if (isa == ReorderIsa::avx2) return avx2::blocks<T>;
#endif
  return baseline::blocks<T>;
}
template BlocksFn blocks_kernel<uint8_t>(ReorderIsa);
template BlocksFn blocks_kernel<uint16_t>(ReorderIsa);
template BlocksFn blocks_kernel<uint32_t>(ReorderIsa);
template BlocksFn blocks_kernel<uint64_t>(ReorderIsa);

}  // namespace tenon::detail
