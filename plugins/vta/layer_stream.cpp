#include "vta/layer_stream.hpp"

#include <algorithm>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// Resources: slots of INP and ACC, what lies in DRAM, and slots of WGT, of which there may be many.
constexpr Resource kInp = 0, kAcc = 2, kShared = 4, kOutput = 5, kWgt = 6;

// A piece of the output: what one slot of ACC takes.
struct Tile {
  int64_t batch = 0, group = 0;
  Range blocks, rows, cols;  // blocks of the whole output
  int64_t pixels() const { return rows.size() * cols.size(); }
};

// Slots of one buffer and what they hold; the one that was used longest ago is filled next.
class Slots {
 public:
  struct Content {
    size_t term = 0;
    Tile tile;  // what of it matters
    Range reduce;
    bool operator==(const Content& o) const {
      return term == o.term && reduce == o.reduce && tile.batch == o.tile.batch && tile.group == o.tile.group &&
             tile.blocks == o.tile.blocks && tile.rows == o.tile.rows && tile.cols == o.tile.cols;
    }
  };
  explicit Slots(int64_t count) : held_(static_cast<size_t>(count)), used_(held_.size()) {}
  // The slot that holds `content` from now on, and whether it has to be loaded.
  std::pair<int64_t, bool> take(const Content& content) {
    size_t slot = 0;
    bool load = true;
    for (size_t i = 0; i < held_.size(); ++i) {
      if (held_[i] == content) {
        slot = i, load = false;
        break;
      }
      if (used_[i] < used_[slot]) slot = i;
    }
    held_[slot] = content;
    used_[slot] = ++clock_;
    return {static_cast<int64_t>(slot), load};
  }

 private:
  std::vector<std::optional<Content>> held_;
  std::vector<int64_t> used_;
  int64_t clock_ = 0;
};

class Writer {
 public:
  Writer(const Layer& layer, const Tiling& tiling, const Hardware& hardware)
      : layer_(layer),
        tiling_(tiling),
        map_(SramMap::of(layer, hardware, tiling)),
        out_(hardware),
        inp_(tiling.slots),
        wgt_(tiling.wgt_slots) {}

  Result<Stream> write() {
    if (map_.wgt_first > 0) {
      out_.task(UnitId::load, {}, {kShared});
      out_.load({.memory = Memory::wgt, .y_size = 1, .x_size = u32(map_.wgt_first), .x_stride = u32(map_.wgt_first)},
                kWeightSegment);
    }
    const auto blocks = block_parts();
    const auto places = place_parts();
    const size_t outer = tiling_.spatial_outer ? places.size() : blocks.size();
    const size_t inner = tiling_.spatial_outer ? blocks.size() : places.size();
    for (size_t i = 0; i < outer; ++i)
      for (size_t j = 0; j < inner; ++j) {
        const auto& [group, range] = blocks[tiling_.spatial_outer ? j : i];
        Tile tile = places[tiling_.spatial_outer ? i : j];
        tile.group = group, tile.blocks = range;
        TENON_OK(write_tile(tile));
      }
    return out_.finish(kOutput);
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

  Result<void> write_tile(const Tile& tile) {
    const auto slot = static_cast<Resource>(tiles_++ % tiling_.slots);
    const int64_t acc = map_.acc_first + int64_t{slot} * map_.acc_slot;
    out_.task(UnitId::compute, {}, {kAcc + slot});
    const Steps all{
        .iter_out = 1, .iter_in = u32(tile.blocks.size() * tile.pixels()), .dst_factor_in = 1, .src_factor_in = 1};
    Steps zero = all;
    zero.reset = true, zero.src_factor_in = 0;
    TENON_OK(out_.gemm({{u32(acc), 0, 0}}, zero));
    for (size_t t = 0; t < layer_.terms.size(); ++t) TENON_OK(add_term(t, tile, slot, acc, all));
    out_.task(UnitId::compute, {}, {kAcc + slot});
    TENON_OK(end_tile(tile, acc, all));
    out_.task(UnitId::store, {kAcc + slot}, {kOutput});
    store_planes(out_, layer_.output, tile.batch, tile.blocks, tile.rows, tile.cols, acc);
    return {};
  }

  // ---- Terms ----

  Result<void> add_term(size_t t, const Tile& tile, Resource slot, int64_t acc, const Steps& all) {
    const Term& term = layer_.terms[t];
    const auto steps = parts_of(term.reduce_blocks(), tiling_.reduce);
    for (const Range& step : steps) {
      const Range whole{0, term.reduce_blocks()};
      const Range inp_range = tiling_.inp_whole ? whole : step, wgt_range = tiling_.wgt_whole ? whole : step;
      const int64_t inp = load_input(t, tile, inp_range);
      const int64_t wgt = load_weights(t, tile, wgt_range);
      std::vector<Resource> reads{kInp + static_cast<Resource>(inp)};
      reads.push_back(term.one_weight ? kShared : kWgt + static_cast<Resource>(wgt));
      out_.task(UnitId::compute, std::move(reads), {kAcc + slot});
      const int64_t inp_at = inp * map_.inp_slot;
      const int64_t wgt_at = term.one_weight ? term.weights_at : map_.wgt_first + wgt * map_.wgt_slot;
      TENON_OK(multiply(
          term, tile,
          {.acc = acc, .inp = inp_at, .wgt = wgt_at, .inp_range = inp_range, .wgt_range = wgt_range, .step = step}));
      if (term.left_shift > 0 && step == steps.back())
        TENON_OK(out_.alu(AluOp::shr, {{u32(acc), u32(acc), 0}}, all, -term.left_shift));
    }
    return {};
  }

  int64_t load_input(size_t t, const Tile& tile, const Range& range) {
    const Term& term = layer_.terms[t];
    // Of a dense term, all output blocks of a group read the same.
    Tile wanted = tile;
    if (!term.diagonal) wanted.blocks = {};
    const auto [slot, load] = inp_.take({t, wanted, range});
    if (!load) return slot;
    const int64_t first = term.diagonal ? tile.blocks.begin : tile.group * term.reduce_blocks() + range.begin;
    const int64_t count = term.diagonal ? tile.blocks.size() : range.size();
    out_.task(UnitId::load, {}, {kInp + static_cast<Resource>(slot)});
    load_blocks(term, tile, first, count, slot * map_.inp_slot);
    return slot;
  }

  void load_blocks(const Term& term, const Tile& tile, int64_t first, int64_t count, int64_t sram) {
    const Reach rows = reach_of(term.rows, tile.rows.begin, tile.rows.end, term.input.height);
    const Reach cols = reach_of(term.cols, tile.cols.begin, tile.cols.end, term.input.width);
    const Image& image = term.input;
    const auto segment = kOperandSegment + static_cast<Segment>(term.operand);
    Transfer t{.memory = Memory::inp, .sram_base = u32(sram)};
    t.dram_base =
        u32((tile.batch * image.blocks + first) * image.plane() + rows.first_real() * image.width + cols.first_real());
    t.y_size = u32(rows.real()), t.x_size = u32(cols.real());
    t.x_stride = u32(image.width * (term.rows.skips ? term.rows.stride : 1));
    t.y_pad_0 = u32(rows.pad_0), t.y_pad_1 = u32(rows.pad_1), t.x_pad_0 = u32(cols.pad_0), t.x_pad_1 = u32(cols.pad_1);
    if (!blocks_merge(term, rows, cols)) {
      for (int64_t b = 0; b < count; ++b) {
        out_.load(t, segment);
        t.sram_base += u32(rows.count * cols.count);
        t.dram_base += u32(image.plane());
      }
      return;
    }
    if (rows.count == image.height) {
      t.y_size = u32(count * rows.count);
    } else {
      t.y_size = u32(count), t.x_size = u32(rows.count * cols.count), t.x_stride = u32(image.plane());
    }
    out_.load(t, segment);
  }

  int64_t load_weights(size_t t, const Tile& tile, const Range& range) {
    const Term& term = layer_.terms[t];
    if (term.one_weight) return 0;
    Tile wanted{.batch = 0, .group = tile.group, .blocks = tile.blocks, .rows = {}, .cols = {}};
    const auto [slot, load] = wgt_.take({t, wanted, range});
    if (!load) return slot;
    const int64_t block = term.reduce_blocks() * term.taps();  // elements of one output block
    const auto row = u32(range.size() * term.taps());
    Transfer transfer{.memory = Memory::wgt, .sram_base = u32(map_.wgt_first + slot * map_.wgt_slot)};
    transfer.dram_base = u32(term.weights_at + tile.blocks.begin * block + range.begin * term.taps());
    transfer.y_size = u32(tile.blocks.size()), transfer.x_size = row, transfer.x_stride = u32(block);
    // Rows that follow each other are one, whose stride does not matter.
    if (int64_t{row} == block && block * tile.blocks.size() <= kMostTransfer) {
      transfer.x_size = transfer.x_stride = u32(block * tile.blocks.size());
      transfer.y_size = 1;
    }
    out_.task(UnitId::load, {}, {kWgt + static_cast<Resource>(slot)});
    out_.load(transfer, kWeightSegment);
    return slot;
  }

  struct Step {
    int64_t acc = 0, inp = 0, wgt = 0;  // where tile, input blocks and weights begin
    Range inp_range, wgt_range;         // blocks of the sum that lie there
    Range step;                         // those to take
  };

  // Micro-ops over blocks, and over taps or places; the other of the two are the instruction's loops.
  Result<void> multiply(const Term& term, const Tile& tile, const Step& at) {
    const Reach rows = reach_of(term.rows, tile.rows.begin, tile.rows.end, term.input.height);
    const Reach cols = reach_of(term.cols, tile.cols.begin, tile.cols.end, term.input.width);
    const int64_t row_step = (term.rows.skips ? 1 : term.rows.stride) * cols.count;
    const int64_t col_step = term.cols.stride;
    const int64_t tap_row = term.rows.dilation * cols.count, tap_col = term.cols.dilation;
    const int64_t kernel_cols = term.cols.kernel, weight = term.one_weight ? 0 : 1;
    const bool taps_loop = loops_over_taps(term, tile.rows.size(), tile.cols.size());

    std::vector<MicroOp> ops;
    const auto add = [&](int64_t b, int64_t inp_block, int64_t wgt_block) {
      const int64_t dst = at.acc + b * tile.pixels(), src = at.inp + inp_block * rows.count * cols.count;
      const int64_t wgt = at.wgt + weight * wgt_block * term.taps();
      if (taps_loop) {
        for (int64_t y = 0; y < tile.rows.size(); ++y)
          for (int64_t x = 0; x < tile.cols.size(); ++x)
            ops.push_back({u32(dst + y * tile.cols.size() + x), u32(src + y * row_step + x * col_step), u32(wgt)});
        return;
      }
      for (int64_t y = 0; y < term.rows.kernel; ++y)
        for (int64_t x = 0; x < kernel_cols; ++x)
          ops.push_back({u32(dst), u32(src + y * tap_row + x * tap_col), u32(wgt + weight * (y * kernel_cols + x))});
    };
    for (int64_t b = 0; b < tile.blocks.size(); ++b) {
      if (term.diagonal) {
        add(b, b, b);
        continue;
      }
      for (int64_t i = at.step.begin; i < at.step.end; ++i)
        add(b, i - at.inp_range.begin, b * at.wgt_range.size() + i - at.wgt_range.begin);
    }
    if (taps_loop)
      return out_.gemm(
          ops, loops(term.rows.kernel, kernel_cols, {0, 0}, {tap_row, tap_col}, {weight * kernel_cols, weight}));
    return out_.gemm(ops,
                     loops(tile.rows.size(), tile.cols.size(), {tile.cols.size(), 1}, {row_step, col_step}, {0, 0}));
  }

  // ---- The end ----

  Result<void> end_tile(const Tile& tile, int64_t acc, const Steps& all) {
    const std::vector<MicroOp> op{{u32(acc), u32(acc), 0}};
    if (layer_.multiplier != 1) TENON_OK(out_.alu(AluOp::mul, op, all, layer_.multiplier));
    if (layer_.bias) TENON_OK(add_bias(tile, acc));
    if (layer_.rounding != 0) TENON_OK(out_.alu(AluOp::add, op, all, layer_.rounding));
    if (layer_.shift > 0) TENON_OK(out_.alu(AluOp::shr, op, all, layer_.shift));
    TENON_OK(out_.alu(AluOp::max, op, all, layer_.clip_min));
    return out_.alu(AluOp::min, op, all, layer_.clip_max);
  }

  Result<void> add_bias(const Tile& tile, int64_t acc) {
    const Range wanted = map_.all_bias ? Range{0, layer_.output.blocks} : tile.blocks;
    if (bias_ != wanted) {
      out_.load({.memory = Memory::acc,
                 .dram_base = u32(wanted.begin),
                 .y_size = 1,
                 .x_size = u32(wanted.size()),
                 .x_stride = u32(wanted.size())},
                kBiasSegment);
      bias_ = wanted;
    }
    return out_.alu(AluOp::add, {{u32(acc), u32(tile.blocks.begin - wanted.begin), 0}},
                    loops(tile.blocks.size(), tile.pixels(), {tile.pixels(), 1}, {1, 0}, {0, 0}));
  }

  const Layer& layer_;
  const Tiling& tiling_;
  const SramMap map_;
  StreamBuilder out_;
  Slots inp_, wgt_;
  std::optional<Range> bias_;
  int64_t tiles_ = 0;
};

}  // namespace

Result<Stream> stream_of(const Layer& layer, const Tiling& tiling, const Hardware& hardware) {
  TENON_TRY(stream, Writer(layer, tiling, hardware).write(), "the stream of layer '", layer.name, "'");
  return stream;
}

}  // namespace tenon::vta
