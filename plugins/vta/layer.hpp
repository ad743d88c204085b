// Layer: what one operator of the device computes, in blocks of the machine. How it is computed is in tiling.hpp and
// layer_commands.hpp.
//
//   acc[block, y, x] = sum over terms of window(input) * weights, with the partial sum shifted left after each term
//   out = clip((acc * multiplier + bias) >> shift, clip_min, clip_max)
//
// Everything that adds is a sum of terms. A convolution is a dense term. A depthwise convolution, a residual, an
// operand of an addition and an average pool are diagonal terms, whose weights are diagonal matrices: one step of the
// matrix unit replaces four of the ALU, and loads of operands overlap with computation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vta/hardware.hpp"

namespace tenon::vta {

// An activation in DRAM: elements [batches][blocks][height][width], each of batch x block values. Incomplete blocks of
// batches and channels are padded; the contents of the padding are undefined and irrelevant.
struct Image {
  int64_t batches = 1, blocks = 1, height = 1, width = 1;
  int64_t plane() const { return height * width; }
  int64_t elements() const { return batches * blocks * plane(); }
  bool operator==(const Image&) const = default;
};

// Along one axis: output i reads inputs i * stride - pad + k * dilation, k in [0, kernel).
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  // Loads omit inputs that no window reads. For rows only, since the elements of a transfer's row are contiguous.
  bool skips = false;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  bool operator==(const WindowAxis&) const = default;
};

struct Term {
  size_t operand = 0;  // number of the kernel's operand for `input`
  size_t weights = 0;  // number of the kernel's operand, once they are packed
  Image input;
  WindowAxis rows, cols;
  // Diagonal: output block b depends on input block b only; otherwise on all input blocks of its group.
  bool diagonal = false;
  int64_t groups = 1;       // of a dense term: independent parts of input and output blocks
  bool one_weight = false;  // of a diagonal term: a single weight element is used everywhere
  int64_t left_shift = 0;   // of the partial sum, after this term

  int64_t taps() const { return rows.kernel * cols.kernel; }
  int64_t reduce_blocks() const { return diagonal ? 1 : input.blocks / groups; }
  // Elements of WGT for an output of `blocks` blocks.
  int64_t weight_elements(int64_t blocks) const { return one_weight ? 1 : blocks * reduce_blocks() * taps(); }
  bool operator==(const Term&) const = default;
};

struct Layer {
  std::string name;  // for messages and listings
  std::vector<Term> terms;
  Image output;
  int64_t multiplier = 1;
  bool bias = false;        // a vector of ACC elements, one for each output block, including the rounding term
  size_t bias_operand = 0;  // number of the kernel's operand, once it is packed
  int64_t rounding = 0;     // added instead of a bias, where it fits an immediate operand
  int64_t shift = 0;
  int64_t clip_min = -128, clip_max = 127;

  // Groups of all dense terms; 1 without any.
  int64_t groups() const;
  int64_t blocks_per_group() const { return output.blocks / groups(); }
  int64_t shared_weights() const;   // elements of WGT that stay on the chip: one for each one_weight term
  int64_t weight_elements() const;  // of WGT, all terms
  // The number of ALU steps and resets for each element of the output.
  int64_t passes() const;
  bool operator==(const Layer&) const = default;
};

// Maximum over windows, by the ALU; padding is never the maximum.
struct PoolLayer {
  std::string name;
  Image input, output;
  WindowAxis rows, cols;
  bool operator==(const PoolLayer&) const = default;
};

}  // namespace tenon::vta
