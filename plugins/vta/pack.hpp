// Conversion between the host's tensors and the machine's blocks.
//
//   activation  NCHW -> [N / batch][C / block][H][W][batch][block]      NCHW{1n16c} of the default machine
//   weights     OIHW -> [O / block][I / block][H][W][block][block]      OIHW{16o16i}
//
// Incomplete blocks are padded with zeros. Tensors of rank 2 and 3 are images of height 1, and width 1.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

#include "vta/layer.hpp"

namespace tenon::vta {

// DRAM is a sequence of windows. Each is a buffer of the driver, from the first address that is aligned for any
// element.
int64_t dram_window_bytes(const Hardware& hardware);
int64_t dram_alignment(const Hardware& hardware);  // of everything that transfers reach

// [N, C], [N, C, W] or [N, C, H, W]; Code::unsupported names any other rank.
Result<Image> image_of(const Dims& dims, const Hardware& hardware);

// `x`: i8, with dims that image_of accepts. `to`: image.elements() elements.
void pack_activation(const Tensor& x, const Hardware& hardware, std::span<std::byte> to);
void unpack_activation(std::span<const std::byte> from, const Hardware& hardware, Tensor& y);

// The groups of a convolution on the machine: several are merged where the channels of one do not fill blocks.
struct GroupBlocks {
  bool diagonal = false;  // output block b depends on input block b only
  int64_t groups = 1;     // otherwise: independent parts of whole blocks
  int64_t reduce = 1;     // input blocks of one part
  static GroupBlocks of(int64_t inputs, int64_t outputs, int64_t group, const Hardware& hardware);
};

// `w`: i8[O, C / group, kernel ...], of any rank from 2 on, as i8[output blocks, input blocks, kernel, block, block].
Result<Tensor> pack_weights(const Tensor& w, int64_t group, const GroupBlocks& blocks, const Hardware& hardware);
// A weight element with `value` on its diagonal: i8[1, 1, 1, 1, block, block].
Result<Tensor> diagonal_element(int8_t value, const Hardware& hardware);

// An ACC element for each block of `channels`, i32[blocks, batch, block]: (bias[c] + rounding) modulo 2^32. An empty
// `bias` counts as zeros.
Result<Tensor> pack_bias(const Tensor& bias, int64_t channels, int64_t rounding, const Hardware& hardware);

}  // namespace tenon::vta
