// TileModel: whether a tile fits the buffers, and the cost of a layer in such tiles. Part of the search of tiling.cpp.
#pragma once
#include <vector>

#include "vta/tiling.hpp"

namespace tenon::vta {

// The loads along one axis, over all parts.
struct AxisLoad {
  int64_t parts = 0;
  int64_t loaded = 0;  // rows or columns loaded from DRAM, over all parts
  int64_t most = 0;    // on the chip for one part
  bool padded = false;
};

class TileModel {
 public:
  TileModel(const Layer& layer, const Hardware& hardware);

  // Sets the extents of tiles; precomputes what is on the chip beside slots, and the loads along axes.
  void set_blocks(int64_t blocks, int64_t slots);
  void set_extents(int64_t rows, int64_t cols);

  const SramMap& map() const { return map_; }
  int64_t reduce() const { return reduce_; }  // input blocks of the longest sum
  int64_t block_parts(const Tiling& tile) const;
  // `tile` must have the blocks, rows and columns that were set.
  bool fits(const Tiling& tile);
  TilingCost cost(const Tiling& tile) const;

 private:
  // Bytes and instructions of one kind of transfer.
  struct Moved {
    int64_t bytes = 0, loads = 0;
    void add(int64_t times, int64_t bytes_each, int64_t loads_each) {
      bytes += times * bytes_each, loads += times * loads_each;
    }
  };
  static int64_t micro_ops(const Term& term, const Tiling& tile);
  bool whole(const Tiling& tile, bool flag) const { return flag || tile.reduce == reduce_; }
  int64_t cycles(const Moved& moved) const;
  int64_t bytes_cycles(int64_t bytes) const;
  int64_t gemm_steps() const;
  int64_t places(const Tiling& tile) const;
  Moved loads_of(size_t term, const Tiling& tile) const;
  Moved first_loads(const Tiling& tile) const;
  Moved loads_to_acc(const Tiling& tile) const;  // bias and micro-ops
  Moved stores(const Tiling& tile) const;

  const Layer& layer_;
  const Hardware& hardware_;
  int64_t reduce_ = 1;
  SramMap map_;
  std::vector<AxisLoad> rows_, cols_;  // by term
};

}  // namespace tenon::vta
