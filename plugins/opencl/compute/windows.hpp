// Windows in compute kernels: the extents of each spatial axis as numbers, and iteration over taps.
#pragma once
#include <string_view>

#include <tenon/ops/window.hpp>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

// Numbers of one axis: in, out, kernel, stride, dilation, begin.
inline constexpr int kNumbersOfAxis = 6;
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0;
};
// Defines R, the number of axes, and IN(d), OUT(d), KERNEL(d), STRIDE(d), DILATION(d), BEGIN(d), whose numbers come
// after the `first` ones; and NEXT_TAP(k), which moves to the next tap, the last axis first.
void define_axes(ComputeSource& source, size_t rank, int first);
void add_axes(const std::vector<WindowAxis>& axes, ComputeLaunch& launch);

// For a tensor [N, C, D1 ...]: the number of spatial axes; where there is none, one of extent 1 counts.
size_t spatial_rank(const irgen::KernelRequest& request, size_t operand);
Dims spatial_of(const Dims& dims);
// The type for computing with an image that is interpolated; an error where its elements are not floats.
Result<ElementType> image_type(const irgen::KernelRequest& request);
int64_t elements_of(const Dims& dims);

// The axes of an operator whose window moves over `in` and gives `out`.
Result<std::vector<WindowAxis>> window_axes(const Op& op, const Dims& in, const Dims& out, std::vector<Dim> kernel);

}  // namespace tenon::opencl
