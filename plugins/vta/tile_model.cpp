#include "vta/tile_model.hpp"

#include <algorithm>
#include <cmath>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

AxisLoad axis_load(const WindowAxis& axis, int64_t output, int64_t input, int64_t size) {
  AxisLoad load;
  for (int64_t at = 0; at < output; at += size, ++load.parts) {
    const Reach reach = reach_of(axis, at, std::min(output, at + size), input);
    load.loaded += reach.real();
    load.most = std::max(load.most, reach.count);
    load.padded |= reach.pad_0 + reach.pad_1 > 0;
  }
  return load;
}

}  // namespace

TileModel::TileModel(const Layer& layer, const Hardware& hardware) : layer_(layer), hardware_(hardware) {
  for (const Term& term : layer.terms) reduce_ = std::max(reduce_, term.reduce_blocks());
}

void TileModel::set_blocks(int64_t blocks, int64_t slots) {
  map_ = SramMap::of(layer_, hardware_, {.blocks = blocks, .slots = slots, .wgt_slots = slots, .cost = {}});
}

void TileModel::set_extents(int64_t rows, int64_t cols) {
  rows_.clear(), cols_.clear();
  for (const Term& term : layer_.terms) {
    rows_.push_back(axis_load(term.rows, layer_.output.height, term.input.height, rows));
    cols_.push_back(axis_load(term.cols, layer_.output.width, term.input.width, cols));
  }
}

int64_t TileModel::block_parts(const Tiling& tile) const {
  return layer_.groups() * ceil_div(layer_.blocks_per_group(), tile.blocks);
}

bool TileModel::fits(const Tiling& tile) {
  map_.wgt_slot = SramMap::of(layer_, hardware_, tile).wgt_slot;
  for (size_t t = 0; t < layer_.terms.size(); ++t) {
    const Term& term = layer_.terms[t];
    const int64_t step = std::min(tile.reduce, term.reduce_blocks());
    const int64_t inp = term.diagonal ? tile.blocks : tile.inp_whole ? term.reduce_blocks() : step;
    const int64_t wgt = tile.wgt_whole ? term.reduce_blocks() : step;
    if (inp * rows_[t].most * cols_[t].most > map_.inp_slot) return false;
    if (!term.one_weight && tile.blocks * wgt * term.taps() > map_.wgt_slot) return false;
    if (micro_ops(term, tile) > hardware_.depth(Memory::uop)) return false;
    if (std::max(tile.rows, tile.cols) > kMostIterations) return false;
  }
  return true;
}

int64_t TileModel::micro_ops(const Term& term, const Tiling& tile) {
  const int64_t inner = loops_over_taps(term.taps(), tile.rows * tile.cols) ? tile.rows * tile.cols : term.taps();
  return tile.blocks * inner * (term.diagonal ? 1 : std::min(tile.reduce, term.reduce_blocks()));
}

// ---- Costs ----

int64_t TileModel::cycles(const Moved& moved) const {
  return bytes_cycles(moved.bytes) + moved.loads * hardware_.dram_latency_cycles;
}
int64_t TileModel::bytes_cycles(int64_t bytes) const {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / hardware_.dram_bytes_per_cycle));
}

int64_t TileModel::gemm_steps() const {
  int64_t steps = 0;
  for (const Term& term : layer_.terms) steps += layer_.output.elements() * term.reduce_blocks() * term.taps();
  return steps;
}

int64_t TileModel::places(const Tiling&) const { return layer_.output.batches * rows_[0].parts * cols_[0].parts; }

TileModel::Moved TileModel::loads_of(size_t t, const Tiling& tile) const {
  const Term& term = layer_.terms[t];
  const int64_t places = term.input.batches * rows_[t].parts * cols_[t].parts;
  const int64_t group_parts = ceil_div(layer_.blocks_per_group(), tile.blocks);
  const int64_t block_parts = this->block_parts(tile);
  const bool inp_whole = whole(tile, tile.inp_whole), wgt_whole = whole(tile, tile.wgt_whole);
  const int64_t chunks = ceil_div(term.reduce_blocks(), tile.reduce);

  const bool merged = !rows_[t].padded && rows_[t].parts == 1 && !term.rows.skips;
  const bool merged_cols = !cols_[t].padded && cols_[t].parts == 1 && !term.rows.skips;
  int64_t loads = term.input.blocks;
  if (merged || merged_cols) loads = term.diagonal ? block_parts : term.groups * (inp_whole ? 1 : chunks);
  const bool once = term.diagonal || (inp_whole && (tile.spatial_outer || places == 1));
  Moved moved;
  moved.add(once ? 1 : group_parts,
            term.input.batches * term.input.blocks * rows_[t].loaded * cols_[t].loaded * hardware_.lanes(),
            loads * places);
  if (term.one_weight) return moved;
  const bool stays = tile.weights_stay() || ((wgt_whole || term.diagonal) && (!tile.spatial_outer || block_parts == 1));
  moved.add(stays ? 1 : places,
            layer_.output.blocks * term.reduce_blocks() * term.taps() * hardware_.element_bytes(Memory::wgt),
            block_parts * (wgt_whole ? 1 : chunks));
  return moved;
}

TileModel::Moved TileModel::first_loads(const Tiling& tile) const {
  const Term& head = layer_.terms[0];
  const int64_t step = std::min(tile.reduce, head.reduce_blocks());
  const int64_t inputs = head.diagonal ? tile.blocks : tile.inp_whole ? head.reduce_blocks() : step;
  Moved first;
  first.add(1, inputs * rows_[0].most * cols_[0].most * hardware_.lanes(), 2);
  if (head.one_weight) return first;
  const int64_t weights = tile.blocks * (tile.wgt_whole ? head.reduce_blocks() : step) * head.taps();
  first.add(1, weights * hardware_.element_bytes(Memory::wgt), 1);
  return first;
}

TileModel::Moved TileModel::loads_to_acc(const Tiling& tile) const {
  const int64_t tiles = places(tile) * block_parts(tile);
  Moved moved;
  if (layer_.bias) {
    const int64_t times = map_.all_bias ? 1 : tile.spatial_outer ? tiles : block_parts(tile);
    moved.add(times, (map_.all_bias ? layer_.output.blocks : tile.blocks) * hardware_.element_bytes(Memory::acc), 1);
  }
  // One set of micro-ops for each pair of slots. If UOP does not hold all of them, they are loaded again for each tile.
  int64_t longest = 0;
  for (const Term& term : layer_.terms) longest = std::max(longest, micro_ops(term, tile));
  const int64_t kernels = 4 * tile.slots * longest, room = hardware_.depth(Memory::uop);
  moved.add(kernels <= room ? 1 : tiles, std::min(kernels, room) * hardware_.element_bytes(Memory::uop), 1);
  return moved;
}

TileModel::Moved TileModel::stores(const Tiling& tile) const {
  Moved moved;
  moved.add(places(tile) * block_parts(tile), 0, cols_[0].parts == 1 ? 1 : tile.blocks);
  moved.bytes = layer_.output.elements() * hardware_.lanes();
  return moved;
}

TilingCost TileModel::cost(const Tiling& tile) const {
  Moved loads;
  for (size_t t = 0; t < layer_.terms.size(); ++t) {
    const Moved moved = loads_of(t, tile);
    loads.add(1, moved.bytes, moved.loads);
  }
  const Moved to_acc = loads_to_acc(tile), stored = stores(tile);
  const int64_t elements = layer_.output.elements(), passes = layer_.passes() * hardware_.alu_step_cycles;
  TilingCost cost;
  cost.load_cycles = cycles(loads);
  cost.compute_cycles = gemm_steps() * hardware_.gemm_step_cycles + elements * passes + cycles(to_acc);
  cost.store_cycles = cycles(stored);
  cost.dram_bytes = loads.bytes + to_acc.bytes + stored.bytes;
  cost.dram_cycles = bytes_cycles(cost.dram_bytes);
  const int64_t tile_elements = tile.blocks * tile.rows * tile.cols;
  cost.cycles = std::max({cost.load_cycles, cost.compute_cycles, cost.store_cycles, cost.dram_cycles}) +
                cycles(first_loads(tile)) + bytes_cycles(tile_elements * hardware_.lanes()) + passes * tile_elements;
  return cost;
}

}  // namespace tenon::vta
