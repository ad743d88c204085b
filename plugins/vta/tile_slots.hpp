// The slots of one buffer while a kernel is generated: the contents and the register of each.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "vta/commands.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {

// A part of the output, as one slot of ACC holds it.
struct Tile {
  int64_t batch = 0, group = 0;
  Range blocks, rows, cols;  // blocks of the whole output
  bool operator==(const Tile&) const = default;
};

// Its position in `image`, the output.
inline Part part_of_output(const Image& image, const Tile& tile) {
  return {.tensor = {image.batches, image.blocks, image.height, image.width},
          .begin = {tile.batch, tile.blocks.begin, tile.rows.begin, tile.cols.begin},
          .count = {1, tile.blocks.size(), tile.rows.size(), tile.cols.size()}};
}

class TileSlots {
 public:
  struct Content {
    size_t term = 0;
    Tile tile;  // the relevant part of it
    Range reduce;
    bool operator==(const Content&) const = default;
  };
  struct Slot {
    std::optional<Content> content;
    Register held = 0;
    int64_t used = 0;
  };
  explicit TileSlots(int64_t count) : slots_(static_cast<size_t>(count)) {}

  // The slot that holds `content`. If there is none, `load` is set and the least recently used slot is returned.
  struct Taken {
    int64_t slot = 0;
    bool load = false;
  };
  Taken take(const Content& content) {
    size_t oldest = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].content == content) return touch(i, false);
      if (slots_[i].used < slots_[oldest].used) oldest = i;
    }
    slots_[oldest].content = content;
    return touch(oldest, true);
  }
  Register& held(int64_t slot) { return slots_[static_cast<size_t>(slot)].held; }

 private:
  Taken touch(size_t slot, bool load) {
    slots_[slot].used = ++clock_;
    return {static_cast<int64_t>(slot), load};
  }
  std::vector<Slot> slots_;
  int64_t clock_ = 0;
};

}  // namespace tenon::vta
