// Max pooling on the ALU. A tile's input and output are both in ACC: the compute unit itself loads inputs as 8-bit
// values, so only the store of one tile overlaps with the work on the next. There is no padding in memory: each tap is
// applied to those outputs that have an input for it.
#pragma once
#include "vta/commands.hpp"

namespace tenon::vta {

struct PoolTiling {
  int64_t blocks = 1, rows = 1, cols = 1;  // of the output
  int64_t slots = 2;
};

// The tiling with `slots` slots that loads least. Code::unsupported when ACC does not hold one window.
Result<PoolTiling> tile_pool(const PoolLayer& layer, const Hardware& hardware, int64_t slots);
std::vector<Command> commands_of(const PoolLayer& layer, const PoolTiling& tiling);

}  // namespace tenon::vta
