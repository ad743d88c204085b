// Conversion between commands and the operators of a tiled kernel. Operators address parts of tensors by logical
// indices, commands by elements of the machine.
#pragma once
#include "vta/commands.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {

// The destination memory of a dma.load of elements of this type: 8-bit values are widened on their way to ACC.
Result<Memory> memory_of(const Attributes& load, ElementType element);
std::string_view memory_text(Memory memory);  // as in target files

// The part of a tensor with dims `tensor`: an activation, packed weights, a bias in elements, micro-ops.
Result<Part> part_of(const Attributes& load, const Dims& tensor, Memory memory, const Hardware& hardware);
Result<Part> stored_part(const Attributes& store, const TileShape& tile, const Dims& tensor, const Hardware& hardware);
TileShape tile_shape(const Dims& dims, const Hardware& hardware);
MicroOpRanges micro_op_ranges(const Attributes& attributes);
Attribute::Integers uops_attribute(const MicroOpRanges& ranges);

// Fills the empty body of a kernel with one operator for each command, preceded by the dma.alloc of the output and
// followed by vta.Finish. Returns the body's output.
Value* write_commands(const std::vector<Command>& commands, const Kernel& kernel, const Hardware& hardware);

}  // namespace tenon::vta
