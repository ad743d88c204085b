// The two forms of planes.hpp, used by plane_body().
#pragma once
#include "opencl/compute/planes.hpp"

namespace tenon::opencl {

// The position of a job: in_rows, in_columns, job_rows, job_columns, y0, x0, plane.
inline constexpr std::string_view kPlaneJob = R"(
    const int in_rows = (int)n[0], in_columns = (int)n[1], job_rows = (int)n[6], job_columns = (int)n[7];
    const long row_blocks = (n[2] + job_rows - 1) / job_rows, column_blocks = (n[3] + job_columns - 1) / job_columns;
    // The last block is moved back: its outputs are made twice.
    const int y0 = (int)min(item % row_blocks * job_rows, n[2] - job_rows);
    const int x0 = (int)min(item / row_blocks % column_blocks * job_columns, n[3] - job_columns);
    const long plane = item / row_blocks / column_blocks;
)";

// Whether inputs are read directly from global memory.
bool reads_planes_directly(const PlaneWindow& window, const ComputeTarget& target);
std::string direct_plane_body(ComputeSource& source, const PlaneWindow& window, ElementType work,
                              const PlaneText& text);
// The number of output rows computed at once.
int64_t direct_lines(const PlaneWindow& window);

// Inputs of a job are staged in local memory.
std::string staged_plane_body(ComputeSource& source, const PlaneWindow& window, ElementType work,
                              const ComputeTarget& target, const PlaneText& text);
// Defines
//   void tenon_stage(__local T* to, int length, long row, int inside, int first, int columns, a0)
// which copies `length` inputs of one phase into local memory: from the row of `columns` elements that begins at
// element `row`, from column `first` on; PADDING beyond the row, or everywhere if the row is not `inside`.
void define_staging(ComputeSource& source, const PlaneWindow& window, ElementType work);

}  // namespace tenon::opencl
