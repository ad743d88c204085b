#include <algorithm>
#include <cstring>

#include <tenon/support/check.hpp>
#include <tenon/tensor/reorder_tiles.hpp>

namespace tenon::detail {
namespace {

constexpr int64_t kVectorBytes = 16;
// A matrix that the nearer caches hold needs no prefetch.
constexpr int64_t kNearBytes = 512 << 10;
// Of runs, a tile has as many as fit here, half of the smallest caches in use.
constexpr int64_t kRunTileBytes = 16 << 10;

template <class T>
struct Vector {
  using Type [[gnu::vector_size(kVectorBytes)]] = T;
  static constexpr int kCount = kVectorBytes / sizeof(T);
};

// Lanes of the lower or upper halves of two vectors, taken in turn.
template <class T, bool kUpper>
typename Vector<T>::Type interleave(typename Vector<T>::Type a, typename Vector<T>::Type b) {
  typename Vector<T>::Type order;
  constexpr int kCount = Vector<T>::kCount;
  for (int i = 0; i < kCount; ++i) order[i] = static_cast<T>((kUpper ? kCount / 2 : 0) + i / 2 + (i % 2) * kCount);
  return __builtin_shuffle(a, b, order);
}

// A square of as many rows as a vector has lanes. Rows i and i + n/2 interleaved, log2(n) times, are the columns.
template <class T>
inline void transpose_square(const std::byte* source, int64_t source_pitch, std::byte* destination,
                             int64_t destination_pitch) {
  constexpr int kCount = Vector<T>::kCount;
  typename Vector<T>::Type rows[kCount], next[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) std::memcpy(&rows[i], source + i * source_pitch, kVectorBytes);
#pragma GCC unroll 4
  for (int step = 1; step < kCount; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) {
      next[2 * i] = interleave<T, false>(rows[i], rows[i + kCount / 2]);
      next[2 * i + 1] = interleave<T, true>(rows[i], rows[i + kCount / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) std::memcpy(destination + i * destination_pitch, &rows[i], kVectorBytes);
}

template <class T>
class Transposer {
 public:
  explicit Transposer(const TransposeTask& task) : task_(task) {}

  void run() const {
    constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(T));
    const bool far = task_.rows * task_.columns * static_cast<int64_t>(sizeof(T)) > kNearBytes;
    for (int64_t column = 0; column < task_.columns; column += kTile) {
      const int64_t columns = std::min(kTile, task_.columns - column);
      for (int64_t row = 0; row < task_.rows; row += kTile) {
        const int64_t rows = std::min(kTile, task_.rows - row);
        if (far) prefetch(row, rows, column + kTile);
        tile(row, rows, column, columns);
      }
    }
  }

 private:
  static constexpr int64_t kSquare = Vector<T>::kCount;

  const std::byte* source(int64_t row, int64_t column) const {
    return task_.source + row * task_.source_pitch + column * static_cast<int64_t>(sizeof(T));
  }
  std::byte* destination(int64_t row, int64_t column) const {
    return task_.destination + column * task_.destination_pitch + row * static_cast<int64_t>(sizeof(T));
  }

  // The same rows in the next lines: further rows are too far apart for the processor to see a stream.
  void prefetch(int64_t row, int64_t rows, int64_t column) const {
    if (column >= task_.columns) return;
    for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(source(row + i, column));
  }

  void tile(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    const int64_t whole_rows = rows / kSquare * kSquare, whole_columns = columns / kSquare * kSquare;
    for (int64_t c = 0; c < whole_columns; c += kSquare) {
      for (int64_t r = 0; r < whole_rows; r += kSquare) {
        transpose_square<T>(source(row + r, column + c), task_.source_pitch, destination(row + r, column + c),
                            task_.destination_pitch);
      }
    }
    elements(row + whole_rows, rows - whole_rows, column, columns);
    elements(row, whole_rows, column + whole_columns, columns - whole_columns);
  }

  void elements(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    for (int64_t c = column; c < column + columns; ++c) {
      for (int64_t r = row; r < row + rows; ++r) std::memcpy(destination(r, c), source(r, c), sizeof(T));
    }
  }

  const TransposeTask& task_;
};

// Runs instead of elements: in tiles, so that both sides are read and written line by line.
template <int64_t kVectors>
void transpose_runs(const TransposeTask& task, int64_t vectors) {
  const int64_t count = kVectors ? kVectors : vectors, bytes = count * kVectorBytes;
  const int64_t columns = std::min<int64_t>(task.columns, 16),
                rows = std::max<int64_t>(kRunTileBytes / bytes / columns, 1);
  for (int64_t column = 0; column < task.columns; column += columns) {
    const int64_t column_end = std::min(column + columns, task.columns);
    for (int64_t row = 0; row < task.rows; row += rows) {
      const int64_t row_end = std::min(row + rows, task.rows);
      for (int64_t c = column; c < column_end; ++c) {
        const std::byte* source = task.source + row * task.source_pitch + c * bytes;
        std::byte* destination = task.destination + c * task.destination_pitch + row * bytes;
        for (int64_t r = row; r < row_end; ++r, source += task.source_pitch, destination += bytes) {
          for (int64_t v = 0; v < count; ++v) {
            std::memcpy(destination + v * kVectorBytes, source + v * kVectorBytes, kVectorBytes);
          }
        }
      }
    }
  }
}

}  // namespace

bool can_transpose(int64_t element_bytes) {
  return element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8 ||
         (element_bytes % kVectorBytes == 0 && element_bytes <= 512);
}

void transpose(const TransposeTask& task, int64_t element_bytes) {
  TENON_CHECK(can_transpose(element_bytes), "a transpose of elements of ", element_bytes, " bytes");
  switch (element_bytes) {
    case 1: return Transposer<uint8_t>(task).run();
    case 2: return Transposer<uint16_t>(task).run();
    case 4: return Transposer<uint32_t>(task).run();
    case 8: return Transposer<uint64_t>(task).run();
    case 4 * kVectorBytes: return transpose_runs<4>(task, 4);
    default: return transpose_runs<0>(task, element_bytes / kVectorBytes);
  }
}

}  // namespace tenon::detail
