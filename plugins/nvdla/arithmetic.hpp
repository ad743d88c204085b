// The arithmetic of the units: the sums of CONV, and what SDP and PDP do with them. Results are held as floats, which
// represent f16 and i8 exactly.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <tenon/support/parallel.hpp>

#include "nvdla/command.hpp"
#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

// An element in memory. `half`: f16, else i8.
float load_element(const std::byte* from, bool half);
void store_element(std::byte* to, float value, bool half);

// The sums of one `convolve`, from copies of the data in the buffer. T is float (f16) or uint32_t (i8, modulo 2^32).
// Products of i8 are summed as floats, too, as long as that is exact: up to 2^24 / 2^14 of them.
template <class T>
class ConvSums {
 public:
  // Kernels are processed in chunks of this many.
  static constexpr int64_t kLanes = 8;

  // `data`: the rows in the buffer, row_entries apart. `weights`: the groups, group_entries apart.
  ConvSums(const Command& command, const Hardware& hardware, std::span<const std::byte> data,
           std::span<const std::byte> weights);
  // Sums of convolution row `row` (counted in the whole image): width by lanes() numbers.
  void row(int64_t row, T* sums) const;
  int64_t lanes() const { return chunks_ * kLanes; }  // kernels, rounded up

 private:
  void read_data(std::span<const std::byte> data);
  void read_weights(std::span<const std::byte> weights);
  const float* atom(int64_t row, int64_t column, int64_t surface) const;
  void pixel(int64_t row, int64_t column, int64_t chunk, T* sums) const;

  const Command& c_;
  const Hardware& h_;
  int64_t chunks_, taps_;
  std::vector<float> data_;     // [row][surface][column][channel of the atom]
  std::vector<float> weights_;  // [chunk][block][tap][channel of the block][lane]
  std::vector<float> zeros_;    // an atom of padding
};

// Compute the result of SDP from a sum with its bias, and an operand.
struct Sdp16 {
  float low, high;
  float operator()(float sum, bool has_operand, float operand) const;
};
struct Sdp8 {
  uint32_t shift, operand_shift;
  int32_t low, high;
  float operator()(uint32_t sum, bool has_operand, float operand) const;
};
Sdp16 sdp16(const Command& command);
Sdp8 sdp8(const Command& command);

// One window of a plane: value(row, column) is defined in [0, height) x [0, width).
template <class Value>
float pool_window(const Command& c, const Hardware& hardware, int64_t height, int64_t width, int64_t row,
                  int64_t column, Value&& value) {
  const int64_t top = row * c.pool_stride_y - c.pool_pad_top, left = column * c.pool_stride_x - c.pool_pad_left;
  float best = hardware.half() ? -INFINITY : -128.0f;
  double sum = 0;
  int64_t count = 0;
  for (int64_t y = std::max<int64_t>(top, 0); y < std::min<int64_t>(top + c.pool_kernel_height, height); ++y)
    for (int64_t x = std::max<int64_t>(left, 0); x < std::min<int64_t>(left + c.pool_kernel_width, width); ++x) {
      const float v = value(y, x);
      // Of equal values the first one is kept, and so is a NaN: zeros of both signs then agree with the reference.
      if (count == 0 || (!std::isnan(best) && (v > best || std::isnan(v)))) best = v;
      sum += static_cast<double>(v);
      ++count;
    }
  if (c.average == 0) return best;
  if (!hardware.half()) {
    const auto scaled = static_cast<uint32_t>(static_cast<int64_t>(sum)) * c.multiplier;
    return sdp8(c)(scaled, false, 0);
  }
  const int64_t elements = c.average == 2 ? int64_t{c.pool_kernel_height} * c.pool_kernel_width : count;
  return static_cast<float>(sum / static_cast<double>(elements));
}

}  // namespace tenon::nvdla
