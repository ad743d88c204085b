// Inside of the room: the transpose of a matrix of elements of 1, 2, 4 or 8 bytes, or of runs of whole vectors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon::detail {

// A tile spans one cache line on either side.
inline constexpr int64_t kTileBytes = 64;
// So much is gone from the caches when somebody reads it. Lines that go past them are not read before they are
// written, which is most of the traffic where much is padding.
inline constexpr int64_t kFarBytes = 16 << 20;

// What the kernels are compiled for, narrowest first: what every machine of this kind has, AVX2, AVX-512 (BW and VBMI).
// Only the first exists off x86-64.
enum class ReorderIsa : uint8_t { baseline, avx2, avx512 };
// Those that this machine runs, narrowest first; never empty.
TENON_API std::vector<ReorderIsa> reorder_isas();

// destination[column][row] = source[row][column]; pitches in bytes. `source_pitch` may be negative. Behind its rows
// each column of the destination has `zero_rows` elements of 0, which only elements of 8 bytes or less may have.
// Nothing outside of both matrices is touched, gaps between lines of the destination included; gaps of the source may
// be read. The same for `count` pairs of matrices, a step apart.
struct TransposeTask {
  const std::byte* source;
  std::byte* destination;
  int64_t rows, columns;
  int64_t source_pitch, destination_pitch;
  int64_t zero_rows = 0;
  int64_t count = 1, source_step = 0, destination_step = 0;
  bool non_temporal = false;  // all that is written is more than caches hold: lines go past them where they can
};
// On to the next pair; what is left of `count` is not kept.
inline void to_next_matrix(TransposeTask& task) {
  task.source += task.source_step;
  task.destination += task.destination_step;
}
bool can_transpose(int64_t element_bytes);
bool has_zero_rows(int64_t element_bytes);
TENON_API void transpose(const TransposeTask& task, int64_t element_bytes);
TENON_API void transpose(const TransposeTask& task, int64_t element_bytes, ReorderIsa isa);

}  // namespace tenon::detail
