#include <tenon/tensor/reorder_tiles.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/support/check.hpp>
#include <tenon/tensor/reorder_vectors.hpp>

namespace tenon::detail {
namespace {

// A matrix that the nearer caches hold needs no prefetch.
constexpr int64_t kNearBytes = 512 << 10;
// Of runs, a tile has as many as fit here, half of the smallest caches in use.
constexpr int64_t kRunTileBytes = 16 << 10;

// Elements of one type.
template <class T>
class Transposer {
 public:
  Transposer(const TransposeTask& task, ReorderIsa isa)
      : task_(task), kernels_(tile_kernels<T>(isa)), all_rows_(task.rows + task.zero_rows) {
    const int64_t last = (task.rows - 1) * task.source_pitch;
    bounds_.readable = task.source + std::max<int64_t>(last, 0) + task.columns * kSize;
    bounds_.writable = task.destination + (task.columns - 1) * task.destination_pitch + all_rows_ * kSize;
    bounds_.overwrites = all_rows_ <= kSquare<T> && task.destination_pitch == all_rows_ * kSize;
  }

  void run() const {
    if (planes()) return;
    if (task_.rows * task_.columns * kSize <= kNearBytes) return kernels_.blocks(task_, bounds_);
    constexpr int64_t kTile = kTileBytes / kSize;
    for (int64_t column = 0; column < task_.columns; column += kTile) {
      for (int64_t row = 0; row < all_rows_; row += kTile) {
        prefetch(row, column + kTile);
        tile(row, column, kTile);
      }
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  const std::byte* source(int64_t row, int64_t column) const {
    return task_.source + row * task_.source_pitch + column * kSize;
  }
  std::byte* destination(int64_t row, int64_t column) const {
    return task_.destination + column * task_.destination_pitch + row * kSize;
  }

  // A few planes on one side, elements side by side on the other one.
  bool planes() const {
    const auto few = [](int64_t n) { return n >= 2 && n <= 4; };
    if (task_.zero_rows > 0) return false;
    if (few(task_.columns) && task_.source_pitch == task_.columns * kSize) {
      kernels_.split[task_.columns - 2](task_.source, task_.destination, task_.destination_pitch, task_.rows);
      return true;
    }
    if (!few(task_.rows) || task_.destination_pitch != task_.rows * kSize) return false;
    kernels_.interleave[task_.rows - 2](task_.source, task_.destination, task_.source_pitch, task_.columns);
    return true;
  }

  // The same rows in the next lines: further rows are too far apart for the processor to see a stream.
  void prefetch(int64_t row, int64_t column) const {
    if (column >= task_.columns) return;
    const int64_t end = std::min(row + kTileBytes / kSize, task_.rows);
    for (; row < end; ++row) __builtin_prefetch(source(row, column));
  }

  // Of a last tile that is less than a vector, with what is before it.
  static int64_t first_of(int64_t first, int64_t count) {
    return count - first < kSquare<T> ? std::max<int64_t>(count - kSquare<T>, 0) : first;
  }
  void tile(int64_t row, int64_t column, int64_t size) const {
    const int64_t row_end = std::min(row + size, all_rows_), column_end = std::min(column + size, task_.columns);
    row = first_of(row, row_end);
    column = first_of(column, column_end);
    const int64_t held = std::clamp<int64_t>(task_.rows - row, 0, row_end - row);
    kernels_.blocks({.source = source(row, column),
                     .destination = destination(row, column),
                     .rows = held,
                     .columns = column_end - column,
                     .source_pitch = task_.source_pitch,
                     .destination_pitch = task_.destination_pitch,
                     .zero_rows = row_end - row - held},
                    bounds_);
  }

  const TransposeTask& task_;
  const TileKernels& kernels_;
  int64_t all_rows_;
  TransposeBounds bounds_;
};

// `count` runs, one after the other on either side.
template <int64_t kVectors>
void copy_runs(const std::byte* source, int64_t source_step, std::byte* destination, int64_t destination_step,
               int64_t count, int64_t vectors) {
  for (int64_t i = 0; i < count; ++i, source += source_step, destination += destination_step) {
    for (int64_t v = 0; v < (kVectors ? kVectors : vectors); ++v) {
      std::memcpy(destination + v * kVectorBytes, source + v * kVectorBytes, kVectorBytes);
    }
  }
}

// Runs instead of elements. Beyond the near caches a few columns go along the source, which the processor then sees as
// one stream, next to as few streams of the destination as there are columns. Else in tiles, so that both sides are read
// and written line by line.
template <int64_t kVectors>
void transpose_runs(const TransposeTask& task, int64_t vectors) {
  const int64_t bytes = (kVectors ? kVectors : vectors) * kVectorBytes;
  constexpr int64_t kStreams = 32, kTileColumns = 16;
  if (task.columns <= kStreams && task.rows * task.columns * bytes > kNearBytes) {
    for (int64_t row = 0; row < task.rows; ++row) {
      copy_runs<kVectors>(task.source + row * task.source_pitch, bytes, task.destination + row * bytes,
                          task.destination_pitch, task.columns, vectors);
    }
    return;
  }
  const int64_t columns = std::min(task.columns, kTileColumns),
                rows = std::max<int64_t>(kRunTileBytes / bytes / columns, 1);
  for (int64_t first = 0; first < task.columns; first += columns) {
    const int64_t end = std::min(first + columns, task.columns);
    for (int64_t row = 0; row < task.rows; row += rows) {
      for (int64_t column = first; column < end; ++column) {
        copy_runs<kVectors>(task.source + row * task.source_pitch + column * bytes, task.source_pitch,
                            task.destination + column * task.destination_pitch + row * bytes, bytes,
                            std::min(rows, task.rows - row), vectors);
      }
    }
  }
}

}  // namespace

bool has_zero_rows(int64_t element_bytes) {
  return element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
}

bool can_transpose(int64_t element_bytes) {
  return has_zero_rows(element_bytes) ||
         (element_bytes % kVectorBytes == 0 && element_bytes <= 512);
}

void transpose(const TransposeTask& task, int64_t element_bytes) {
  static const ReorderIsa widest = reorder_isas().back();
  transpose(task, element_bytes, widest);
}

void transpose(const TransposeTask& task, int64_t element_bytes, ReorderIsa isa) {
  TENON_CHECK(can_transpose(element_bytes), "a transpose of elements of ", element_bytes, " bytes");
  switch (element_bytes) {
    case 1: return Transposer<uint8_t>(task, isa).run();
    case 2: return Transposer<uint16_t>(task, isa).run();
    case 4: return Transposer<uint32_t>(task, isa).run();
    case 8: return Transposer<uint64_t>(task, isa).run();
    case 4 * kVectorBytes: return transpose_runs<4>(task, 4);
    default: return transpose_runs<0>(task, element_bytes / kVectorBytes);
  }
}

}  // namespace tenon::detail
