// Inside of reorder_blocks.cpp, as reorder_blocks_internal.hpp, for instruction sets that permute the bytes of a vector
// and mask them: matrices of which one side is dense, its lines 32 bytes or fewer, a power of two. Whole vectors are
// loaded and stored there, also where the matrix ends; a permutation in each puts neighbours where turns need them,
// which is in the same place of neighbouring lanes.
//
// A line has kGroups pieces, of kVectors elements each: 16 bytes or, when there is one piece, fewer.

template <class T, int kGroups, int kVectors>
struct Dense {
  static constexpr int kSize = sizeof(T), kRest = kSquare<T> / kVectors, kParts = 4 / kGroups;
  static constexpr int64_t kHeldBytes = kTileBytes / kGroups;  // of the other side's lines, in one vector
  static constexpr int64_t kLine = kGroups * kVectors, kCount = kHeldBytes / kSize;

  // Of an element as it lies in the lanes: its byte when the pieces lie one after the other, each along the other side.
  static constexpr int apart(int lane, int element) {
    const int number = (element / kRest * kParts + lane / kGroups) * kRest + element % kRest;
    return lane % kGroups * static_cast<int>(kHeldBytes) + number * kSize;
  }
  static constexpr std::array<uint8_t, kTileBytes> order(bool to_lanes) {
    std::array<uint8_t, kTileBytes> out = {};
    for (int i = 0; i < kTileBytes; ++i) {
      const int from = apart(i / kVectorBytes, i % kVectorBytes / kSize) + i % kSize;
      out[static_cast<size_t>(to_lanes ? i : from)] = static_cast<uint8_t>(to_lanes ? from : i);
    }
    return out;
  }
  static constexpr std::array<uint8_t, kTileBytes> kToLanes = order(true), kFromLanes = order(false);
};

// Rows are more streams than the processor sees.
constexpr int64_t kFetchAhead = 4 * kTileBytes;

// The first so many bytes of a vector, none or all of them if there are fewer or more.
TENON_KERNEL uint64_t first_bytes(int64_t bytes) {
  return bytes <= 0 ? 0 : bytes >= kTileBytes ? ~uint64_t{0} : ~uint64_t{0} >> (kTileBytes - bytes);
}

// Half kHalf of each vector, or what is `written` of it.
template <int kHalf, int kVectors, class V>
TENON_KERNEL void store_halves(const V (&in)[kVectors], std::byte* to, int64_t pitch, __mmask32 written) {
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, to = next_of(to, pitch)) {
    __builtin_prefetch(to + kTileBytes - 1, 1);
    _mm256_mask_storeu_epi8(to, written, _mm512_extracti64x4_epi64(reinterpret_cast<__m512i>(in[i]), kHalf));
  }
}

template <class V>
TENON_KERNEL void permute(V& vector, const std::array<uint8_t, kTileBytes>& order) {
  vector =
      reinterpret_cast<V>(_mm512_permutexvar_epi8(_mm512_loadu_si512(order.data()), reinterpret_cast<__m512i>(vector)));
}

// `count` columns from `column` on, all that a vector holds or fewer, whose rows lie side by side.
template <class T, int kGroups, int kVectors>
TENON_KERNEL void join_rows(const TransposeTask& task, int64_t column, int64_t count) {
  using D = Dense<T, kGroups, kVectors>;
  const uint64_t held = first_bytes(count * D::kSize);
  const HeldRows rows{task.source, task.source_pitch, task.rows};
  const std::byte* row = rows.first + column * D::kSize;
  VectorOf<T, kTileBytes> vectors[kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, row = next_of(row, rows.pitch)) {
    __builtin_prefetch(row + kFetchAhead);
    __m512i in;
    if constexpr (kGroups == 1) {
      in = _mm512_maskz_loadu_epi8(held, rows.or_zeros(row, i));
    } else {
      const auto half = static_cast<__mmask32>(held);
      const __m256i low = _mm256_maskz_loadu_epi8(half, rows.or_zeros(row, i));
      const __m256i high = _mm256_maskz_loadu_epi8(half, rows.or_zeros(row + kVectors * rows.pitch, kVectors + i));
      in = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    vectors[i] = reinterpret_cast<VectorOf<T, kTileBytes>>(in);
    permute(vectors[i], D::kToLanes);
  }
  take_turns<T, 4, std::countr_zero(unsigned{kVectors})>(vectors);
  std::byte* to = task.destination + column * D::kLine * D::kSize;
  if (count == D::kCount) {
    return store_columns<4>(vectors, to, kTileBytes, kTileBytes, kVectors * kTileBytes);
  }
  int64_t left = count * D::kLine * D::kSize;
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, to += kTileBytes, left -= kTileBytes) {
    if (left <= 0) return;
    _mm512_mask_storeu_epi8(to, first_bytes(left), reinterpret_cast<__m512i>(vectors[i]));
  }
}

// `count` rows from `row` on, whose columns lie side by side.
template <class T, int kGroups, int kVectors>
TENON_KERNEL void part_columns(const TransposeTask& task, int64_t row, int64_t count) {
  using D = Dense<T, kGroups, kVectors>;
  const std::byte* from = task.source + row * D::kLine * D::kSize;
  const int64_t bytes = count * D::kLine * D::kSize, pitch = task.destination_pitch;
  VectorOf<T, kTileBytes> vectors[kVectors];
  if (count == D::kCount) {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) std::memcpy(&vectors[i], from + i * kTileBytes, kTileBytes);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) {
      const __m512i in = _mm512_maskz_loadu_epi8(first_bytes(bytes - i * kTileBytes), from + i * kTileBytes);
      vectors[i] = reinterpret_cast<VectorOf<T, kTileBytes>>(in);
    }
  }
  take_turns<T, 4, kSteps<T>>(vectors);
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) permute(vectors[i], D::kFromLanes);
  std::byte* to = task.destination + row * D::kSize;
  if constexpr (kGroups == 1) {
    store_columns<4>(vectors, to, pitch, count * D::kSize, kTileBytes);
  } else {
    const auto written = static_cast<__mmask32>(first_bytes(count * D::kSize));
    store_halves<0>(vectors, to, pitch, written);
    store_halves<1>(vectors, to + kVectors * pitch, pitch, written);
  }
}

template <class T, int kGroups, int kVectors>
TENON_TARGET void join_all(const TransposeTask& task) {
  constexpr int64_t kCount = Dense<T, kGroups, kVectors>::kCount;
  int64_t column = 0;
  for (; column + kCount <= task.columns; column += kCount) join_rows<T, kGroups, kVectors>(task, column, kCount);
  if (column < task.columns) join_rows<T, kGroups, kVectors>(task, column, task.columns - column);
}

template <class T, int kGroups, int kVectors>
TENON_TARGET void part_all(const TransposeTask& task) {
  constexpr int64_t kCount = Dense<T, kGroups, kVectors>::kCount;
  int64_t row = 0;
  for (; row + kCount <= task.rows; row += kCount) part_columns<T, kGroups, kVectors>(task, row, kCount);
  if (row < task.rows) part_columns<T, kGroups, kVectors>(task, row, task.rows - row);
}

// A square of whole vectors: as squares of 16 bytes, where turns are taken over all of the vector.
template <class T>
TENON_KERNEL void turn_square(VectorOf<T, kTileBytes> (&lines)[kTileBytes / sizeof(T)]) {
  constexpr int kSide = kTileBytes / sizeof(T);
  VectorOf<T, kTileBytes> low, high, next[kSide];
  for (int i = 0; i < kSide; ++i) {
    low[i] = static_cast<T>(i / 2 + i % 2 * kSide);
    high[i] = static_cast<T>(kSide / 2 + i / 2 + i % 2 * kSide);
  }
#pragma GCC unroll 4
  for (int step = 1; step < kSide; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      next[2 * i] = __builtin_shuffle(lines[i], lines[i + kSide / 2], low);
      next[2 * i + 1] = __builtin_shuffle(lines[i], lines[i + kSide / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) lines[i] = next[i];
  }
}

// One of them, or what there is of it. `ahead`: from what is written to what is written next.
template <class T>
TENON_KERNEL void move_square(const TransposeTask& task, int64_t row, int64_t column, int64_t ahead) {
  constexpr int64_t kSize = sizeof(T), kSide = kTileBytes / kSize;
  const int64_t rows = std::min(task.rows + task.zero_rows - row, kSide),
                columns = std::min(task.columns - column, kSide);
  const uint64_t held = first_bytes(columns * kSize);
  const HeldRows source{task.source + row * task.source_pitch + column * kSize, task.source_pitch, task.rows - row};
  const std::byte* from = source.first;
  VectorOf<T, kTileBytes> lines[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i, from = next_of(from, source.pitch)) {
    __builtin_prefetch(from + kFetchAhead);
    lines[i] = reinterpret_cast<VectorOf<T, kTileBytes>>(_mm512_maskz_loadu_epi8(held, source.or_zeros(from, i)));
  }
  turn_square<T>(lines);
  std::byte* to = task.destination + column * task.destination_pitch + row * kSize;
  if (columns == kSide) return store_columns<4>(lines, to, task.destination_pitch, rows * kSize, ahead);
  const uint64_t written = first_bytes(rows * kSize);
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i, to = next_of(to, task.destination_pitch)) {
    if (i == columns) return;
    _mm512_mask_storeu_epi8(to, written, reinterpret_cast<__m512i>(lines[i]));
  }
}

// Along the longer side.
template <class T>
TENON_TARGET void move_squares_of_lines(const TransposeTask& task) {
  constexpr int64_t kSide = kTileBytes / sizeof(T);
  const int64_t all_rows = task.rows + task.zero_rows;
  if (all_rows < task.columns) {
    for (int64_t row = 0; row < all_rows; row += kSide) {
      for (int64_t column = 0; column < task.columns; column += kSide) {
        move_square<T>(task, row, column, kSide * task.destination_pitch);
      }
    }
    return;
  }
  for (int64_t column = 0; column < task.columns; column += kSide) {
    for (int64_t row = 0; row < all_rows; row += kSide) move_square<T>(task, row, column, kTileBytes);
  }
}

// All of a task.
template <class T>
TENON_TARGET void blocks_or_dense(const TransposeTask& task, bool far) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int kSide = kSquare<T>;
  const int64_t all_rows = task.rows + task.zero_rows;
  if (task.destination_pitch == all_rows * kSize) {
    if (all_rows == 2 * kSide) return join_all<T, 2, kSide>(task);
    if (all_rows == kSide) return join_all<T, 1, kSide>(task);
    if (kSide >= 4 && all_rows == kSide / 2) return join_all<T, 1, std::max(kSide / 2, 2)>(task);
    if (kSide >= 8 && all_rows == kSide / 4) return join_all<T, 1, std::max(kSide / 4, 2)>(task);
  }
  if (task.source_pitch == task.columns * kSize && task.zero_rows == 0) {
    if (task.columns == 2 * kSide) return part_all<T, 2, kSide>(task);
    if (task.columns == kSide) return part_all<T, 1, kSide>(task);
    if (kSide >= 4 && task.columns == kSide / 2) return part_all<T, 1, std::max(kSide / 2, 2)>(task);
    if (kSide >= 8 && task.columns == kSide / 4) return part_all<T, 1, std::max(kSide / 4, 2)>(task);
  }
  if constexpr (kSize >= 4) {
    constexpr int64_t kFew = kTileBytes / kSize / 2;
    if (all_rows > kFew && task.columns > kFew) return move_squares_of_lines<T>(task);
  }
  blocks<T>(task, far);
}
