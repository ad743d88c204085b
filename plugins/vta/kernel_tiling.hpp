// Tilings of kernels: as attributes, and the search for the one with the fewest cycles.
#pragma once
#include <vector>

#include "vta/commands.hpp"
#include "vta/kernels.hpp"
#include "vta/pool_commands.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

using AnyTiling = std::variant<Tiling, PoolTiling>;

// 2 where overlap is requested and a tile fits into half of each buffer, else 1. Code::unsupported when no tile fits.
Result<int64_t> slots_of(const AnyLayer& layer, const Hardware& hardware, bool double_buffer);

// The best tiling with `slots` slots: of the layer's candidates (tile_candidates), the one whose commands have the best
// score by the simulator's clock, with the same score function as the model. `operands`: number of the kernel's.
Result<AnyTiling> best_tiling(const AnyLayer& layer, size_t operands, int64_t slots, const Hardware& hardware);

std::vector<Command> commands_of(const AnyLayer& layer, const AnyTiling& tiling, const Hardware& hardware);

void set_tiling(Op& kernel, const AnyTiling& tiling);
// Reads what set_tiling() wrote; an error when it is missing.
Result<AnyTiling> tiling_of(const Kernel& kernel, const AnyLayer& layer);

// Addresses of separate buffers for `count` segments, for use without a driver.
std::vector<uint64_t> separate_addresses(size_t count);

}  // namespace tenon::vta
