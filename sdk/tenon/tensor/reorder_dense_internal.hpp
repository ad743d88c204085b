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

// All of a task.
template <class T>
TENON_TARGET void blocks_or_dense(const TransposeTask& task, bool far) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int kSide = kSquare<T>;
  const int64_t all_rows = task.rows + task.zero_rows;
  if (task.destination_pitch == all_rows * kSize && !far) {
    if (all_rows == 2 * kSide) return join_all<T, 2, kSide>(task);
    if (all_rows == kSide) return join_all<T, 1, kSide>(task);
    if (kSide > 2 && all_rows == kSide / 2) return join_all<T, 1, std::max(kSide / 2, 2)>(task);
  }
  if (task.source_pitch == task.columns * kSize && task.zero_rows == 0) {
    if (task.columns == 2 * kSide) return part_all<T, 2, kSide>(task);
    if (task.columns == kSide) return part_all<T, 1, kSide>(task);
    if (kSide > 2 && task.columns == kSide / 2) return part_all<T, 1, std::max(kSide / 2, 2)>(task);
  }
  blocks<T>(task, far);
}
