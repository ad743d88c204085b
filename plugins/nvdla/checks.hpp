// Checks that no command accesses memory outside DRAM or the convolution buffer. Everything is checked before it is
// used, in 64 bits, so registers may have any value.
#pragma once
#include <cstdint>
#include <string_view>

#include <tenon/support/result.hpp>

#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

// The largest extent that a register may have. Products of three fit 64 bits.
inline constexpr int64_t kMostExtent = int64_t{1} << 20;

struct Extent {
  std::string_view name;
  int64_t value;
};
// Each must be in [1, kMostExtent].
Result<void> check_extents(std::initializer_list<Extent> extents);

// An image in DRAM.
struct DramImage {
  int64_t address = 0, line = 0, surface = 0;
  int64_t surfaces = 1, rows = 1, width = 1;
  int64_t at(int64_t s, int64_t row, int64_t column, int64_t atom_bytes) const {
    return address + s * surface + row * line + column * atom_bytes;
  }
};
// The image must be aligned, within DRAM, and its lines and surfaces must not overlap.
Result<void> check_image(std::string_view what, const DramImage& image, int64_t dram_bytes, const Hardware& hardware);
Result<void> check_range(std::string_view what, int64_t address, int64_t bytes, int64_t dram_bytes, int64_t alignment);
Result<void> check_entries(std::string_view what, int64_t first, int64_t count, const Hardware& hardware);

}  // namespace tenon::nvdla
