// From a tiled layer to its commands: loads, steps of the matrix unit, the end on the ALU, stores. Tile by tile, with
// the slots of each buffer in turn; what a slot holds already is not loaded again.
#pragma once
#include "vta/commands.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

// `tiling` is of this layer and hardware. Operands in DRAM: weights as WGT elements [output blocks][input
// blocks][taps], the bias as ACC elements, one for each output block, activations and output as Images. Nothing has a
// place on the chip yet.
std::vector<Command> commands_of(const Layer& layer, const Tiling& tiling, const Hardware& hardware);

}  // namespace tenon::vta
