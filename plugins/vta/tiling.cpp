#include "vta/tiling.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "vta/ranges.hpp"
#include "vta/tile_model.hpp"

namespace tenon::vta {
namespace {

// Each slot needs tokens and micro-ops of its own. This many suffice for all of WGT in steps of a worthwhile size.
constexpr int64_t kMostWeightSlots = 64;

class Search {
 public:
  Search(const Layer& layer, const Hardware& hardware, int64_t slots)
      : layer_(layer), model_(layer, hardware), slots_(slots) {}

  std::vector<Tiling> candidates() {
    for (const int64_t blocks : part_sizes(layer_.blocks_per_group())) {
      model_.set_blocks(blocks, slots_);
      if (model_.map().acc_slot < blocks) continue;
      for (const int64_t rows : part_sizes(layer_.output.height))
        for (const int64_t cols : part_sizes(layer_.output.width)) try_tile(blocks, rows, cols);
    }
    // As many candidates with resident weights as others, because the model may overestimate the value of saved bytes.
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

 private:
  static bool better(const Tiling& a, const Tiling& b) { return a.cost.score() < b.cost.score(); }

  void try_tile(int64_t blocks, int64_t rows, int64_t cols) {
    if (blocks * rows * cols > std::min(model_.map().acc_slot, kMostIterations)) return;
    model_.set_extents(rows, cols);
    Tiling tile{.blocks = blocks, .rows = rows, .cols = cols, .slots = slots_, .cost = {}};
    for (const int64_t reduce : part_sizes(model_.reduce())) {
      tile.reduce = reduce;
      // When a step covers the whole reduction, the first combination stands for all.
      for (const auto& [inp, wgt] :
           {std::pair(false, false), std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
        if ((inp || wgt) && reduce == model_.reduce()) continue;
        tile.inp_whole = inp, tile.wgt_whole = wgt;
        tile.wgt_slots = slots_;
        try_orders(tile);
        const int64_t each = model_.block_parts(tile) * ceil_div(model_.reduce(), reduce);
        // With one slot each, weights that are loaded early would not give a serial run.
        if (wgt || slots_ == 1 || each <= slots_ || each > kMostWeightSlots) continue;
        tile.wgt_slots = each;
        try_orders(tile);
      }
    }
  }

  void try_orders(Tiling tile) {
    if (!model_.fits(tile)) return;
    for (const bool spatial_outer : {false, true}) {
      tile.spatial_outer = spatial_outer;
      tile.cost = model_.cost(tile);
      const Kind kind{tile.blocks, tile.spatial_outer, tile.inp_whole, tile.wgt_whole, tile.weights_stay()};
      const auto known = best_.try_emplace(kind, tile).first;
      if (tile.cost.score() < known->second.cost.score()) known->second = tile;
    }
  }

  const Layer& layer_;
  TileModel model_;
  const int64_t slots_;
  using Kind = std::tuple<int64_t, bool, bool, bool, bool>;
  std::map<Kind, Tiling> best_;
};

// The reason why not even the smallest tile fits.
Error refusal(const Layer& layer, const Hardware& hardware, int64_t slots) {
  const SramMap map = SramMap::of(layer, hardware, {.slots = slots, .wgt_slots = slots, .cost = {}});
  const auto too_small = [&](Memory memory, int64_t needed, int64_t there, std::string_view what) {
    return error(Code::unsupported, what, " of layer '", layer.name, "' takes ", needed, " elements of ",
                 memory_name(memory), ", ", there, " are there on target '", hardware.name, "'");
  };
  for (const Term& term : layer.terms) {
    const int64_t window = term.rows.extent() * term.cols.extent();
    if (window > map.inp_slot) return too_small(Memory::inp, window, map.inp_slot, "a window");
    if (!term.one_weight && term.taps() > map.wgt_slot)
      return too_small(Memory::wgt, term.taps(), map.wgt_slot, "the weights of a window");
  }
  return error(Code::unsupported, "layer '", layer.name, "' fits no tile into the buffers of target '", hardware.name,
               "': INP ", map.inp_slot, ", WGT ", map.wgt_slot, ", ACC ", map.acc_slot, ", UOP ",
               hardware.depth(Memory::uop), " elements");
}

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

bool loops_over_taps(int64_t taps, int64_t places) { return places < taps; }

// No tile takes less space in any buffer than the smallest one.
Result<void> check_tiles(const Layer& layer, const Hardware& hardware, int64_t slots) {
  TileModel model(layer, hardware);
  model.set_blocks(1, slots);
  model.set_extents(1, 1);
  const Tiling smallest{.slots = slots, .wgt_slots = slots, .cost = {}};
  if (model.map().acc_slot >= 1 && model.fits(smallest)) return {};
  return refusal(layer, hardware, slots);
}

Result<std::vector<Tiling>> tile_candidates(const Layer& layer, const Hardware& hardware, int64_t slots) {
  TENON_OK(check_tiles(layer, hardware, slots));
  return Search(layer, hardware, slots).candidates();
}

}  // namespace tenon::vta
