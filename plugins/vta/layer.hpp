// Layer: what one operator of the device computes, in blocks of the machine. Not yet how: tiling.hpp,
// layer_commands.hpp.
//
//   acc[block, y, x] = sum over terms of window(input) * weights, each sum so far shifted left behind its term
//   out = clip((acc * multiplier + bias) >> shift, clip_min, clip_max)
//
// Everything that sums is a sum of terms: a convolution is a dense term; a depthwise convolution, a residual, an
// operand of an addition and an average pool are diagonal ones, whose weights are diagonal matrices, so that one step
// of the matrix unit takes what the ALU would need four for, and loads of operands overlap with computing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vta/hardware.hpp"

namespace tenon::vta {

// An activation in DRAM: elements [batches][blocks][height][width], each of batch x block values. Batches and channels
// that do not fill their last block are padded; what lies there is not defined and does not matter.
struct Image {
  int64_t batches = 1, blocks = 1, height = 1, width = 1;
  int64_t plane() const { return height * width; }
  int64_t elements() const { return batches * blocks * plane(); }
  bool operator==(const Image&) const = default;
};

// Along one axis: output i covers inputs i * stride - pad + k * dilation, k below `kernel`.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  // Loads leave out what no window covers. Rows only, since a transfer's elements of one row follow each other.
  bool skips = false;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  bool operator==(const WindowAxis&) const = default;
};

struct Term {
  size_t operand = 0;  // of the kernel: where `input` comes from
  size_t weights = 0;  // of the kernel, once they are packed
  Image input;
  WindowAxis rows, cols;
  // Diagonal: output block b is made of input block b. Else of all input blocks of its group.
  bool diagonal = false;
  int64_t groups = 1;       // of a dense term: parts of input and output blocks that know nothing of each other
  bool one_weight = false;  // of a diagonal term: the same weight element everywhere
  int64_t left_shift = 0;   // of the sum so far, behind this term

  int64_t taps() const { return rows.kernel * cols.kernel; }
  int64_t reduce_blocks() const { return diagonal ? 1 : input.blocks / groups; }
  // Of WGT, for an output of `blocks` blocks.
  int64_t weight_elements(int64_t blocks) const { return one_weight ? 1 : blocks * reduce_blocks() * taps(); }
  bool operator==(const Term&) const = default;
};

struct Layer {
  std::string name;  // for messages and listings
  std::vector<Term> terms;
  Image output;
  int64_t multiplier = 1;
  bool bias = false;        // a vector of ACC elements, one for each output block; rounding is in it
  size_t bias_operand = 0;  // of the kernel, once it is packed
  int64_t rounding = 0;     // added instead, where it fits an immediate operand
  int64_t shift = 0;
  int64_t clip_min = -128, clip_max = 127;

  // Groups of all dense terms; 1 without any.
  int64_t groups() const;
  int64_t blocks_per_group() const { return output.blocks / groups(); }
  int64_t shared_weights() const;   // elements of WGT that stay on the chip: one for each one_weight term
  int64_t weight_elements() const;  // of WGT, all terms
  // Steps of the ALU and resets for each element of the output.
  int64_t passes() const;
  bool operator==(const Layer&) const = default;
};

// Largest elements of windows, by the ALU; padding is never the largest.
struct PoolLayer {
  std::string name;
  Image input, output;
  WindowAxis rows, cols;
  bool operator==(const PoolLayer&) const = default;
};

}  // namespace tenon::vta
