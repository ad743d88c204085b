// Conversion of the host's tensors to the machine's layouts and back.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

// `x`: [1, C] or [1, C, H, W] with the machine's element type. `to`: Image::of(x.dims()).bytes.
Result<void> pack_activation(const Tensor& x, const Hardware& hardware, std::span<std::byte> to);
Result<void> unpack_activation(std::span<const std::byte> from, const Hardware& hardware, Tensor& y);

// Weights of all parts, each in groups of atomic_k kernels in the weight layout: parts.count * weight_bytes(). Weights
// between channels of different groups of a part are zeros.
Result<std::vector<std::byte>> pack_weights(const Tensor& w, const ConvLayer& layer, const Hardware& hardware);

}  // namespace tenon::nvdla
