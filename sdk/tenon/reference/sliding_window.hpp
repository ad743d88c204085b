// A window that slides over spatial axes, with all sizes known: the evaluators' counterpart of tenon/ops/window.hpp.
//
// Evaluators iterate row by row along the last axis: for one output row and one tap, the outputs in `inside` read
// inputs that are `strides.back()` apart.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenon/ops/window.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

inline int64_t product_of_dims(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}
inline Dims spatial_dims(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

// Without spatial axes, one axis of extent 1 is assumed.
struct SlidingWindow {
  Dims in, out, kernel, strides, dilations, begin;
  int64_t in_size = 0, out_size = 0, taps = 0;

  // `window` with a static kernel over `input`, giving `output`.
  void set(const Window& window, Dims input, Dims output) {
    in = std::move(input), out = std::move(output);
    strides = window.strides, dilations = window.dilations;
    for (size_t axis = 0; axis < in.size(); ++axis) {
      kernel.push_back(window.kernel[axis].value());
      begin.push_back(window.pad_begin(axis, in[axis]));
    }
    finish();
  }
  void finish() {
    if (in.empty()) in = out = kernel = strides = dilations = {1}, begin = {0};
    in_size = product_of_dims(in);
    out_size = product_of_dims(out);
    taps = product_of_dims(kernel);
  }

  size_t rank() const { return in.size(); }
  size_t last() const { return in.size() - 1; }
  int64_t rows() const { return out[last()] == 0 ? 0 : out_size / out[last()]; }

  // The position that tap `tap` reads relative to o * stride, one number per axis.
  void tap_offset(int64_t tap, int64_t* offset) const {
    for (size_t axis = rank(); axis-- > 0; tap /= kernel[axis])
      offset[axis] = tap % kernel[axis] * dilations[axis] - begin[axis];
  }
  // The offsets of all taps, concatenated.
  std::vector<int64_t> tap_offsets() const {
    std::vector<int64_t> offsets(static_cast<size_t>(taps) * rank());
    for (int64_t tap = 0; tap < taps; ++tap) tap_offset(tap, &offsets[tap * rank()]);
    return offsets;
  }
  // The input row that a tap reads for output row `row` (all axes but the last): the offset of its first element, or -1
  // when it is outside.
  int64_t input_row(int64_t row, const int64_t* offset) const {
    int64_t start = 0, stride = in[last()];
    for (size_t axis = last(); axis-- > 0;) {
      const int64_t at = row % out[axis] * strides[axis] + offset[axis];
      if (at < 0 || at >= in[axis]) return -1;
      row /= out[axis];
      start += at * stride;
      stride *= in[axis];
    }
    return start;
  }
};

// Which of `count` outputs read inside an input of `extent`: output j reads input first + j * stride.
struct OutputRange {
  int64_t begin, end;
};
inline OutputRange inside(int64_t first, int64_t stride, int64_t extent, int64_t count) {
  const int64_t begin = first >= 0 ? 0 : (-first + stride - 1) / stride;
  const int64_t end = first >= extent ? 0 : (extent - first + stride - 1) / stride;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

// Adds `columns`, one value for each tap and output, to the elements of the input plane that the tap reads.
template <class T>
void scatter_taps(const SlidingWindow& g, const T* columns, T* plane) {
  const size_t last = g.last();
  const int64_t extent = g.out[last], stride = g.strides[last];
  std::vector<int64_t> offset(g.rank());
  for (int64_t tap = 0; tap < g.taps; ++tap) {
    g.tap_offset(tap, offset.data());
    for (int64_t row = 0; row < g.rows(); ++row) {
      const int64_t start = g.input_row(row, offset.data());
      if (start < 0) continue;
      const OutputRange range = inside(offset[last], stride, g.in[last], extent);
      T* to = plane + start + offset[last];
      const T* from = columns + tap * g.out_size + row * extent;
      for (int64_t j = range.begin; j < range.end; ++j) to[j * stride] += from[j];
    }
  }
}

}  // namespace tenon
