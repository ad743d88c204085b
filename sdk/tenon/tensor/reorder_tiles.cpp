#include <tenon/tensor/reorder_tiles_internal.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/support/check.hpp>
#include <tenon/tensor/reorder_vectors_internal.hpp>

namespace tenon::detail {
namespace {

// A matrix of up to this size is in the nearer caches and needs no prefetch.
constexpr int64_t kNearBytes = 512 << 10;
// A tile has as many runs as fit here, half of the smallest caches in use.
constexpr int64_t kRunTileBytes = 16 << 10;

// Whether there are only whole and aligned lines, which non-temporal stores need.
bool has_whole_lines(const TransposeTask& task, int64_t element_bytes) {
  const auto whole = [](auto... bytes) { return ((bytes % kTileBytes == 0) && ...); };
  return whole((task.rows + task.zero_rows) * element_bytes, task.destination_pitch, task.destination_step,
               static_cast<int64_t>(reinterpret_cast<intptr_t>(task.destination)));
}

// Calls f with each matrix of the task.
template <class F>
void for_each_matrix(TransposeTask task, const F& f) {
  for (int64_t i = 0; i < task.count; ++i) {
    f(task);
    to_next_matrix(task);
  }
}

// For elements of one type.
template <class T>
void transpose_elements(const TransposeTask& all, ReorderIsa isa) {
  constexpr int64_t kSize = sizeof(T);
  // A few planes on one side, interleaved elements on the other one. Four are whole vectors where those are wide.
  const auto few = [&](int64_t n) { return n >= 2 && n <= (isa == ReorderIsa::avx512 ? 3 : 4); };
  if (all.zero_rows == 0 && few(all.columns) && all.source_pitch == all.columns * kSize) {
    const PlanesFn split = plane_kernels<T>(isa).split[all.columns - 2];
    return for_each_matrix(all, [&](const TransposeTask& task) {
      split(task.source, task.destination, task.destination_pitch, task.rows);
    });
  }
  if (all.zero_rows == 0 && few(all.rows) && all.destination_pitch == all.rows * kSize) {
    const PlanesFn interleave = plane_kernels<T>(isa).interleave[all.rows - 2];
    return for_each_matrix(all, [&](const TransposeTask& task) {
      interleave(task.source, task.destination, task.source_pitch, task.columns);
    });
  }
  TransposeTask task = all;
  task.non_temporal = all.non_temporal && has_whole_lines(all, kSize);
  blocks_kernel<T>(isa)(task, all.rows * all.columns * kSize > kNearBytes);
}

// Copies `count` runs.
template <int64_t kVectors>
void copy_runs(const std::byte* source, int64_t source_step, std::byte* destination, int64_t destination_step,
               int64_t count, int64_t vectors) {
  for (int64_t i = 0; i < count; ++i, source += source_step, destination += destination_step) {
    for (int64_t v = 0; v < (kVectors ? kVectors : vectors); ++v) {
      std::memcpy(destination + v * kVectorBytes, source + v * kVectorBytes, kVectorBytes);
    }
  }
}

// Runs instead of elements. Beyond the near caches, a few columns are copied along the source, which the hardware
// prefetcher then sees as one stream, next to as few destination streams as there are columns. Otherwise in tiles, so
// that both sides are accessed line by line.
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
  return has_zero_rows(element_bytes) || (element_bytes % kVectorBytes == 0 && element_bytes <= 512);
}

void transpose(const TransposeTask& task, int64_t element_bytes) {
  static const ReorderIsa widest = reorder_isas().back();
  transpose(task, element_bytes, widest);
}

void transpose(const TransposeTask& task, int64_t element_bytes, ReorderIsa isa) {
  TENON_CHECK(can_transpose(element_bytes), "a transpose of elements of ", element_bytes, " bytes");
  switch (element_bytes) {
    case 1: return transpose_elements<uint8_t>(task, isa);
    case 2: return transpose_elements<uint16_t>(task, isa);
    case 4: return transpose_elements<uint32_t>(task, isa);
    case 8: return transpose_elements<uint64_t>(task, isa);
    case 4 * kVectorBytes: return for_each_matrix(task, [](const TransposeTask& one) { transpose_runs<4>(one, 4); });
    default: break;
  }
  for_each_matrix(task, [&](const TransposeTask& one) { transpose_runs<0>(one, element_bytes / kVectorBytes); });
}

}  // namespace tenon::detail
