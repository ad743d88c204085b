// Tiling: how much of a layer the buffers hold at a time, and the order in which it is traversed.
//
//   TENON_TRY(candidates, tile_candidates(layer, hardware, 2));       // best first
//
// The output is divided into tiles of `blocks` x `rows` x `cols` elements of ACC, and the sum of a dense term into
// steps of `reduce` input blocks. Each buffer is divided into `slots` parts: with two (double buffering), one is loaded
// or stored while the other is in use. The contents of one slot:
//
//   INP  (inp_whole ? all : reduce) input blocks x the rows and columns that the tile's windows cover
//   WGT  blocks x (wgt_whole ? all : reduce) input blocks x taps       (shared elements are beside the slots; where
//        the whole layer's weights fit, each step has a slot of its own, and they are loaded once)
//   ACC  blocks x rows x cols                                          (the bias is beside the slots)
//   UOP  the micro-ops of one step
//
// The choice minimises the cycles of a model: the slowest of load unit, compute unit, store unit and DRAM, plus what
// cannot overlap at the beginning and the end, plus a quarter of the DRAM's cycles, so that among equals the tiling
// that moves fewer bytes wins. Candidates are evaluated in a fixed order, so the choice is deterministic.
//
// The model ignores dependences between units. tile_candidates returns the best of each kind, for callers that generate
// streams of them and time these with the simulator's clock (time_stream).
#pragma once
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/layer.hpp"

namespace tenon::vta {

struct TilingCost {
  int64_t load_cycles = 0, compute_cycles = 0, store_cycles = 0;  // of the units
  int64_t dram_cycles = 0;                                        // of transfers, without latency
  int64_t dram_bytes = 0;
  int64_t cycles = 0;  // overall
  int64_t score() const { return cycles + dram_cycles / 4; }
};

struct Tiling {
  int64_t blocks = 1, rows = 1, cols = 1;
  int64_t reduce = 1;
  bool inp_whole = false, wgt_whole = false;
  bool spatial_outer = false;  // true: all blocks of a position, then the next position; false: the reverse
  int64_t slots = 2;           // of INP and ACC
  int64_t wgt_slots = 2;       // `slots`, or one for each step of each part of blocks, so that all weights stay
  TilingCost cost;
  bool weights_stay() const { return wgt_slots > slots; }
};

// Best first, at least one and at most kMostCandidates: the best for each combination of block count, order and what is
// whole. Code::unsupported names the memory that is too small for the smallest tile, with the numbers.
inline constexpr size_t kMostCandidates = 24;
Result<std::vector<Tiling>> tile_candidates(const Layer& layer, const Hardware& hardware, int64_t slots);
// Checks whether any tile fits, with the same error.
Result<void> check_tiles(const Layer& layer, const Hardware& hardware, int64_t slots);

// ---- Shared by tiling and stream generation ----

// The inputs that outputs [begin, end) read along one axis. Because of padding, begin may be negative and end beyond
// the input.
struct Reach {
  int64_t begin = 0, end = 0;  // of the input, as if padding were unlimited
  int64_t count = 0;           // rows or columns on the chip
  int64_t pad_0 = 0, pad_1 = 0;
  int64_t real() const { return count - pad_0 - pad_1; }
  int64_t first_real() const { return begin + pad_0; }
};
Reach reach_of(const WindowAxis& axis, int64_t begin, int64_t end, int64_t input_extent);

// Layout of the memories on the chip, in elements.
struct SramMap {
  int64_t slots = 1;
  int64_t inp_slot = 0, wgt_slot = 0, acc_slot = 0;  // size of one slot
  int64_t wgt_first = 0, acc_first = 0;              // begin of the slots, after shared weights and bias
  bool all_bias = false;                             // the whole bias is loaded once
  static SramMap of(const Layer& layer, const Hardware& hardware, const Tiling& tiling);
};

// For one step on a tile with `places` positions: whether the micro-ops are those of the window's taps, with output
// rows and columns as loops, or the reverse.
bool loops_over_taps(int64_t taps, int64_t places);

}  // namespace tenon::vta
