#include "vta/pool_stream.hpp"

#include <optional>

#include "vta/ranges.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {
namespace {

constexpr Resource kAcc = 0, kOutput = 2;
constexpr int64_t kLeast = -128;

// Inputs of outputs [begin, end) along an axis, without padding.
Range inputs_of(const WindowAxis& axis, const Range& outputs, int64_t extent) {
  const Reach reach = reach_of(axis, outputs.begin, outputs.end, extent);
  return {reach.first_real(), reach.first_real() + reach.real()};
}

// Of `outputs`, those whose tap k is an input and no padding.
Range outputs_of_tap(const WindowAxis& axis, int64_t k, const Range& outputs, int64_t extent) {
  const int64_t shift = axis.pad - k * axis.dilation;
  const int64_t first = shift <= 0 ? 0 : ceil_div(shift, axis.stride);
  const int64_t last = extent - 1 + shift;  // times the stride
  const int64_t end = last < 0 ? 0 : last / axis.stride + 1;
  return {std::max(outputs.begin, first), std::min(outputs.end, end)};
}

struct AxisTiles {
  int64_t loaded = 0, most = 0, parts = 0;
};
AxisTiles tiles_of(const WindowAxis& axis, int64_t output, int64_t input, int64_t size) {
  AxisTiles tiles;
  for (const Range& part : parts_of(output, size)) {
    const int64_t count = inputs_of(axis, part, input).size();
    tiles.loaded += count, tiles.most = std::max(tiles.most, count), ++tiles.parts;
  }
  return tiles;
}

class Writer {
 public:
  Writer(const PoolLayer& layer, const PoolTiling& tiling, const Hardware& hardware)
      : layer_(layer), tiling_(tiling), slot_(hardware.depth(Memory::acc) / tiling.slots), out_(hardware) {}

  Result<Stream> write() {
    int64_t tile = 0;
    for (int64_t batch = 0; batch < layer_.output.batches; ++batch)
      for (const Range& blocks : parts_of(layer_.output.blocks, tiling_.blocks))
        for (const Range& rows : parts_of(layer_.output.height, tiling_.rows))
          for (const Range& cols : parts_of(layer_.output.width, tiling_.cols))
            TENON_OK(write_tile({batch, blocks, rows, cols}, tile++ % tiling_.slots));
    return out_.finish(kOutput);
  }

 private:
  struct Tile {
    int64_t batch = 0;
    Range blocks, rows, cols;
  };

  Result<void> write_tile(const Tile& tile, int64_t slot) {
    const Range rows = inputs_of(layer_.rows, tile.rows, layer_.input.height);
    const Range cols = inputs_of(layer_.cols, tile.cols, layer_.input.width);
    const int64_t in = slot * slot_, out = in + tile.blocks.size() * rows.size() * cols.size();
    const int64_t pixels = tile.rows.size() * tile.cols.size();
    const auto resource = kAcc + static_cast<Resource>(slot);
    out_.task(UnitId::compute, {}, {resource});
    load(tile, rows, cols, in);
    const Steps all{.iter_out = 1, .iter_in = u32(tile.blocks.size() * pixels), .dst_factor_in = 1, .src_factor_in = 1};
    Steps zero = all;
    zero.reset = true, zero.src_factor_in = 0;
    TENON_OK(out_.gemm({{u32(out), 0, 0}}, zero));
    TENON_OK(out_.alu(AluOp::min, {{u32(out), u32(out), 0}}, all, kLeast));
    for (int64_t y = 0; y < layer_.rows.kernel; ++y)
      for (int64_t x = 0; x < layer_.cols.kernel; ++x) TENON_OK(take_tap(tile, rows, cols, in, out, y, x));
    out_.task(UnitId::store, {resource}, {kOutput});
    store(tile, out);
    return {};
  }

  void load(const Tile& tile, const Range& rows, const Range& cols, int64_t sram) {
    const Image& image = layer_.input;
    Transfer t{.memory = Memory::acc8, .sram_base = u32(sram)};
    t.dram_base =
        u32((tile.batch * image.blocks + tile.blocks.begin) * image.plane() + rows.begin * image.width + cols.begin);
    t.y_size = u32(rows.size()), t.x_size = u32(cols.size()), t.x_stride = u32(image.width);
    if (rows.size() == image.height) {
      t.y_size = u32(tile.blocks.size() * rows.size());
      return out_.load(t, kOperandSegment);
    }
    for (int64_t b = 0; b < tile.blocks.size(); ++b) {
      out_.load(t, kOperandSegment);
      t.sram_base += u32(rows.size() * cols.size());
      t.dram_base += u32(image.plane());
    }
  }

  // out = max(out, this input of each window)
  Result<void> take_tap(const Tile& tile, const Range& in_rows, const Range& in_cols, int64_t in, int64_t out,
                        int64_t y, int64_t x) {
    const Range rows = outputs_of_tap(layer_.rows, y, tile.rows, layer_.input.height);
    const Range cols = outputs_of_tap(layer_.cols, x, tile.cols, layer_.input.width);
    if (rows.size() <= 0 || cols.size() <= 0) return {};
    const int64_t row = rows.begin * layer_.rows.stride - layer_.rows.pad + y * layer_.rows.dilation - in_rows.begin;
    const int64_t col = cols.begin * layer_.cols.stride - layer_.cols.pad + x * layer_.cols.dilation - in_cols.begin;
    const int64_t src = in + row * in_cols.size() + col;
    const int64_t dst = out + (rows.begin - tile.rows.begin) * tile.cols.size() + cols.begin - tile.cols.begin;
    std::vector<MicroOp> ops;
    for (int64_t b = 0; b < tile.blocks.size(); ++b)
      ops.push_back(
          {u32(dst + b * tile.rows.size() * tile.cols.size()), u32(src + b * in_rows.size() * in_cols.size()), 0});
    return out_.alu(AluOp::max, ops,
                    loops(rows.size(), cols.size(), {tile.cols.size(), 1},
                          {layer_.rows.stride * in_cols.size(), layer_.cols.stride}));
  }

  void store(const Tile& tile, int64_t sram) {
    store_planes(out_, layer_.output, tile.batch, tile.blocks, tile.rows, tile.cols, sram);
  }

  const PoolLayer& layer_;
  const PoolTiling& tiling_;
  const int64_t slot_;
  StreamBuilder out_;
};

}  // namespace

Result<PoolTiling> tile_pool(const PoolLayer& layer, const Hardware& hardware) {
  std::optional<PoolTiling> best;
  int64_t least = 0;
  for (const int64_t slots : {2, 1}) {
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
  }
  const int64_t window =
      std::min(layer.rows.extent(), layer.input.height) * std::min(layer.cols.extent(), layer.input.width);
  return error(Code::unsupported, "a window of layer '", layer.name, "' takes ", window + 1, " elements of ACC, ",
               hardware.depth(Memory::acc), " are there on target '", hardware.name, "'");
}

Result<Stream> stream_of(const PoolLayer& layer, const Hardware& hardware) {
  TENON_TRY(tiling, tile_pool(layer, hardware));
  TENON_TRY(stream, Writer(layer, tiling, hardware).write(), "the stream of layer '", layer.name, "'");
  return stream;
}

}  // namespace tenon::vta
