// Inside of the room: the transpose of a matrix of elements of 1, 2, 4 or 8 bytes, or of runs of whole vectors.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::detail {

// A tile spans one cache line on either side.
inline constexpr int64_t kTileBytes = 64;

// destination[column][row] = source[row][column]; pitches in bytes. `source_pitch` may be negative.
struct TransposeTask {
  const std::byte* source;
  std::byte* destination;
  int64_t rows, columns;
  int64_t source_pitch, destination_pitch;
};
bool can_transpose(int64_t element_bytes);
void transpose(const TransposeTask& task, int64_t element_bytes);

}  // namespace tenon::detail
