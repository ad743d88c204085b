// Largest elements of windows on the ALU. A tile's input and output both lie in ACC: inputs are loaded as 8-bit values
// by the compute unit itself, so what overlaps is the store of one tile with the next one's work. Rows and columns of
// padding are not there: each tap is taken over those outputs whose input it is.
#pragma once
#include "vta/commands.hpp"

namespace tenon::vta {

struct PoolTiling {
  int64_t blocks = 1, rows = 1, cols = 1;  // of the output
  int64_t slots = 2;
};

// The tile of so many slots that loads least. Code::unsupported when ACC does not hold one window.
Result<PoolTiling> tile_pool(const PoolLayer& layer, const Hardware& hardware, int64_t slots);
std::vector<Command> commands_of(const PoolLayer& layer, const PoolTiling& tiling);

}  // namespace tenon::vta
