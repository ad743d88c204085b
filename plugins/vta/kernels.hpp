// Kernels on whole tensors, and the Layer or PoolLayer that they say.
#pragma once
#include <variant>

#include "vta/device_op.hpp"
#include "vta/instruction.hpp"
#include "vta/operators.hpp"

namespace tenon::vta {

// A kernel for `made`, which is no view, before `at`; operands and weights are as the model has them. Its result has
// the name and type of the operator's.
Op& write_kernel(const DeviceOp& made, Op& at);

// Types of the operands and, behind them, the result: segments of its commands.
std::vector<TensorType> tensors_of(const Kernel& kernel);

using AnyLayer = std::variant<Layer, PoolLayer>;
// What a kernel says whose constants are packed and which is not in tiles yet: device_op()'s layer, with the numbers of
// the kernel's operands. Code::invalid_argument for a body of any other form.
Result<AnyLayer> layer_of(const Kernel& kernel, const Hardware& hardware);

// A kernel without its attributes of later passes and body, in the place of `kernel`, to be filled; `operands` become
// inputs of the body. finish_kernel() then puts it in the other's place.
Kernel new_kernel(const Kernel& kernel, std::span<Value* const> operands);
void finish_kernel(Kernel& made, Value* result, Kernel& replaced);

}  // namespace tenon::vta
