// Tiles of kernels: as attributes, and the ones with the fewest cycles.
#pragma once
#include <vector>

#include "vta/commands.hpp"
#include "vta/kernels.hpp"
#include "vta/pool_commands.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

using AnyTiling = std::variant<Tiling, PoolTiling>;

// 2 where a tile fits into halves of the buffers and overlap is wanted, else 1. Code::unsupported when none fits at
// all.
Result<int64_t> slots_of(const AnyLayer& layer, const Hardware& hardware, bool double_buffer);

// The best tiles of so many slots. Of a layer's likely ones (tile_candidates) that whose commands the simulator's clock
// likes best, by the same score as the model's; `operands` counts those of the kernel.
Result<AnyTiling> best_tiling(const AnyLayer& layer, size_t operands, int64_t slots, const Hardware& hardware);

std::vector<Command> commands_of(const AnyLayer& layer, const AnyTiling& tiling, const Hardware& hardware);

void set_tiling(Op& kernel, const AnyTiling& tiling);
// What set_tiling() wrote; an error when it is not there.
Result<AnyTiling> tiling_of(const Kernel& kernel, const AnyLayer& layer);

// Addresses of buffers of their own for `count` segments, where there is no driver yet.
std::vector<uint64_t> separate_addresses(size_t count);

}  // namespace tenon::vta
