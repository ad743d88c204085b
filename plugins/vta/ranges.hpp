// Ranges of blocks, rows and columns, and limits of instruction fields.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace tenon::vta {

inline constexpr int64_t kMostIterations = (int64_t{1} << 14) - 1;  // of a loop of an instruction
inline constexpr int64_t kMostTransfer = 65535;                     // size and stride of a transfer

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Divides [0, extent) into parts of `size`; the last one may be smaller.
inline std::vector<Range> parts_of(int64_t extent, int64_t size) {
  std::vector<Range> parts;
  for (int64_t at = 0; at < extent; at += size) parts.push_back({at, std::min(extent, at + size)});
  return parts;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Sizes that divide `extent` into nearly equal parts, from the whole down to 1.
inline std::vector<int64_t> part_sizes(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; sizes.empty() || sizes.back() > 1; ++parts) {
    const int64_t size = ceil_div(extent, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  return sizes;
}

// For fields of instructions; encode() reports values that do not fit.
inline uint32_t u32(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace tenon::vta
