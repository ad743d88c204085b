// Generates the commands of a tiled layer: loads, steps of the matrix unit, the epilogue on the ALU, stores. Tile by
// tile, with the slots of each buffer in rotation; what a slot already holds is not loaded again.
#pragma once
#include "vta/commands.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

// `tiling` must be for this layer and hardware. Operands in DRAM: weights as WGT elements
// [output blocks][input blocks][taps], the bias as ACC elements, one for each output block, activations and output as
// Images. No tile has a place on the chip yet.
std::vector<Command> commands_of(const Layer& layer, const Tiling& tiling, const Hardware& hardware);

}  // namespace tenon::vta
