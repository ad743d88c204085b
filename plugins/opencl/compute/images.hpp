// Convolutions on a CPU with overlapping windows: the padded inputs of all channels are in local memory once, and not
// once for each tap as in a packed panel (tile.hpp).
//
//   for each block of output rows, and of output channels        a job
//     image = the padded inputs that its windows cover           split by the phases of both strides, so that for each
//                                                                tap the outputs of the block, row after row, read
//                                                                adjacent elements
//     for each ROWS output channels
//       for each COLUMNS positions of the block                  includes unused ones between rows
//         s[row][vector] += W[row][channel, tap] * image[channel][tap + vector]
//       for each row of outputs: the epilogue, from sums kept in local memory
//
// One work item per group, because each needs lines of sums of its own.
#pragma once
#include <optional>

#include "opencl/compute/planes.hpp"
#include "opencl/compute/tile.hpp"

namespace tenon::opencl {

// A convolution with one or two spatial axes, all of whose extents except the number of images are known.
struct ImageConv {
  PlaneWindow window;
  PlaneExtents extents;
  int64_t channels = 1, outputs = 1, groups = 1;  // totals over all groups
};

// The division into jobs. Nothing where the image does not fit into local memory, or work groups have several items.
struct ImageTile {
  ProductTile tile;
  int64_t rows = 1;        // rows of outputs of a job
  int64_t pitch = 1;       // elements from one row of a phase to the next
  int64_t phase_rows = 1;  // rows of a phase
};
std::optional<ImageTile> image_tile(const ImageConv& conv, ElementType work, const ComputeTarget& target);

// Uses the weights A (ComputeSource::load_by_pointer) and START(output), the initial value of its sums; stores by
// FINISH.
std::string image_body(ComputeSource& source, const ImageConv& conv, const ImageTile& tile, ElementType work,
                       const ComputeTarget& target);
ComputeLaunch image_launch(const ImageConv& conv, const ImageTile& tile, int64_t images, const ComputeTarget& target);

}  // namespace tenon::opencl
