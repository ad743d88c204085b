// Tiling: how much of a layer the buffers hold at a time, and in which order it is walked.
//
//   TENON_TRY(candidates, tile_candidates(layer, hardware, 2));       // best first
//
// The output is cut into tiles of `blocks` x `rows` x `cols` elements of ACC, and the sum of a dense term into steps of
// `reduce` input blocks. Each buffer is cut into `slots` parts: with two, one is loaded or stored while the other is
// worked on. What one slot must hold:
//
//   INP  (inp_whole ? all : reduce) input blocks x the rows and columns that the tile's windows cover
//   WGT  blocks x (wgt_whole ? all : reduce) input blocks x taps       (shared elements lie beside the slots; where
//        the whole layer's weights fit, each step has a slot of its own, and they are loaded once)
//   ACC  blocks x rows x cols                                          (the bias lies beside the slots)
//   UOP  the micro-ops of one step
//
// Chosen is what the model of cycles likes best: the slowest of load unit, compute unit, store unit and DRAM, with what
// nothing overlaps before and behind, and a quarter of the DRAM's cycles, so that of alike ones the one that moves less
// wins. All candidates are looked at in one order, so the choice is the same everywhere.
//
// The model does not know what waits for what. tile_candidates gives the best of each kind, for whoever makes streams
// of them and asks the simulator's clock (time_stream).
#pragma once
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/layer.hpp"

namespace tenon::vta {

struct TilingCost {
  int64_t load_cycles = 0, compute_cycles = 0, store_cycles = 0;  // of the units
  int64_t dram_cycles = 0;                                        // of what is moved, without latency
  int64_t dram_bytes = 0;
  int64_t cycles = 0;  // of all together
  int64_t score() const { return cycles + dram_cycles / 4; }
};

struct Tiling {
  int64_t blocks = 1, rows = 1, cols = 1;
  int64_t reduce = 1;
  bool inp_whole = false, wgt_whole = false;
  bool spatial_outer = false;  // all blocks of a place before the next place; else all places before the next blocks
  int64_t slots = 2;           // of INP and ACC
  int64_t wgt_slots = 2;       // as many as `slots`, or one for each step of each part of blocks: then all weights stay
  TilingCost cost;
  bool weights_stay() const { return wgt_slots > slots; }
};

// Best first, at least one and at most kMostCandidates: of each number of blocks, order and what is whole the best.
// Code::unsupported names the memory that is too small for the smallest tile, with the numbers.
inline constexpr size_t kMostCandidates = 24;
Result<std::vector<Tiling>> tile_candidates(const Layer& layer, const Hardware& hardware, int64_t slots);
// Does a tile fit at all? The same error.
Result<void> check_tiles(const Layer& layer, const Hardware& hardware, int64_t slots);

// ---- What tiling and stream generation agree on ----

// Inputs that outputs [begin, end) along one axis read: first may be negative and end beyond the input, both by
// padding.
struct Reach {
  int64_t begin = 0, end = 0;  // of the input, as if padded without end
  int64_t count = 0;           // rows or columns on the chip
  int64_t pad_0 = 0, pad_1 = 0;
  int64_t real() const { return count - pad_0 - pad_1; }
  int64_t first_real() const { return begin + pad_0; }
};
Reach reach_of(const WindowAxis& axis, int64_t begin, int64_t end, int64_t input_extent);

// Places on the chip, in elements.
struct SramMap {
  int64_t slots = 1;
  int64_t inp_slot = 0, wgt_slot = 0, acc_slot = 0;  // elements of one slot
  int64_t wgt_first = 0, acc_first = 0;              // where slots begin: behind shared weights and bias
  bool all_bias = false;                             // the whole bias is there from the start
  static SramMap of(const Layer& layer, const Hardware& hardware, const Tiling& tiling);
};

// Sum of one step on a tile of so many places: are its micro-ops those of the window's taps, with output rows and
// columns as loops, or the other way?
bool loops_over_taps(int64_t taps, int64_t places);

}  // namespace tenon::vta
