#include "vta/layer_commands.hpp"

#include <algorithm>

#include "vta/ranges.hpp"
#include "vta/tile_slots.hpp"

namespace tenon::vta {
namespace {

class LayerWriter {
 public:
  LayerWriter(const Layer& layer, const Tiling& tiling, const Hardware& hardware)
      : layer_(layer),
        tiling_(tiling),
        map_(SramMap::of(layer, hardware, tiling)),
        inp_(tiling.slots),
        wgt_(tiling.wgt_slots) {}

  std::vector<Command> write() {
    for (const Term& term : layer_.terms)
      shared_.push_back(term.one_weight ? load(Memory::wgt, term.weights, kResident, Part{}) : 0);
    const auto blocks = block_parts();
    const auto places = place_parts();
    const size_t outer = tiling_.spatial_outer ? places.size() : blocks.size();
    const size_t inner = tiling_.spatial_outer ? blocks.size() : places.size();
    for (size_t i = 0; i < outer; ++i)
      for (size_t j = 0; j < inner; ++j) {
        const auto& [group, range] = blocks[tiling_.spatial_outer ? j : i];
        Tile tile = places[tiling_.spatial_outer ? i : j];
        tile.group = group, tile.blocks = range;
        write_tile(tile);
      }
    return std::move(commands_);
  }

 private:
  std::vector<std::pair<int64_t, Range>> block_parts() const {
    std::vector<std::pair<int64_t, Range>> parts;
    const int64_t each = layer_.blocks_per_group();
    for (int64_t group = 0; group < layer_.groups(); ++group)
      for (const Range& range : parts_of(each, tiling_.blocks))
        parts.push_back({group, {group * each + range.begin, group * each + range.end}});
    return parts;
  }
  std::vector<Tile> place_parts() const {
    std::vector<Tile> parts;
    for (int64_t batch = 0; batch < layer_.output.batches; ++batch)
      for (const Range& rows : parts_of(layer_.output.height, tiling_.rows))
        for (const Range& cols : parts_of(layer_.output.width, tiling_.cols))
          parts.push_back({.batch = batch, .group = 0, .blocks = {}, .rows = rows, .cols = cols});
    return parts;
  }

  Register load(Memory memory, size_t operand, int64_t slot, const Part& part) {
    const Register to = next_++;
    commands_.push_back(
        Load{.to = to, .memory = memory, .from = static_cast<Segment>(operand), .slot = slot, .part = part});
    return to;
  }

  void write_tile(const Tile& tile) {
    const Register acc = next_++;
    commands_.push_back(
        Zero{.to = acc, .slot = tiles_++ % tiling_.slots, .part = part_of_output(layer_.output, tile), .uops = {}});
    for (size_t t = 0; t < layer_.terms.size(); ++t) add_term(t, tile, acc);
    end_tile(tile, acc);
    commands_.push_back(Store{.from = acc, .part = part_of_output(layer_.output, tile)});
  }

  // ---- Terms ----

  void add_term(size_t t, const Tile& tile, Register acc) {
    const Term& term = layer_.terms[t];
    const Range whole{0, term.reduce_blocks()};
    for (const Range& step : parts_of(term.reduce_blocks(), tiling_.reduce)) {
      const Range inp = tiling_.inp_whole ? whole : step, wgt = tiling_.wgt_whole ? whole : step;
      Gemm gemm{.acc = acc, .rows = term.rows, .cols = term.cols, .uops = {}};
      gemm.x = load_input(t, tile, inp);
      gemm.w = term.one_weight ? shared_[t] : load_weights(t, tile, wgt);
      gemm.diagonal = term.diagonal, gemm.one_weight = term.one_weight;
      if (!term.diagonal)
        gemm.x_block = step.begin - inp.begin, gemm.w_block = step.begin - wgt.begin, gemm.blocks = step.size();
      if (term.rows.skips) gemm.rows.stride = 1, gemm.rows.skips = false;
      gemm.rows.pad = gemm.cols.pad = 0;
      commands_.push_back(gemm);
    }
    if (term.left_shift > 0)
      commands_.push_back(Alu{.acc = acc, .op = AluOp::shr, .immediate = -term.left_shift, .uops = {}});
  }

  Register load_input(size_t t, const Tile& tile, const Range& range) {
    const Term& term = layer_.terms[t];
    // In a dense term, all output blocks of a group read the same inputs.
    Tile wanted = tile;
    if (!term.diagonal) wanted.blocks = {};
    const auto [slot, load] = inp_.take({t, wanted, range});
    if (!load) return inp_.held(slot);
    const Reach rows = reach_of(term.rows, tile.rows.begin, tile.rows.end, term.input.height);
    const Reach cols = reach_of(term.cols, tile.cols.begin, tile.cols.end, term.input.width);
    const Range blocks = term.diagonal ? tile.blocks
                                       : Range{tile.group * term.reduce_blocks() + range.begin,
                                               tile.group * term.reduce_blocks() + range.end};
    const Image& image = term.input;
    return inp_.held(slot) = this->load(Memory::inp, term.operand, slot,
                                        {.tensor = {image.batches, image.blocks, image.height, image.width},
                                         .begin = {tile.batch, blocks.begin, rows.first_real(), cols.first_real()},
                                         .count = {1, blocks.size(), rows.real(), cols.real()},
                                         .row_step = term.rows.skips ? term.rows.stride : 1,
                                         .pad_top = rows.pad_0,
                                         .pad_left = cols.pad_0,
                                         .pad_bottom = rows.pad_1,
                                         .pad_right = cols.pad_1});
  }

  Register load_weights(size_t t, const Tile& tile, const Range& range) {
    const Term& term = layer_.terms[t];
    const Tile wanted{.batch = 0, .group = tile.group, .blocks = tile.blocks, .rows = {}, .cols = {}};
    const auto [slot, load] = wgt_.take({t, wanted, range});
    if (!load) return wgt_.held(slot);
    return wgt_.held(slot) = this->load(Memory::wgt, term.weights, slot,
                                        {.tensor = {1, layer_.output.blocks, term.reduce_blocks(), term.taps()},
                                         .begin = {0, tile.blocks.begin, range.begin, 0},
                                         .count = {1, tile.blocks.size(), range.size(), term.taps()}});
  }

  // ---- Epilogue ----

  void end_tile(const Tile& tile, Register acc) {
    const auto step = [&](AluOp op, int64_t immediate) {
      commands_.push_back(Alu{.acc = acc, .op = op, .immediate = immediate, .uops = {}});
    };
    if (layer_.multiplier != 1) step(AluOp::mul, layer_.multiplier);
    if (layer_.bias) add_bias(tile, acc);
    if (layer_.rounding != 0) step(AluOp::add, layer_.rounding);
    commands_.push_back(
        Narrow{.acc = acc, .shift = layer_.shift, .min = layer_.clip_min, .max = layer_.clip_max, .uops = {}});
  }

  // Loads the whole bias once, or the tile's part into a slot of its own, after those of tiles.
  void add_bias(const Tile& tile, Register acc) {
    const Range wanted = map_.all_bias ? Range{0, layer_.output.blocks} : tile.blocks;
    if (bias_range_ != wanted) {
      bias_ = load(Memory::acc, layer_.bias_operand, map_.all_bias ? kResident : tiling_.slots,
                   {.tensor = {1, 1, 1, layer_.output.blocks},
                    .begin = {0, 0, 0, wanted.begin},
                    .count = {1, 1, 1, wanted.size()}});
      bias_range_ = wanted;
    }
    commands_.push_back(Alu{
        .acc = acc, .op = AluOp::add, .vector = bias_, .vector_block = tile.blocks.begin - wanted.begin, .uops = {}});
  }

  const Layer& layer_;
  const Tiling& tiling_;
  const SramMap map_;
  std::vector<Command> commands_;
  TileSlots inp_, wgt_;
  std::vector<Register> shared_;  // by term: its only weight element
  std::optional<Range> bias_range_;
  Register bias_ = 0, next_ = 0;
  int64_t tiles_ = 0;
};

}  // namespace

std::vector<Command> commands_of(const Layer& layer, const Tiling& tiling, const Hardware& hardware) {
  return LayerWriter(layer, tiling, hardware).write();
}

}  // namespace tenon::vta
