#include "vta/pool_commands.hpp"

#include "vta/tile_slots.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kLeast = -128;

// The loads of the parts of an axis.
struct AxisTiles {
  int64_t loaded = 0, most = 0, parts = 0;
};
AxisTiles tiles_of(const WindowAxis& axis, int64_t output, int64_t input, int64_t size) {
  AxisTiles tiles;
  for (const Range& part : parts_of(output, size)) {
    const int64_t count = reach_of(axis, part.begin, part.end, input).real();
    tiles.loaded += count, tiles.most = std::max(tiles.most, count), ++tiles.parts;
  }
  return tiles;
}

class PoolWriter {
 public:
  PoolWriter(const PoolLayer& layer, const PoolTiling& tiling) : layer_(layer), tiling_(tiling) {}

  std::vector<Command> write() {
    for (int64_t batch = 0; batch < layer_.output.batches; ++batch)
      for (const Range& blocks : parts_of(layer_.output.blocks, tiling_.blocks))
        for (const Range& rows : parts_of(layer_.output.height, tiling_.rows))
          for (const Range& cols : parts_of(layer_.output.width, tiling_.cols))
            write_tile({batch, 0, blocks, rows, cols});
    return std::move(commands_);
  }

 private:
  // Inputs are in the first slots of ACC, outputs in the following ones.
  void write_tile(const Tile& tile) {
    const int64_t slot = tiles_++ % tiling_.slots;
    const Reach rows = reach_of(layer_.rows, tile.rows.begin, tile.rows.end, layer_.input.height);
    const Reach cols = reach_of(layer_.cols, tile.cols.begin, tile.cols.end, layer_.input.width);
    const Image& image = layer_.input;
    const Register x = next_++, acc = next_++;
    commands_.push_back(Load{.to = x,
                             .memory = Memory::acc8,
                             .from = 0,
                             .slot = slot,
                             .part = {.tensor = {image.batches, image.blocks, image.height, image.width},
                                      .begin = {tile.batch, tile.blocks.begin, rows.first_real(), cols.first_real()},
                                      .count = {1, tile.blocks.size(), rows.real(), cols.real()}}});
    commands_.push_back(
        Zero{.to = acc, .slot = tiling_.slots + slot, .part = part_of_output(layer_.output, tile), .uops = {}});
    commands_.push_back(Alu{.acc = acc, .op = AluOp::min, .immediate = kLeast, .uops = {}});
    Max max{.acc = acc, .x = x, .rows = layer_.rows, .cols = layer_.cols, .uops = {}};
    max.rows.pad = rows.pad_0, max.cols.pad = cols.pad_0;
    commands_.push_back(max);
    commands_.push_back(Store{.from = acc, .part = part_of_output(layer_.output, tile)});
  }

  const PoolLayer& layer_;
  const PoolTiling& tiling_;
  std::vector<Command> commands_;
  Register next_ = 0;
  int64_t tiles_ = 0;
};

}  // namespace

Result<PoolTiling> tile_pool(const PoolLayer& layer, const Hardware& hardware, int64_t slots) {
  std::optional<PoolTiling> best;
  int64_t least = 0;
  for (const int64_t blocks : part_sizes(layer.output.blocks))
    for (const int64_t rows : part_sizes(layer.output.height))
      for (const int64_t cols : part_sizes(layer.output.width)) {
        const AxisTiles y = tiles_of(layer.rows, layer.output.height, layer.input.height, rows);
        const AxisTiles x = tiles_of(layer.cols, layer.output.width, layer.input.width, cols);
        const int64_t elements = blocks * (y.most * x.most + rows * cols);
        if (elements > hardware.depth(Memory::acc) / slots || blocks * rows * cols > kMostIterations) continue;
        const int64_t tiles = y.parts * x.parts * ceil_div(layer.output.blocks, blocks);
        const int64_t loads = y.parts == 1 ? tiles : y.parts * x.parts * layer.output.blocks;
        const auto bytes = static_cast<double>(y.loaded * x.loaded * layer.output.blocks * hardware.lanes());
        const auto cycles =
            static_cast<int64_t>(bytes / hardware.dram_bytes_per_cycle) + loads * hardware.dram_latency_cycles;
        if (best && cycles >= least) continue;
        best = PoolTiling{blocks, rows, cols, slots};
        least = cycles;
      }
  if (best) return *best;
  const int64_t window =
      std::min(layer.rows.extent(), layer.input.height) * std::min(layer.cols.extent(), layer.input.width);
  return error(Code::unsupported, "a window of layer '", layer.name, "' takes ", window + 1, " elements of ACC, ",
               hardware.depth(Memory::acc) / slots, " are there on target '", hardware.name, "'");
}

std::vector<Command> commands_of(const PoolLayer& layer, const PoolTiling& tiling) {
  return PoolWriter(layer, tiling).write();
}

}  // namespace tenon::vta
