// Windows over one channel at a time: depthwise convolutions and pools.
//
//   for each block of rows and columns of an output plane      a job; a work group has one
//     image = the padded inputs that its windows cover         local memory, split by the phases of the last stride, so
//                                                              that neighbouring outputs read neighbours for every tap
//     for each vector of outputs of a row                      the group's work items share them
//       START; for each tap: TAKE, with the vector x; DONE, with `count` outputs from element e of the result on
//
// Kernel, strides and dilations are constants of the source, as attributes are; extents are numbers.
#pragma once
#include <optional>
#include <string>

#include <tenon/ops/window.hpp>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

// Of rows, then columns; a line is a plane of one row.
struct PlaneWindow {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

// Nothing where the window has other axes, an extent that only a run knows, or covers more than fits into local memory.
std::optional<PlaneWindow> plane_window(const Window& window, ElementType work, const ComputeTarget& target);

// Defines T, TV, LANES, ROW_STRIDE, ROW_REACH (inputs between a window's first and last row), COLUMN_STRIDE,
// COLUMN_REACH, X and XV (operand 0 as T), NEAR_LOCAL(p), a vector in local memory, and
//   void tenon_stage(__local T* to, int length, long row, int inside, int first, int columns, a0)
// which puts `length` inputs of one phase into local memory: of the row of `columns` that begins at element `row`, from
// column `first` on; PADDING, which the caller defines, where there are none or the row is not `inside`.
void define_staging(ComputeSource& source, const PlaneWindow& window, ElementType work, const ComputeTarget& target);

// n: 0 and 1 rows and columns of an input plane, 2 and 3 of an output plane, 4 and 5 the padding before them, 6 and 7
// rows and columns of a job, 8 output planes of an input plane.
inline constexpr int kPlaneNumbers = 9;

// The most columns of a job, a multiple of the lanes: as many as fit beside one row of windows.
int64_t plane_columns(const PlaneWindow& window, ElementType work, const ComputeTarget& target);

struct PlaneText {
  std::string_view job;    // before a job's outputs: may read `plane` (of the output), y0 and x0
  std::string_view start;  // before the taps of a vector: may read line and column, of the job
  std::string take;        // x: the inputs of `tap`
  std::string_view done;   // at: the element of the result, count: how many of the vector's lanes count
};
// The kernel's body; define_staging() is part of it.
std::string plane_body(ComputeSource& source, const PlaneWindow& window, ElementType work, const ComputeTarget& target,
                       const PlaneText& text);

// The launch for `planes` planes of outputs.
struct PlaneExtents {
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, begin[2] = {0, 0};
};
PlaneExtents plane_extents(const Window& window, const Dims& in, const Dims& out);
ComputeLaunch plane_launch(const PlaneWindow& window, const PlaneExtents& extents, int64_t planes,
                           int64_t planes_of_input, ElementType work, const ComputeTarget& target);

}  // namespace tenon::opencl
