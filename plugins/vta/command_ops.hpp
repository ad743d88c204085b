// Commands as operators of a tiled kernel, and back: parts of tensors by logical indices in the text, by elements of
// the machine in commands.
#pragma once
#include "vta/commands.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {

// The memory that a dma.load goes to, of elements of this type: 8-bit values widen on their way to ACC.
Result<Memory> memory_of(const Attributes& load, ElementType element);
std::string_view memory_text(Memory memory);  // as in target files

// Of a tensor of dims `tensor`: an activation, packed weights, a bias in elements, micro-ops.
Result<Part> part_of(const Attributes& load, const Dims& tensor, Memory memory, const Hardware& hardware);
Result<Part> stored_part(const Attributes& store, const TileShape& tile, const Dims& tensor, const Hardware& hardware);
TileShape tile_shape(const Dims& dims, const Hardware& hardware);
MicroOpRanges micro_op_ranges(const Attributes& attributes);
Attribute::Integers uops_attribute(const MicroOpRanges& ranges);

// Fills the empty body of a kernel with the commands: one operator for each, dma.alloc of the output before and
// vta.Finish behind them. Returns the body's output.
Value* write_commands(const std::vector<Command>& commands, const Kernel& kernel, const Hardware& hardware);

}  // namespace tenon::vta
