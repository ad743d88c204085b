// Windows over one channel at a time: depthwise convolutions and pools.
//
//   for each block of rows and columns of an output plane      a job; a work group has one
//     for each vector of outputs of a row
//       START; for each tap: TAKE, with the vector x; DONE, with `count` outputs from element e of the result on
//
// There are two forms. On a CPU inputs are read directly, for several rows of outputs at once, so that an input row is
// loaded once for all windows that cover it (direct_planes.cpp). With work groups of several items, or for longer
// strides, a job's padded inputs are copied to local memory, split by the phases of the last stride, so that adjacent
// outputs read adjacent elements for every tap (staged_planes.cpp).
//
// Kernel, strides and dilations are constants in the source, because they are attributes; extents are numbers.
#pragma once
#include <optional>
#include <string>

#include <tenon/ops/window.hpp>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

// Arrays are for rows, then columns; a line is a plane with one row.
struct PlaneWindow {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  int lanes = 1;  // of the vectors of outputs
  int64_t taps() const { return kernel[0] * kernel[1]; }
  // Inputs from a window's first row, or column, to its last.
  int64_t reach(int axis) const { return (kernel[axis] - 1) * dilation[axis]; }
};

// Nothing where the window has other axes or an extent known only to a run, or covers more than fits into local memory.
// Vectors are halved where the plane has no more columns than `out_columns`, if that is known.
std::optional<PlaneWindow> plane_window(const Window& window, ElementType work, const ComputeTarget& target,
                                        std::optional<int64_t> out_columns = std::nullopt);

// Defines T, TV, LANES, ROW_STRIDE, ROW_REACH, COLUMN_STRIDE, COLUMN_REACH, X and XV (operand 0 as T), and
// NEAR_LOCAL(p), a vector in local memory.
void define_window(ComputeSource& source, const PlaneWindow& window, ElementType work);

// The elements of an image in local memory that stay in a CPU core's near cache while a row of windows reads them
// again.
int64_t plane_elements(ElementType work, const ComputeTarget& target);

// n: 0 and 1 rows and columns of an input plane, 2 and 3 of an output plane, 4 and 5 the padding before them, 6 and 7
// rows and columns of a job, 8 output planes of an input plane, 9 elements of the input.
inline constexpr int kPlaneNumbers = 10;

struct PlaneText {
  std::string_view padding;  // the value of taps beyond the input
  std::string_view job;      // before a job's outputs: may read `plane` (of the output), y0 and x0
  std::string_view column;   // before a vector of columns: may read from_columns, the inputs of its lanes' first taps
  std::string_view sum;      // type of the accumulator
  std::string_view start;    // its initial value
  std::string_view take;     // TAKE(sum, x, tap): accumulates x, the inputs of the tap, a literal
  std::string_view take_at;  // the same where `tap` is a variable
  std::string_view done;     // DONE(sum, line, place, first, column, count): `count` outputs from first + column on, in
                             // row y0 + line; `place` is the position of first (epilogue.hpp)
  // Allows rows to be accumulated before columns: order and repetition do not matter, x has the type of the
  // accumulator, and the initial value is the padding.
  bool rows_first = false;
  // For floats: TAKE with fewer instructions, for operands that are not NaN. Windows with NaN among their inputs are
  // then accumulated tap by tap.
  std::string_view take_numbers = {};
  bool copies = false;  // DONE is short, so several copies of it pay
};
// The kernel's body; includes define_window().
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
