// Internal to reorder_blocks.cpp, like reorder_blocks_internal.hpp, for instruction sets that permute the bytes of a
// vector: matrices with one dense side, whose lines have at most 64 bytes, a power of two; and squares of whole
// vectors.
//
// A tile consists of some lines of the dense side, in whole vectors. The other side has one piece of a vector for each
// element of a line. Exchanges between vectors ("turns") move the bits of an element's number from the vectors into the
// lanes and back, and a permutation of each vector orders the rest of them. Tiles are moved whole: the last one of a
// matrix overlaps those before it, and may be narrower.

// kLine elements per line; a vector of the other side has kPieces pieces.
template <class T, int kLine, int kPieces>
struct Tile {
  static constexpr int kSize = sizeof(T), kSide = kSquare<T>, kAll = kTileBytes / kSize;
  static constexpr int kVectors = kLine / kPieces;
  static constexpr int kLines = kAll / kPieces;
  static constexpr int64_t kPieceBytes = kTileBytes / kPieces, kLineBytes = kLine * kSize;
  // Pieces have at least the size of a lane of a vector, and turns end within one.
  static constexpr bool kExists = kPieces <= std::min(kLine, 4) && kVectors <= kSide;

  static constexpr int log2(int n) { return std::countr_zero(static_cast<unsigned>(n)); }
  // Bits of the number of a vector, and of an element in its lane.
  static constexpr int kVectorBits = log2(kVectors), kLaneBits = log2(kSide);
  // Turns from lines to pieces: until the vector's number counts elements of a line, not lines.
  static constexpr int kPartTurns = kVectors == 1 ? 0 : kVectorBits + std::max(kLaneBits - log2(kLine), 0);
  static constexpr int kBelow = kLaneBits - kPartTurns;  // bits of an element's number below those of its vector

  // The position of element `e` of a line among the pieces.
  static constexpr int vector_of(int e) { return (e >> kBelow) % kVectors; }
  static constexpr int piece_of(int e) { return (e >> (kBelow + kVectorBits) << kBelow) + e % (1 << kBelow); }

  // For the elements of vector 0: the position of each in its lanes after the turns, when coming from pieces.
  static constexpr std::array<uint8_t, kTileBytes> from_lanes() {
    std::array<uint8_t, kTileBytes> out = {};
    for (int line = 0; line < kLines; ++line) {
      for (int e = 0; e < kLine; ++e) {
        if (vector_of(e) != 0) continue;
        const int at = line * kLine + e, turned = at / kAll * kSide + at % kSide;
        const int lane = at % kAll / kSide * kSide;
        set(out, piece_of(e) * kLines + line,
            lane + (turned << kPartTurns) % kSide + (turned >> (kVectorBits + kLaneBits - kPartTurns)));
      }
    }
    return out;
  }
  // The same before the turns that make lines. Here vector i has the elements i, i + kVectors ... of the lines.
  static constexpr std::array<uint8_t, kTileBytes> to_lanes() {
    std::array<uint8_t, kTileBytes> out = {};
    for (int line = 0; line < kLines; ++line) {
      for (int piece = 0; piece < kPieces; ++piece) {
        const int at = line * kLine + piece * kVectors;
        const int within = (at / kAll << (kLaneBits - kVectorBits)) + (at % kSide >> kVectorBits);
        set(out, at % kAll / kSide * kSide + within, piece * kLines + line);
      }
    }
    return out;
  }
  static constexpr void set(std::array<uint8_t, kTileBytes>& order, int to, int from) {
    for (int i = 0; i < kSize; ++i) {
      order[static_cast<size_t>(to * kSize + i)] = static_cast<uint8_t>(from * kSize + i);
    }
  }
};

// Permutes the bytes of all vectors of a tile; emits nothing for the identity.
template <class V, int kVectors>
TENON_KERNEL void permute(V (&vectors)[kVectors], const std::array<uint8_t, kTileBytes>& order) {
  const __m512i all = _mm512_loadu_si512(order.data());
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    vectors[i] = reinterpret_cast<V>(_mm512_permutexvar_epi8(all, reinterpret_cast<__m512i>(vectors[i])));
  }
}
constexpr bool is_identity(const std::array<uint8_t, kTileBytes>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

// Matrices up to this size are contiguous and form one stream: what follows is the next matrix.
constexpr int64_t kSmallBytes = 8 << 10;
// Rows are more streams than the hardware prefetcher tracks.
constexpr int64_t kFetchAhead = 4 * kTileBytes;

template <class T>
TENON_KERNEL bool is_small(const TransposeTask& task) {
  return task.count > 1 && task.rows * task.columns * static_cast<int64_t>(sizeof(T)) <= kSmallBytes;
}

// Mask of the first `bytes` bytes of a vector, clamped to none or all of them.
TENON_KERNEL uint64_t first_bytes(int64_t bytes) {
  return bytes <= 0 ? 0 : bytes >= kTileBytes ? ~uint64_t{0} : ~uint64_t{0} >> (kTileBytes - bytes);
}

template <int kPieces, class V>
TENON_KERNEL void load_pieces(const std::byte* const (&from)[kPieces], V& out) {
  if constexpr (kPieces == 2) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from[0])),
                  high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from[1]));
    out = reinterpret_cast<V>(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
  } else if constexpr (kPieces == 4) {
    load_lanes<4>(from, out);
  } else {
    std::memcpy(&out, from[0], kTileBytes);
  }
}

// Joins adjacent rows, from `column` on. `ahead`: distance to what is read next.
template <class T, int kLine, int kPieces, class Rows>
TENON_KERNEL void join_tile(const TransposeTask& task, const Rows& rows, int64_t column, int64_t ahead) {
  using D = Tile<T, kLine, kPieces>;
  const std::byte* row = rows.first + column * D::kSize;
  VectorOf<T, kTileBytes> vectors[D::kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < D::kVectors; ++i, row = next_of(row, rows.pitch)) {
    const std::byte* from[kPieces];
#pragma GCC unroll 4
    for (int piece = 0; piece < kPieces; ++piece) {
      const int below = piece * D::kVectors;
      __builtin_prefetch(row + below * rows.pitch + ahead);
      from[piece] = rows.or_zeros(row + below * rows.pitch, below + i);
    }
    load_pieces<kPieces>(from, vectors[i]);
  }
  static constexpr auto kOrder = D::to_lanes();
  if constexpr (!is_identity(kOrder)) permute(vectors, kOrder);
  take_turns<T, 4, D::kVectorBits>(vectors);
  // A line that is a whole vector may be followed by a gap.
  const int64_t pitch = D::kLineBytes == kTileBytes ? task.destination_pitch : kTileBytes;
  std::byte* to = task.destination + column * (D::kLineBytes == kTileBytes ? pitch : D::kLineBytes);
  store_columns<4>(vectors, to, pitch, kTileBytes, D::kVectors * pitch);
}

// Stores a piece of each element of the lines, from number kElement on.
template <class T, int kLine, int kPieces, int kElement = 0, class V, int kVectors>
TENON_KERNEL void store_elements(const V (&vectors)[kVectors], std::byte* to, int64_t pitch, int64_t ahead) {
  using D = Tile<T, kLine, kPieces>;
  __builtin_prefetch(to + ahead + D::kPieceBytes - 1, 1);
  store_part<4, 4 / kPieces, D::piece_of(kElement)>(vectors[D::vector_of(kElement)], to);
  if constexpr (kElement + 1 < kLine) {
    store_elements<T, kLine, kPieces, kElement + 1>(vectors, next_of(to, pitch), pitch, ahead);
  }
}

// Splits adjacent columns, from `row` on. `ahead`: distance to what is written next.
template <class T, int kLine, int kPieces>
TENON_KERNEL void part_tile(const TransposeTask& task, int64_t row, int64_t ahead) {
  using D = Tile<T, kLine, kPieces>;
  const int64_t pitch = D::kLineBytes == kTileBytes ? task.source_pitch : kTileBytes;
  const std::byte* from = task.source + row * (D::kLineBytes == kTileBytes ? pitch : D::kLineBytes);
  VectorOf<T, kTileBytes> vectors[D::kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < D::kVectors; ++i, from += pitch) std::memcpy(&vectors[i], from, kTileBytes);
  take_turns<T, 4, D::kPartTurns>(vectors);
  static constexpr auto kOrder = D::from_lanes();
  if constexpr (!is_identity(kOrder)) permute(vectors, kOrder);
  std::byte* to = task.destination + row * D::kSize;
  store_elements<T, kLine, kPieces>(vectors, to, task.destination_pitch, ahead);
}

// One line of the dense side.
template <class T, int kLine>
TENON_KERNEL void join_line(const TransposeTask& task, int64_t column) {
  const std::byte* from = task.source + column * static_cast<int64_t>(sizeof(T));
  std::byte* to = task.destination + column * kLine * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < kLine; ++i, from += task.source_pitch, to += sizeof(T)) {
    T element = 0;
    if (i < task.rows) std::memcpy(&element, from, sizeof(T));
    std::memcpy(to, &element, sizeof(T));
  }
}
template <class T, int kLine>
TENON_KERNEL void part_line(const TransposeTask& task, int64_t row) {
  const std::byte* from = task.source + row * kLine * static_cast<int64_t>(sizeof(T));
  std::byte* to = task.destination + row * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < kLine; ++i, from += sizeof(T), to += task.destination_pitch) {
    std::memcpy(to, from, sizeof(T));
  }
}

// Lines of task.columns from number `line` on; there are at least as many as the narrowest tile has.
template <class T, int kLine, int kPieces, class Rows>
TENON_KERNEL void join_lines(const TransposeTask& task, const Rows& rows, int64_t line, int64_t ahead) {
  using D = Tile<T, kLine, kPieces>;
  const int64_t lines = task.columns;
  for (; line + D::kLines <= lines; line += D::kLines) join_tile<T, kLine, kPieces>(task, rows, line, ahead);
  if (line == lines) return;
  if (line + 1 == lines) return join_line<T, kLine>(task, line);
  if constexpr (Tile<T, kLine, 2 * kPieces>::kExists) {
    if (lines - line <= D::kLines / 2 || lines < D::kLines) {
      return join_lines<T, kLine, 2 * kPieces>(task, rows, line, ahead);
    }
  }
  join_tile<T, kLine, kPieces>(task, rows, lines - D::kLines, ahead);
}
// The same for task.rows.
template <class T, int kLine, int kPieces>
TENON_KERNEL void part_lines(const TransposeTask& task, int64_t line, int64_t ahead) {
  using D = Tile<T, kLine, kPieces>;
  const int64_t lines = task.rows;
  for (; line + D::kLines <= lines; line += D::kLines) part_tile<T, kLine, kPieces>(task, line, ahead);
  if (line == lines) return;
  if (line + 1 == lines) return part_line<T, kLine>(task, line);
  if constexpr (Tile<T, kLine, 2 * kPieces>::kExists) {
    if (lines - line <= D::kLines / 2 || lines < D::kLines) {
      return part_lines<T, kLine, 2 * kPieces>(task, line, ahead);
    }
  }
  part_tile<T, kLine, kPieces>(task, lines - D::kLines, ahead);
}

// All matrices. For a small one, a call of its own would take too long.
template <class T, int kLine, class Rows>
TENON_TARGET void join_matrices(TransposeTask task, Rows rows) {
  constexpr int kPieces = std::max(kLine / kSquare<T>, 1);
  const int64_t ahead = is_small<T>(task) ? task.source_step : kFetchAhead;
  for (int64_t i = 0; i < task.count; ++i) {
    join_lines<T, kLine, kPieces>(task, rows, 0, ahead);
    rows.first += task.source_step;
    to_next_matrix(task);
  }
}
template <class T, int kLine>
TENON_TARGET void part_matrices(TransposeTask task) {
  constexpr int kPieces = std::max(kLine / kSquare<T>, 1);
  const int64_t ahead = is_small<T>(task) ? task.destination_step : kTileBytes / kPieces;
  for (int64_t i = 0; i < task.count; ++i) {
    part_lines<T, kLine, kPieces>(task, 0, ahead);
    to_next_matrix(task);
  }
}

// False: their lines have a different size, or there are fewer than a tile has.
template <class T, int kLine>
TENON_TARGET bool move_dense(const TransposeTask& task) {
  constexpr int64_t kSize = sizeof(T);
  if constexpr (kLine <= 4 * kSquare<T> && kLine * kSize <= kTileBytes) {
    constexpr int64_t kFewest = Tile<T, kLine, std::min(kLine, 4)>::kLines;
    const int64_t all_rows = task.rows + task.zero_rows;
    if (all_rows == kLine && task.destination_pitch == kLine * kSize && task.columns >= kFewest) {
      if (task.zero_rows == 0) {
        join_matrices<T, kLine>(task, AllRows{task.source, task.source_pitch});
      } else {
        join_matrices<T, kLine>(task, HeldRows{task.source, task.source_pitch, task.rows});
      }
      return true;
    }
    if (task.columns == kLine && task.source_pitch == kLine * kSize && task.zero_rows == 0 && task.rows >= kFewest) {
      part_matrices<T, kLine>(task);
      return true;
    }
  }
  return false;
}

// Transposes a square of whole vectors: like squares of 16 bytes, with turns over the whole vector.
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

// One square. `fetched`: distance to what is read next, `ahead`: from what is written to what is written next.
template <class T, class Rows>
TENON_KERNEL void move_square(const TransposeTask& task, const Rows& rows, int64_t row, int64_t column, int64_t fetched,
                              int64_t ahead) {
  constexpr int64_t kSize = sizeof(T), kSide = kTileBytes / kSize;
  const std::byte* from = rows.first + row * rows.pitch + column * kSize;
  VectorOf<T, kTileBytes> lines[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i, from = next_of(from, rows.pitch)) {
    __builtin_prefetch(from + fetched);
    std::memcpy(&lines[i], rows.or_zeros(from, i), kTileBytes);
  }
  turn_square<T>(lines);
  std::byte* to = task.destination + column * task.destination_pitch + row * kSize;
  store_columns<4>(lines, to, task.destination_pitch, kTileBytes, ahead);
}

// One square that is only partly inside the matrix.
template <class T>
TENON_TARGET void move_part_of_square(const TransposeTask& task, int64_t row, int64_t column) {
  constexpr int64_t kSize = sizeof(T), kSide = kTileBytes / kSize;
  const int64_t rows = std::min(task.rows + task.zero_rows - row, kSide),
                columns = std::min(task.columns - column, kSide);
  const uint64_t held = first_bytes(columns * kSize), written = first_bytes(rows * kSize);
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
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i, to = next_of(to, task.destination_pitch)) {
    if (i == columns) return;
    __builtin_prefetch(to + 2 * kTileBytes - 1, 1);
    _mm512_mask_storeu_epi8(to, written, reinterpret_cast<__m512i>(lines[i]));
  }
}

// All rows of the first kSide columns, or all columns of the first kSide rows, at least as many. What remains at the
// end is a square that overlaps the one before, or a narrow tile.
template <class T>
TENON_TARGET void move_squares_down(const TransposeTask& task, bool small) {
  constexpr int64_t kSide = kTileBytes / sizeof(T), kNarrow = Tile<T, kSide, 4>::kLines;
  const AllRows rows{task.source, task.source_pitch};
  const int64_t ahead = small ? task.destination_step : kTileBytes;
  int64_t row = 0;
  for (; row + kSide <= task.rows; row += kSide) move_square<T>(task, rows, row, 0, kFetchAhead, ahead);
  if (row == task.rows) return;
  if (task.rows - row <= kNarrow) return part_tile<T, kSide, 4>(task, task.rows - kNarrow, ahead);
  move_square<T>(task, rows, task.rows - kSide, 0, kFetchAhead, ahead);
}
template <class T, class Rows>
TENON_TARGET void move_squares_across(const TransposeTask& task, const Rows& rows, bool small) {
  constexpr int64_t kSide = kTileBytes / sizeof(T), kNarrow = Tile<T, kSide, 4>::kLines;
  const int64_t fetched = small ? task.source_step : kFetchAhead;
  const int64_t ahead = task.non_temporal ? kNonTemporal : kSide * task.destination_pitch;
  int64_t column = 0;
  for (; column + kSide <= task.columns; column += kSide) move_square<T>(task, rows, 0, column, fetched, ahead);
  if (task.non_temporal) _mm_sfence();  // so that the stores are visible before completion is reported
  if (column == task.columns) return;
  if (task.columns - column <= kNarrow) return join_tile<T, kSide, 4>(task, rows, task.columns - kNarrow, fetched);
  move_square<T>(task, rows, 0, task.columns - kSide, fetched, kSide * task.destination_pitch);
}

// Iterates along the longer side.
template <class T>
TENON_TARGET void move_squares_of_lines(const TransposeTask& task) {
  constexpr int64_t kSize = sizeof(T), kSide = kTileBytes / kSize;
  const int64_t all_rows = task.rows + task.zero_rows;
  const bool small = is_small<T>(task);
  if (all_rows < kSide || task.columns < kSide) {
    for (int64_t column = 0; column < task.columns; column += kSide) {
      for (int64_t row = 0; row < all_rows; row += kSide) {
        move_part_of_square<T>(task, row, column);
      }
    }
    return;
  }
  TransposeTask strip = task;
  if (all_rows < task.columns || task.zero_rows > 0) {
    for (int64_t done = 0; done < all_rows; done += kSide) {
      const int64_t row = std::min(done, all_rows - kSide);
      strip.source = task.source + row * task.source_pitch;
      strip.destination = task.destination + row * kSize;
      strip.rows = std::clamp<int64_t>(task.rows - row, 0, kSide);
      strip.zero_rows = kSide - strip.rows;
      if (strip.zero_rows == 0) {
        move_squares_across<T>(strip, AllRows{strip.source, strip.source_pitch}, small);
      } else {
        move_squares_across<T>(strip, HeldRows{strip.source, strip.source_pitch, strip.rows}, small);
      }
    }
    return;
  }
  for (int64_t done = 0; done < task.columns; done += kSide) {
    const int64_t column = std::min(done, task.columns - kSide);
    strip.source = task.source + column * kSize;
    strip.destination = task.destination + column * task.destination_pitch;
    strip.columns = kSide;
    move_squares_down<T>(strip, small);
  }
}

// All matrices of a task.
template <class T>
TENON_TARGET void blocks_or_dense(const TransposeTask& task, bool far) {
  constexpr int64_t kFew = kTileBytes / sizeof(T) / 2;
  const bool wide = sizeof(T) >= 4 && task.rows + task.zero_rows > kFew && task.columns > kFew;
  if (!wide) {
    if (move_dense<T, 2>(task) || move_dense<T, 4>(task) || move_dense<T, 8>(task) || move_dense<T, 16>(task)) return;
    return move_dense<T, 32>(task) ? void() : blocks<T>(task, far);
  }
  if constexpr (sizeof(T) >= 4) {
    TransposeTask matrix = task;
    for (int64_t i = 0; i < task.count; ++i, to_next_matrix(matrix)) move_squares_of_lines<T>(matrix);
  }
}
