// What device ops of one operator each are made of: device_operands.cpp checks, device_layers.cpp builds.
#pragma once
#include <string_view>

#include <tenon/ir/graph.hpp>

#include "vta/device_op.hpp"

namespace tenon::vta {

inline constexpr int64_t kMostImmediate = 32767;  // 16 bits, signed

Error refuse(const Hardware& hardware, std::string reason);

// An i8 tensor of known extents.
Result<Dims> dims_of(const Value* value, std::string_view what, const Hardware& hardware);
// The same, in blocks that transfers reach and one buffer of the driver holds.
Result<Image> image_of_value(const Value* value, std::string_view what, const Hardware& hardware);
Result<void> check_bytes(int64_t bytes, std::string_view what, const Hardware& hardware);
Result<Tensor> constant_operand(const Op& op, size_t i, std::string_view what, const Hardware& hardware);

// A window's axes, of one or two spatial extents; a missing first one is 1 wide.
struct Axes {
  WindowAxis rows, cols;
};
Result<Axes> axes_of(const Op& op, const Dims& kernel, const Hardware& hardware);
Result<void> check_row_stride(const Image& input, const WindowAxis& rows, const Hardware& hardware);

using MakeDeviceOp = Result<DeviceOp> (*)(const Op&, const Hardware&);
Result<DeviceOp> convolution(const Op& op, const Hardware& hardware);
Result<DeviceOp> dense(const Op& op, const Hardware& hardware);
Result<DeviceOp> addition(const Op& op, const Hardware& hardware);
Result<DeviceOp> average_pool(const Op& op, const Hardware& hardware);
Result<DeviceOp> max_pool(const Op& op, const Hardware& hardware);
Result<DeviceOp> view(const Op& op, const Hardware& hardware);

}  // namespace tenon::vta
