// Internal to reorder_blocks.cpp, which includes this file once per instruction set, in a namespace of its own, with
// TENON_TARGET, the attribute of its functions, and TENON_LANES, the number of 16-byte lanes in its widest vectors.
//
// Squares of elements, 16 bytes on either side, are transposed in the lanes of vectors, as many at once as there are
// lanes: vector i holds row i of each. Squares below one another (kGroups of them) give one piece of each column in the
// destination; adjacent squares have the same rows.

// Loads 16 bytes for each lane.
template <int kLanes, class V>
TENON_KERNEL void load_lanes(const std::byte* const (&from)[kLanes], V& out) {
  if constexpr (kLanes == 1) std::memcpy(&out, from[0], kVectorBytes);
#if TENON_LANES >= 2
  if constexpr (kLanes == 2) {
    const __m256i low = _mm256_castsi128_si256(load_vector(from[0]));
    out = reinterpret_cast<V>(_mm256_inserti128_si256(low, load_vector(from[1]), 1));
  }
#endif
#if TENON_LANES >= 4
  if constexpr (kLanes == 4) {
    __m512i all = _mm512_castsi128_si512(load_vector(from[0]));
    all = _mm512_inserti32x4(all, load_vector(from[1]), 1);
    all = _mm512_inserti32x4(all, load_vector(from[2]), 2);
    out = reinterpret_cast<V>(_mm512_inserti32x4(all, load_vector(from[3]), 3));
  }
#endif
}

// Stores kGroups lanes, starting with number kPart * kGroups.
template <int kLanes, int kGroups, int kPart, class V>
TENON_KERNEL void store_part(const V& in, std::byte* to) {
  if constexpr (kPart == 0) {
    std::memcpy(to, &in, kGroups * kVectorBytes);
  }
#if TENON_LANES >= 2
  else if constexpr (kLanes == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_extracti128_si256(reinterpret_cast<__m256i>(in), kPart));
  }
#endif
#if TENON_LANES >= 4
  else if constexpr (kGroups == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_extracti64x4_epi64(reinterpret_cast<__m512i>(in), kPart));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_extracti32x4_epi32(reinterpret_cast<__m512i>(in), kPart));
  }
#endif
}

// Stores all parts, and of each part all vectors, `step` apart.
template <int kLanes, int kGroups, int kVectors, int kPart = 0, class V>
TENON_KERNEL void store_parts(const V (&in)[kVectors], std::byte* to, int64_t step) {
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, to = next_of(to, step)) store_part<kLanes, kGroups, kPart>(in[i], to);
  if constexpr ((kPart + 1) * kGroups < kLanes) store_parts<kLanes, kGroups, kVectors, kPart + 1>(in, to, step);
}

// Stores whole vectors or, of each, the first `bytes`. There are more streams than the hardware prefetcher tracks, so
// what is written next is prefetched: `ahead` bytes from here.
template <int kLanes, int kVectors, class V>
TENON_KERNEL void store_columns(const V (&in)[kVectors], std::byte* to, int64_t step, [[maybe_unused]] int64_t bytes,
                                int64_t ahead) {
  constexpr int64_t kBytes = kLanes * kVectorBytes;
#if TENON_LANES >= 4
  if constexpr (kLanes == 4) {
    if (bytes < kBytes) {
      const __mmask64 written = ~uint64_t{0} >> (64 - bytes);
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i, to = next_of(to, step)) {
        _mm512_mask_storeu_epi8(to, written, reinterpret_cast<__m512i>(in[i]));
      }
      return;
    }
    if (ahead == kNonTemporal) {
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i, to = next_of(to, step)) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(in[i]));
      }
      return;
    }
  }
#endif
  if (ahead == kNonTemporal) ahead = 0;  // no non-temporal stores for vectors shorter than cache lines
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, to = next_of(to, step)) {
    __builtin_prefetch(to + ahead + kBytes - 1, 1);
    std::memcpy(to, &in[i], kBytes);
  }
}

// Stores `bytes` of each lane, in ascending order of addresses. Where more data follow, up to `end`, all 16 bytes are
// written, and the excess is overwritten by the next store.
template <int kLanes, int kVectors, int kPart = 0, class V>
TENON_KERNEL void store_short(const V (&in)[kVectors], std::byte* to, int64_t step, int64_t bytes,
                              const std::byte* end) {
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i, to = next_of(to, step)) {
    if (end - to >= kVectorBytes) {
      store_part<kLanes, 1, kPart>(in[i], to);
    } else {
      alignas(kVectorBytes) std::byte lane[kVectorBytes];
      store_part<kLanes, 1, kPart>(in[i], lane);
      copy_part(to, lane, bytes);
    }
  }
  if constexpr (kPart + 1 < kLanes) store_short<kLanes, kVectors, kPart + 1>(in, to, step, bytes, end);
}

template <class T, int kLanes, int kGroups, class Rows>
TENON_KERNEL void load_squares(const Rows& rows, int64_t offset, Squares<T, kLanes>& out) {
  constexpr int kSide = kSquare<T>;
  const std::byte* row = rows.first + offset;
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i, row = next_of(row, rows.pitch)) {
    if constexpr (kGroups == 1) {
      std::memcpy(&out[i], rows.or_zeros(row, i), kLanes * kVectorBytes);
    } else {
      const std::byte* from[kLanes];
#pragma GCC unroll 4
      for (int lane = 0; lane < kLanes; ++lane) {
        const int below = lane % kGroups * kSide;
        from[lane] = rows.or_zeros(row + below * rows.pitch + lane / kGroups * kVectorBytes, below + i);
      }
      load_lanes<kLanes>(from, out[i]);
    }
  }
}

// `bytes` of each column, if they are not whole vectors.
template <class T, int kLanes, int kGroups, class Rows>
TENON_KERNEL void move_squares(const Rows& rows, int64_t column, const Strip& to) {
  Squares<T, kLanes> squares;
  load_squares<T, kLanes, kGroups>(rows, column * static_cast<int64_t>(sizeof(T)), squares);
  take_turns<T, kLanes, kSteps<T>>(squares);
  std::byte* first = to.first + column * to.pitch;
  if constexpr (kLanes == kGroups && kLanes > 1) {
    store_columns<kLanes>(squares, first, to.pitch, to.bytes, to.ahead);
  } else {
    store_parts<kLanes, kGroups>(squares, first, to.pitch);
  }
}

// Columns up to `end`; the last block overlaps the one before.
template <class T, int kLanes, int kGroups, class Rows>
TENON_TARGET void move_columns(const Rows& rows, const Strip& to, int64_t column, int64_t end) {
  constexpr int64_t kColumns = kSquare<T> * (kLanes / kGroups);
  for (; column + kColumns <= end; column += kColumns) move_squares<T, kLanes, kGroups>(rows, column, to);
  if (column == end) return;
  if constexpr (kLanes > kGroups) {
    move_columns<T, kLanes / 2, kGroups>(rows, to, column, end);
  } else {
    move_squares<T, kLanes, kGroups>(rows, end - kColumns, to);
  }
}

// Rows first to first + kSquare<T> * kGroups; missing ones are 0.
template <class T, int kGroups>
TENON_TARGET void move_strip(const TransposeTask& task, bool far, int64_t row, int64_t column, int64_t end) {
  constexpr int64_t kSize = sizeof(T), kRows = kSquare<T> * kGroups, kColumns = kSquare<T> * (TENON_LANES / kGroups);
  if (far) fetch_line<T>(task, row, kRows, end);
  const AllRows rows{task.source + row * task.source_pitch, task.source_pitch};
  const int64_t left = task.rows + task.zero_rows - row;
  const Strip to{.first = task.destination + row * kSize,
                 .pitch = task.destination_pitch,
                 .bytes = std::min(left, kRows) * kSize,
                 .ahead = task.non_temporal         ? kNonTemporal
                          : end - column > kColumns ? kColumns * task.destination_pitch
                                                    : kRows * kSize};
  if (row + kRows <= task.rows) {
    move_columns<T, TENON_LANES, kGroups>(rows, to, column, end);
  } else {
    move_columns<T, TENON_LANES, kGroups>(HeldRows{rows.first, rows.pitch, task.rows - row}, to, column, end);
  }
}

// Rows from `row` on, at least one square; the last block overlaps the one before, or consists of partial vectors.
template <class T, int kGroups>
TENON_TARGET void move_rows(const TransposeTask& task, bool far, int64_t row, int64_t column, int64_t end) {
  constexpr int64_t kRows = kSquare<T> * kGroups;
  const int64_t all_rows = task.rows + task.zero_rows;
  for (; row + kRows <= all_rows; row += kRows) move_strip<T, kGroups>(task, far, row, column, end);
  if (row == all_rows) return;
  if (kGroups == 4 && all_rows - row > kRows / 4) return move_strip<T, kGroups>(task, far, row, column, end);
  if constexpr (kGroups > 1) {
    move_rows<T, kGroups / 2>(task, far, row, column, end);
  } else {
    move_strip<T, 1>(task, far, all_rows - kRows, column, end);
  }
}

// Iterates over cache lines of the source, so that there are no more destination streams than the hardware prefetcher
// tracks. Rows of one vector form a single stream.
template <class T>
TENON_TARGET void move_lines(const TransposeTask& task, bool far) {
  constexpr int64_t kLine = kTileBytes / static_cast<int64_t>(sizeof(T));
  const bool one_stream = task.rows + task.zero_rows <= kSquare<T> * TENON_LANES;
  const int64_t line = one_stream && !far ? task.columns : kLine;
  for (int64_t column = 0; column < task.columns; column += line) {
    move_rows<T, TENON_LANES>(task, far, 0, column, std::min(column + line, task.columns));
  }
#if TENON_LANES >= 4
  if (task.non_temporal) _mm_sfence();  // so that the stores are visible before completion is reported
#endif
}

template <class T, int kLanes>
TENON_KERNEL void move_short_squares(const TransposeTask& task, int64_t column) {
  constexpr int64_t kSize = sizeof(T);
  const int64_t bytes = (task.rows + task.zero_rows) * kSize, pitch = task.destination_pitch;
  const std::byte* end = pitch == bytes ? task.destination + task.columns * bytes : task.destination;
  Squares<T, kLanes> squares;
  load_squares<T, kLanes, 1>(HeldRows{task.source, task.source_pitch, task.rows}, column * kSize, squares);
  take_turns<T, kLanes, kSteps<T>>(squares);
  store_short<kLanes>(squares, task.destination + column * pitch, pitch, bytes, end);
}

// Fewer rows than a square has.
template <class T, int kLanes>
TENON_TARGET void move_few_rows(const TransposeTask& task, int64_t column) {
  constexpr int64_t kColumns = kSquare<T> * kLanes;
  for (; column + kColumns <= task.columns; column += kColumns) move_short_squares<T, kLanes>(task, column);
  if (column == task.columns) return;
  if constexpr (kLanes > 1) {
    move_few_rows<T, kLanes / 2>(task, column);
  } else {
    move_short_squares<T, 1>(task, task.columns - kColumns);
  }
}

template <class T, int kLanes, int kVectors>
TENON_KERNEL void interleave(const TransposeTask& task, int64_t column) {
  constexpr int64_t kSize = sizeof(T);
  const HeldRows rows{task.source, task.source_pitch, task.rows};
  VectorOf<T, kLanes * kVectorBytes> vectors[kVectors];
  const std::byte* row = rows.first + column * kSize;
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    std::memcpy(&vectors[i], rows.or_zeros(row, i), sizeof(vectors[i]));
    row = next_of(row, rows.pitch);
  }
  take_turns<T, kLanes, std::countr_zero(unsigned{kVectors})>(vectors);
  store_parts<kLanes, 1>(vectors, task.destination + column * kVectors * kSize, kVectorBytes);
}

// kVectors rows, fewer than a square has, adjacent in the destination: a vector of it contains several columns.
template <class T, int kLanes, int kVectors>
TENON_TARGET void move_narrow_rows(const TransposeTask& task, int64_t column) {
  constexpr int64_t kColumns = kSquare<T> * kLanes;
  for (; column + kColumns <= task.columns; column += kColumns) interleave<T, kLanes, kVectors>(task, column);
  if (column == task.columns) return;
  if constexpr (kLanes > 1) {
    move_narrow_rows<T, kLanes / 2, kVectors>(task, column);
  } else {
    interleave<T, 1, kVectors>(task, task.columns - kColumns);
  }
}

template <class T, int kLanes, int kVectors>
TENON_KERNEL void split(const TransposeTask& task, int64_t row) {
  constexpr int64_t kSize = sizeof(T), kRows = kSquare<T> * kLanes;
  VectorOf<T, kLanes * kVectorBytes> vectors[kVectors];
  const std::byte* source = task.source + row * kVectors * kSize;
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    const std::byte* from[kLanes];
#pragma GCC unroll 4
    for (int lane = 0; lane < kLanes; ++lane) from[lane] = source + (lane * kVectors + i) * kVectorBytes;
    load_lanes<kLanes>(from, vectors[i]);
  }
  take_turns<T, kLanes, kSteps<T>>(vectors);
  store_columns<kLanes>(vectors, task.destination + row * kSize, task.destination_pitch, kLanes * kVectorBytes,
                        kRows * kSize);
}

// kVectors columns, fewer than a square has, adjacent in the source: a vector of it contains several rows.
template <class T, int kLanes, int kVectors>
TENON_TARGET void move_narrow_columns(const TransposeTask& task, int64_t row) {
  constexpr int64_t kRows = kSquare<T> * kLanes;
  for (; row + kRows <= task.rows; row += kRows) split<T, kLanes, kVectors>(task, row);
  if (row == task.rows) return;
  if constexpr (kLanes > 1) {
    move_narrow_columns<T, kLanes / 2, kVectors>(task, row);
  } else {
    split<T, 1, kVectors>(task, task.rows - kRows);
  }
}

// Fewer columns than a square has, and at least as many rows. Up to `row_end`, memory after the columns of the source
// may be read.
template <class T, int kLanes>
TENON_TARGET void move_few_columns(const TransposeTask& task, int64_t row, int64_t row_end) {
  constexpr int64_t kRows = kSquare<T> * kLanes, kSize = sizeof(T);
  for (; row + kRows <= row_end; row += kRows) {
    const AllRows rows{task.source + row * task.source_pitch, task.source_pitch};
    Squares<T, kLanes> squares;
    load_squares<T, kLanes, kLanes>(rows, 0, squares);
    take_turns<T, kLanes, kSteps<T>>(squares);
    std::byte* to = task.destination + row * kSize;
    for (int64_t i = 0; i < task.columns; ++i)
      store_part<kLanes, kLanes, 0>(squares[i], to + i * task.destination_pitch);
  }
  if constexpr (kLanes > 1) return move_few_columns<T, kLanes / 2>(task, row, row_end);
  for (; row < task.rows + task.zero_rows; row += kSquare<T>) move_small<T>(task, row);
}

template <class T>
TENON_TARGET void move_matrix(const TransposeTask& task, bool far) {
  constexpr int64_t kSide = kSquare<T>, kSize = sizeof(T);
  const int64_t all_rows = task.rows + task.zero_rows;
  if (all_rows >= kSide && task.columns >= kSide) return move_lines<T>(task, far);
  if (task.columns >= kSide) {
    if (task.destination_pitch == all_rows * kSize) {
      if (all_rows == 2) return move_narrow_rows<T, TENON_LANES, 2>(task, 0);
      if (all_rows == 4) return move_narrow_rows<T, TENON_LANES, 4>(task, 0);
      if (all_rows == 8) return move_narrow_rows<T, TENON_LANES, 8>(task, 0);
    }
    return move_few_rows<T, TENON_LANES>(task, 0);
  }
  if (task.rows >= kSide && task.zero_rows == 0 && task.source_pitch == task.columns * kSize) {
    if (task.columns == 2) return move_narrow_columns<T, TENON_LANES, 2>(task, 0);
    if (task.columns == 4) return move_narrow_columns<T, TENON_LANES, 4>(task, 0);
    if (task.columns == 8) return move_narrow_columns<T, TENON_LANES, 8>(task, 0);
  }
  move_few_columns<T, TENON_LANES>(task, 0, readable_rows<T>(task));
}

// All matrices of a task.
template <class T>
TENON_TARGET void blocks(const TransposeTask& task, bool far) {
  TransposeTask matrix = task;
  for (int64_t i = 0; i < task.count; ++i, to_next_matrix(matrix)) move_matrix<T>(matrix, far);
}
