// From a tiled layer to its stream: loads, steps of the matrix unit, the end on the ALU, stores. Tile by tile, with the
// slots of each buffer in turn; what a slot holds already is not loaded again.
#pragma once
#include "vta/stream.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

// Segments: weights as WGT elements, the bias as ACC elements with one for each output block, operands and output as
// Images. `tiling` is of this layer and hardware.
Result<Stream> stream_of(const Layer& layer, const Tiling& tiling, const Hardware& hardware);

}  // namespace tenon::vta
