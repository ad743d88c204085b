// Internal to the room: transposes of matrices with elements of 1, 2, 4 or 8 bytes, or of runs of whole vectors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon::detail {

// A tile spans one cache line on either side.
inline constexpr int64_t kTileBytes = 64;
// Data of this size will have left the caches when they are read. Non-temporal stores then avoid reading lines before
// they are written, which is most of the traffic where much is padding.
// The instruction sets that the kernels are compiled for, narrowest first: the machine's baseline, AVX2, AVX-512 (BW
// and VBMI). On machines other than x86-64, only the first exists.
inline constexpr int64_t kFarBytes = 16 << 20;

// What the kernels are compiled for, narrowest first: what every machine of this kind has, AVX2, AVX-512 (BW and VBMI).
// Only the first exists off x86-64.
enum class ReorderIsa : uint8_t { baseline, avx2, avx512 };
// Those that this machine supports, narrowest first; never empty.
TENON_API std::vector<ReorderIsa> reorder_isas();

// destination[column][row] = source[row][column]; pitches in bytes. `source_pitch` may be negative. After its rows,
// each column of the destination has `zero_rows` elements of 0, which is possible only for elements of at most 8 bytes.
// No memory outside the two matrices is written, gaps between lines of the destination included; gaps of the source may
// be read. The same for `count` pairs of matrices, a step apart.
struct TransposeTask {
  const std::byte* source;
  std::byte* destination;
  int64_t rows, columns;
  int64_t source_pitch, destination_pitch;
  int64_t zero_rows = 0;
  int64_t count = 1, source_step = 0, destination_step = 0;
  bool non_temporal = false;  // more is written than the caches hold: non-temporal stores where possible
};
// Advances to the next pair; the rest of `count` is not updated.
inline void to_next_matrix(TransposeTask& task) {
  task.source += task.source_step;
  task.destination += task.destination_step;
}
bool can_transpose(int64_t element_bytes);
bool has_zero_rows(int64_t element_bytes);
TENON_API void transpose(const TransposeTask& task, int64_t element_bytes);
TENON_API void transpose(const TransposeTask& task, int64_t element_bytes, ReorderIsa isa);

}  // namespace tenon::detail
