#include "vta/tiling.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// What parts of an axis load, all together.
struct AxisLoad {
  int64_t parts = 0;
  int64_t loaded = 0;  // rows or columns from DRAM, over all parts
  int64_t most = 0;    // on the chip for one part
  bool padded = false;
};
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

// Tokens and micro-ops are for each slot: enough for what WGT holds in steps that are worth it.
constexpr int64_t kMostWeightSlots = 64;

class Search {
 public:
  Search(const Layer& layer, const Hardware& hardware) : layer_(layer), hardware_(hardware) {
    for (const Term& term : layer.terms) reduce_ = std::max(reduce_, term.reduce_blocks());
  }

  std::vector<Tiling> candidates(int64_t slots) {
    best_.clear();
    for (const int64_t blocks : part_sizes(layer_.blocks_per_group())) {
      map_ = SramMap::of(layer_, hardware_, {.blocks = blocks, .slots = slots, .wgt_slots = slots, .cost = {}});
      if (map_.acc_slot < blocks) continue;
      for (const int64_t rows : part_sizes(layer_.output.height))
        for (const int64_t cols : part_sizes(layer_.output.width)) try_tile(blocks, rows, cols);
    }
    // Of those whose weights stay as many as of others: the model likes them for bytes that may not be what counts.
    std::vector<Tiling> sorted, others;
    for (const auto& [kind, tile] : best_) (tile.weights_stay() ? sorted : others).push_back(tile);
    for (std::vector<Tiling>* list : {&sorted, &others}) {
      std::stable_sort(list->begin(), list->end(), better);
      if (list->size() > kMostCandidates / 2) list->resize(kMostCandidates / 2);
    }
    sorted.insert(sorted.end(), others.begin(), others.end());
    std::stable_sort(sorted.begin(), sorted.end(), better);
    return sorted;
  }

  static bool better(const Tiling& a, const Tiling& b) { return a.cost.score() < b.cost.score(); }

  // Why not even the smallest tile fits.
  Error refusal() {
    map_ = SramMap::of(layer_, hardware_, {.slots = 1, .wgt_slots = 1, .cost = {}});
    for (const Term& term : layer_.terms) {
      const int64_t window = term.rows.extent() * term.cols.extent();
      if (window > map_.inp_slot) return too_small(Memory::inp, window, map_.inp_slot, "a window");
      if (!term.one_weight && term.taps() > map_.wgt_slot)
        return too_small(Memory::wgt, term.taps(), map_.wgt_slot, "the weights of a window");
    }
    return error(Code::unsupported, "layer '", layer_.name, "' fits no tile into the buffers of target '",
                 hardware_.name, "': INP ", map_.inp_slot, ", WGT ", map_.wgt_slot, ", ACC ", map_.acc_slot, ", UOP ",
                 hardware_.depth(Memory::uop), " elements");
  }

 private:
  Error too_small(Memory memory, int64_t needed, int64_t there, std::string_view what) {
    return error(Code::unsupported, what, " of layer '", layer_.name, "' takes ", needed, " elements of ",
                 memory_name(memory), ", ", there, " are there on target '", hardware_.name, "'");
  }

  void try_tile(int64_t blocks, int64_t rows, int64_t cols) {
    const int64_t pixels = rows * cols;
    if (blocks * pixels > std::min(map_.acc_slot, kMostIterations)) return;
    rows_.clear(), cols_.clear();
    for (const Term& term : layer_.terms) {
      rows_.push_back(axis_load(term.rows, layer_.output.height, term.input.height, rows));
      cols_.push_back(axis_load(term.cols, layer_.output.width, term.input.width, cols));
    }
    const int64_t slots = map_.slots;
    Tiling tile{.blocks = blocks, .rows = rows, .cols = cols, .slots = slots, .cost = {}};
    for (const int64_t reduce : part_sizes(reduce_)) {
      tile.reduce = reduce;
      // All of both in one step is the first of these.
      for (const auto& [inp, wgt] :
           {std::pair(false, false), std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
        if ((inp || wgt) && reduce == reduce_) continue;
        tile.inp_whole = inp, tile.wgt_whole = wgt;
        tile.wgt_slots = slots;
        try_orders(tile);
        const int64_t each = block_parts(tile) * ceil_div(reduce_, reduce);
        // With one slot each, what does not wait for its turn would be no serial run.
        if (wgt || slots == 1 || each <= slots || each > kMostWeightSlots) continue;
        tile.wgt_slots = each;
        try_orders(tile);
      }
    }
  }

  void try_orders(Tiling tile) {
    map_.wgt_slot = SramMap::of(layer_, hardware_, tile).wgt_slot;
    if (!fits(tile)) return;
    for (const bool spatial_outer : {false, true}) {
      tile.spatial_outer = spatial_outer;
      consider(tile);
    }
  }

  int64_t block_parts(const Tiling& tile) const {
    return layer_.groups() * ceil_div(layer_.blocks_per_group(), tile.blocks);
  }

  bool whole(const Tiling& tile, bool flag) const { return flag || tile.reduce == reduce_; }

  bool fits(const Tiling& tile) const {
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

  static int64_t micro_ops(const Term& term, const Tiling& tile) {
    const int64_t inner = loops_over_taps(term, tile.rows, tile.cols) ? tile.rows * tile.cols : term.taps();
    return tile.blocks * inner * (term.diagonal ? 1 : std::min(tile.reduce, term.reduce_blocks()));
  }

  // Bytes and instructions of one kind of transfer.
  struct Moved {
    int64_t bytes = 0, loads = 0;
    void add(int64_t times, int64_t bytes_each, int64_t loads_each) {
      bytes += times * bytes_each, loads += times * loads_each;
    }
  };
  int64_t cycles(const Moved& moved) const {
    return bytes_cycles(moved.bytes) + moved.loads * hardware_.dram_latency_cycles;
  }
  int64_t bytes_cycles(int64_t bytes) const {
    return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / hardware_.dram_bytes_per_cycle));
  }

  Moved loads_of(size_t t, const Tiling& tile) const {
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
    const bool stays =
        tile.weights_stay() || ((wgt_whole || term.diagonal) && (!tile.spatial_outer || block_parts == 1));
    moved.add(stays ? 1 : places,
              layer_.output.blocks * term.reduce_blocks() * term.taps() * hardware_.element_bytes(Memory::wgt),
              block_parts * (wgt_whole ? 1 : chunks));
    return moved;
  }

  int64_t gemm_steps() const {
    int64_t steps = 0;
    for (const Term& term : layer_.terms) steps += layer_.output.elements() * term.reduce_blocks() * term.taps();
    return steps;
  }

  void consider(Tiling tile) {
    TilingCost cost;
    const int64_t places = layer_.output.batches * rows_[0].parts * cols_[0].parts;
    const int64_t block_parts = this->block_parts(tile);
    Moved loads, first;
    int64_t longest = 0;
    for (size_t t = 0; t < layer_.terms.size(); ++t) {
      const Moved moved = loads_of(t, tile);
      loads.add(1, moved.bytes, moved.loads);
      longest = std::max(longest, micro_ops(layer_.terms[t], tile));
    }
    const Term& head = layer_.terms[0];
    const int64_t step = std::min(tile.reduce, head.reduce_blocks());
    first.add(1,
              (head.diagonal    ? tile.blocks
               : tile.inp_whole ? head.reduce_blocks()
                                : step) *
                  rows_[0].most * cols_[0].most * hardware_.lanes(),
              2);
    if (!head.one_weight)
      first.add(1,
                tile.blocks * (tile.wgt_whole ? head.reduce_blocks() : step) * head.taps() *
                    hardware_.element_bytes(Memory::wgt),
                1);
    cost.load_cycles = cycles(loads);

    Moved bias;
    if (layer_.bias)
      bias.add(map_.all_bias        ? 1
               : tile.spatial_outer ? places * block_parts
                                    : block_parts,
               (map_.all_bias ? layer_.output.blocks : tile.blocks) * hardware_.element_bytes(Memory::acc), 1);
    // Kernels for each pair of slots; where they do not stay, they are loaded for each tile.
    const int64_t kernels = 4 * tile.slots * longest;
    bias.add(kernels <= hardware_.depth(Memory::uop) ? 1 : places * block_parts,
             std::min(kernels, hardware_.depth(Memory::uop)) * 4, 1);
    const int64_t elements = layer_.output.elements();
    cost.compute_cycles = gemm_steps() * hardware_.gemm_step_cycles +
                          elements * layer_.passes() * hardware_.alu_step_cycles + cycles(bias);

    Moved stores;
    const bool merged = cols_[0].parts == 1;
    stores.add(places * block_parts, 0, merged ? 1 : tile.blocks);
    stores.bytes = elements * hardware_.lanes();
    cost.store_cycles = cycles(stores);

    cost.dram_bytes = loads.bytes + bias.bytes + stores.bytes;
    cost.dram_cycles = bytes_cycles(cost.dram_bytes);
    const int64_t tile_elements = tile.blocks * tile.rows * tile.cols;
    cost.cycles = std::max({cost.load_cycles, cost.compute_cycles, cost.store_cycles, cost.dram_cycles}) +
                  cycles(first) + bytes_cycles(tile_elements * hardware_.lanes()) +
                  layer_.passes() * tile_elements * hardware_.alu_step_cycles;
    tile.cost = cost;
    const Kind kind{tile.blocks, tile.spatial_outer, tile.inp_whole, tile.wgt_whole, tile.weights_stay()};
    const auto known = best_.try_emplace(kind, tile).first;
    if (cost.score() < known->second.cost.score()) known->second = tile;
  }

  const Layer& layer_;
  const Hardware& hardware_;
  int64_t reduce_ = 1;
  SramMap map_;
  std::vector<AxisLoad> rows_, cols_;  // by term, of the tile that is looked at
  using Kind = std::tuple<int64_t, bool, bool, bool, bool>;
  std::map<Kind, Tiling> best_;
};

}  // namespace

Reach reach_of(const WindowAxis& axis, int64_t begin, int64_t end, int64_t input_extent) {
  Reach reach;
  reach.begin = begin * axis.stride - axis.pad;
  reach.end = (end - 1) * axis.stride - axis.pad + axis.extent();
  if (axis.skips) {
    reach.count = end - begin;
    return reach;
  }
  reach.count = reach.end - reach.begin;
  reach.pad_0 = std::max<int64_t>(0, -reach.begin);
  reach.pad_1 = std::max<int64_t>(0, reach.end - input_extent);
  return reach;
}

SramMap SramMap::of(const Layer& layer, const Hardware& hardware, const Tiling& tiling) {
  SramMap map;
  map.slots = tiling.slots;
  map.inp_slot = hardware.depth(Memory::inp) / tiling.slots;
  map.wgt_first = layer.shared_weights();
  map.wgt_slot = (hardware.depth(Memory::wgt) - map.wgt_first) / tiling.wgt_slots;
  const int64_t acc = hardware.depth(Memory::acc);
  map.all_bias = layer.bias && layer.output.blocks <= acc / 8;
  map.acc_first = !layer.bias ? 0 : map.all_bias ? layer.output.blocks : tiling.blocks;
  map.acc_slot = (acc - map.acc_first) / tiling.slots;
  return map;
}

bool loops_over_taps(const Term& term, int64_t rows, int64_t cols) { return rows * cols < term.taps(); }

bool blocks_merge(const Term& term, const Reach& rows, const Reach& cols) {
  if (term.rows.skips) return false;
  const bool all_rows = rows.pad_0 + rows.pad_1 == 0 && rows.count == term.input.height;
  const bool all_cols = cols.pad_0 + cols.pad_1 == 0 && cols.count == term.input.width;
  // Rows of all blocks in a row; or a piece of each block.
  if (all_rows && term.input.width <= kMostTransfer) return true;
  return all_cols && rows.pad_0 + rows.pad_1 == 0 && term.input.plane() <= kMostTransfer &&
         rows.count * cols.count <= kMostTransfer;
}

Result<std::vector<Tiling>> tile_candidates(const Layer& layer, const Hardware& hardware,
                                            const TilingOptions& options) {
  Search search(layer, hardware);
  if (options.double_buffer)
    if (auto found = search.candidates(2); !found.empty()) return found;
  if (auto found = search.candidates(1); !found.empty()) return found;
  return search.refusal();
}

Result<Tiling> tile_layer(const Layer& layer, const Hardware& hardware, const TilingOptions& options) {
  TENON_TRY(candidates, tile_candidates(layer, hardware, options));
  return candidates.front();
}

}  // namespace tenon::vta
