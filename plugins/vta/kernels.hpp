// Kernels on whole tensors, and the Layer or PoolLayer that they describe.
#pragma once
#include <variant>

#include "vta/device_op.hpp"
#include "vta/instruction.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {

// Inserts a kernel for `made`, which must not be a view, before `at`; operands and weights are those of the model. Its
// result has the name and type of the operator's.
Op& write_kernel(const DeviceOp& made, Op& at);

// The types of the operands, then of the result: the segments of its commands.
std::vector<TensorType> tensors_of(const Kernel& kernel);

using AnyLayer = std::variant<Layer, PoolLayer>;
// The layer of a kernel whose constants are packed and that is not tiled yet: that of device_op(), with the operand
// numbers of the kernel. Code::invalid_argument for any other body.
Result<AnyLayer> layer_of(const Kernel& kernel, const Hardware& hardware);

// Makes a kernel to replace `kernel`, without the attributes of later passes and with an empty body, whose inputs are
// `operands`. finish_kernel() then replaces the original.
Kernel new_kernel(const Kernel& kernel, std::span<Value* const> operands);
void finish_kernel(Kernel& made, Value* result, Kernel& replaced);

}  // namespace tenon::vta
