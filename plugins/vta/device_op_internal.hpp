// The parts of device_op(): device_operands.cpp checks operands, device_layers.cpp builds layers.
#pragma once
#include <string_view>

#include <tenon/ir/graph.hpp>

#include "vta/device_op.hpp"

namespace tenon::vta {

inline constexpr int64_t kMostImmediate = 32767;  // 16 bits, signed

Error refuse(const Hardware& hardware, std::string reason);

// The extents of an i8 tensor; an error if they are not known.
Result<Dims> dims_of(const Value* value, std::string_view what, const Hardware& hardware);
// The same in blocks; an error if transfers cannot address them, or one buffer of the driver cannot hold them.
Result<Image> image_of_value(const Value* value, std::string_view what, const Hardware& hardware);
Result<void> check_bytes(int64_t bytes, std::string_view what, const Hardware& hardware);
Result<Tensor> constant_operand(const Op& op, size_t i, std::string_view what, const Hardware& hardware);

// The axes of a window with one or two spatial extents; a missing first one has extent 1.
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
