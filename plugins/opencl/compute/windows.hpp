// Windows in compute kernels: extents of one spatial axis after the other as numbers, and the walk over taps.
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
// Defines R, their number, and IN(d), OUT(d), KERNEL(d), STRIDE(d), DILATION(d), BEGIN(d), behind `first` numbers; and
// NEXT_TAP(k), which moves to the next tap, the last axis first.
void define_axes(ComputeSource& source, size_t rank, int first);
void add_axes(const std::vector<WindowAxis>& axes, ComputeLaunch& launch);

// A tensor [N, C, D1 ...]: its spatial axes; one of extent 1 where there is none.
size_t spatial_rank(const irgen::KernelRequest& request, size_t operand);
Dims spatial_of(const Dims& dims);
// What elements of an image that is read between them are computed in; an error where they are no floats.
Result<ElementType> image_type(const irgen::KernelRequest& request);
int64_t elements_of(const Dims& dims);

// The axes of an operator whose window slides over `in` and gives `out`.
Result<std::vector<WindowAxis>> window_axes(const Op& op, const Dims& in, const Dims& out, std::vector<Dim> kernel);

}  // namespace tenon::opencl
