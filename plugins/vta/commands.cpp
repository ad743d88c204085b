#include "vta/commands.hpp"

#include <algorithm>
#include <map>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// y rows of x elements, at distances of `stride`.
struct Rows {
  int64_t y = 1, x = 1, stride = 1;
  bool fit() const { return std::max({y, x, stride}) <= kMostTransfer; }
};

// All blocks of the part in one transfer, where possible.
std::optional<Rows> rows_of_all(const Part& part) {
  const auto& [batches, blocks, height, width] = part.tensor;
  const auto& [count_batches, count_blocks, rows, cols] = part.count;
  const bool rows_as_they_are = part.row_step == 1 && part.pad_top + part.pad_bottom == 0;
  const bool all_rows = rows_as_they_are && rows == height;
  const bool all_cols = rows_as_they_are && part.pad_left + part.pad_right == 0 && cols == width;
  const int64_t all = count_blocks * rows * cols;
  if (all_cols && (all_rows || count_blocks == 1)) {
    if (const Rows one{1, all, all}; one.fit()) return one;
  }
  if (all_cols) {
    if (const Rows planes{count_blocks, rows * cols, height * width}; planes.fit()) return planes;
  }
  if (all_rows) {
    if (const Rows lines{count_blocks * rows, cols, width}; lines.fit()) return lines;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Transfer> transfers_of(const Part& part, Memory memory, int64_t sram) {
  const int64_t plane = part.tensor[2] * part.tensor[3];
  Transfer t{.memory = memory, .sram_base = u32(sram)};
  t.dram_base =
      u32((part.begin[0] * part.tensor[1] + part.begin[1]) * plane + part.begin[2] * part.tensor[3] + part.begin[3]);
  t.y_pad_0 = u32(part.pad_top), t.y_pad_1 = u32(part.pad_bottom);
  t.x_pad_0 = u32(part.pad_left), t.x_pad_1 = u32(part.pad_right);
  if (const auto rows = rows_of_all(part)) {
    t.y_size = u32(rows->y), t.x_size = u32(rows->x), t.x_stride = u32(rows->stride);
    return {t};
  }
  t.y_size = u32(part.count[2]), t.x_size = u32(part.count[3]), t.x_stride = u32(part.tensor[3] * part.row_step);
  const TileShape shape = part.shape();
  std::vector<Transfer> transfers;
  for (int64_t b = 0; b < shape.blocks; ++b) {
    transfers.push_back(t);
    t.sram_base += u32(shape.rows * shape.cols);
    t.dram_base += u32(plane);
  }
  return transfers;
}

Result<void> place_tiles(std::vector<PlacedTile>& tiles, const Hardware& hardware) {
  // By memory and slot; resident tiles have slots of their own, before the others.
  std::map<std::pair<Memory, int64_t>, int64_t> sizes;
  int64_t resident = -static_cast<int64_t>(tiles.size());
  for (PlacedTile& tile : tiles) {
    if (tile.slot == kResident) tile.slot = resident++;
    int64_t& size = sizes[{tile.memory, tile.slot}];
    size = std::max(size, tile.elements);
  }
  std::array<int64_t, kMemories> used{};
  for (auto& [place, size] : sizes) {
    int64_t& end = used[static_cast<size_t>(place.first)];
    const int64_t at = end;
    end += size, size = at;
    if (end > hardware.depth(place.first))
      return error(Code::resource_exhausted, "tiles take ", end, " elements of ", memory_name(place.first), ", ",
                   hardware.depth(place.first), " are there on target '", hardware.name, "'");
  }
  for (const PlacedTile& tile : tiles) *tile.at = sizes[{tile.memory, tile.slot}];
  return {};
}

Result<void> place_tiles(std::vector<Command>& commands, const Hardware& hardware) {
  std::vector<PlacedTile> tiles;
  for (Command& command : commands) {
    if (auto* load = std::get_if<Load>(&command)) {
      // An 8-bit value is widened in ACC, where it takes an accumulator.
      const Memory memory = load->memory == Memory::acc8 ? Memory::acc : load->memory;
      tiles.push_back({memory, load->slot, load->part.shape().elements(), &load->at});
    }
    if (auto* zero = std::get_if<Zero>(&command))
      tiles.push_back({Memory::acc, zero->slot, zero->part.shape().elements(), &zero->at});
  }
  return place_tiles(tiles, hardware);
}

}  // namespace tenon::vta
