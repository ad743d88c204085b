// Inside the room: prefetch hints of a bound program, as cache lines.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

inline constexpr uint64_t kLineBytes = 64;

// A dim of a box in memory.
struct LineDim {
  uint64_t extent = 0;
  int64_t stride = 0;  // bytes
};

// A dim without those indices of the box that the buffer does not have; extent 0: none are left. `from_base` is the
// offset of the first one, in bytes from the base of the buffer. Any numbers are valid.
struct CroppedDim {
  LineDim dim;
  uint64_t from_base = 0;
};
inline CroppedDim cropped(int64_t first, int64_t extent, int64_t min, int64_t has, int64_t stride) {
  if (extent <= 0 || has <= 0) return {};
  const uint64_t before = first < min ? static_cast<uint64_t>(min) - static_cast<uint64_t>(first) : 0;
  const uint64_t skipped = first > min ? static_cast<uint64_t>(first) - static_cast<uint64_t>(min) : 0;
  const auto wanted = static_cast<uint64_t>(extent), there = static_cast<uint64_t>(has);
  if (before >= wanted || skipped >= there) return {};
  return {{std::min(wanted - before, there - skipped), stride}, skipped * static_cast<uint64_t>(stride)};
}

// f(address) for each line of portion `part` of `parts` of the box at `base`, in ascending order within a row. Lines
// are divided as if all rows had the offset of the first one within a line. Addresses wrap around.
template <class F>
void for_each_line(uint64_t base, std::span<LineDim> dims, uint64_t element_bytes, uint64_t part, uint64_t parts,
                   const F& f) {
  size_t rank = 0;
  for (LineDim d : dims) {
    if (d.extent == 0) return;
    if (d.extent == 1 || d.stride == 0) continue;
    if (d.stride < 0) {
      base += (d.extent - 1) * static_cast<uint64_t>(d.stride);
      d.stride = static_cast<int64_t>(0 - static_cast<uint64_t>(d.stride));
    }
    dims[rank++] = d;
  }
  std::ranges::sort(dims.first(rank), {}, &LineDim::stride);
  // Bytes that cover every line without a gap.
  uint64_t row = element_bytes;
  size_t outer = 0;
  for (; outer < rank && static_cast<uint64_t>(dims[outer].stride) <= std::max(row, kLineBytes); ++outer)
    row += (dims[outer].extent - 1) * static_cast<uint64_t>(dims[outer].stride);
  uint64_t rows = 1;
  for (size_t d = outer; d < rank; ++d) rows *= dims[d].extent;
  const uint64_t lines = (row + base % kLineBytes + kLineBytes - 1) / kLineBytes;
  const auto share = [&](uint64_t of) { return rows * lines / parts * of + rows * lines % parts * of / parts; };
  uint64_t left = share(part + 1) - share(part), at = share(part) / lines, line = share(part) % lines;

  std::array<uint64_t, kMaxRank> index{};
  uint64_t address = base;
  for (size_t d = outer; d < rank; ++d) {
    index[d] = at % dims[d].extent;
    at /= dims[d].extent;
    address += index[d] * static_cast<uint64_t>(dims[d].stride);
  }
  while (left > 0) {
    const uint64_t end = std::min(lines, line + left), last = address + row - 1;
    left -= end - line;
    for (uint64_t to = address / kLineBytes * kLineBytes + line * kLineBytes; line < end && to <= last;
         ++line, to += kLineBytes)
      f(to);
    line = 0;
    for (size_t d = outer; d < rank; ++d) {
      address += static_cast<uint64_t>(dims[d].stride);
      if (++index[d] < dims[d].extent) break;
      address -= dims[d].extent * static_cast<uint64_t>(dims[d].stride);
      index[d] = 0;
    }
  }
}

// Prefetches this many lines from the address on, in rows that begin `stride` bytes apart.
void read_lines_soon(uint64_t address, int32_t lines, int32_t rows = 1, int64_t stride = 0);
void write_lines_soon(uint64_t address, int32_t lines, int32_t rows = 1, int64_t stride = 0);
void prefetch(Frame& frame, const PrefetchCode& code);

}  // namespace tenon::program::detail
