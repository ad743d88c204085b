// Convolutions on a CPU whose windows overlap: the padded inputs of all channels lie in local memory once, and not once
// for each tap as in a packed panel (tile.hpp).
//
//   for each block of output rows, and of output channels        a job
//     image = the padded inputs that its windows cover           split by the phases of both strides: all outputs of
//                                                                the block, row behind row, read neighbours for every
//                                                                tap
//     for each ROWS output channels
//       for each COLUMNS positions of the block                  between rows lie some that are of no use
//         s[row][vector] += W[row][channel, tap] * image[channel][tap + vector]
//       for each row of outputs: the epilogue, from sums that wait in local memory
//
// One work item a group: each keeps lines of sums.
#pragma once
#include <optional>

#include "opencl/compute/planes.hpp"
#include "opencl/compute/tile.hpp"

namespace tenon::opencl {

// A convolution of one or two spatial axes whose extents, but for the number of images, are known.
struct ImageConv {
  PlaneWindow window;
  PlaneExtents extents;
  int64_t channels = 1, outputs = 1, groups = 1;  // of all groups
};

// How its source and jobs are cut. Nothing where the image does not fit into local memory, or work groups have items.
struct ImageTile {
  ProductTile tile;
  int64_t rows = 1;        // of outputs of a job
  int64_t pitch = 1;       // elements from one row of a phase to the next
  int64_t phase_rows = 1;  // rows of a phase
};
std::optional<ImageTile> image_tile(const ImageConv& conv, ElementType work, const ComputeTarget& target);

// Reads the weights A (ComputeSource::load_by_pointer) and START(output), what its sums begin with; stores by FINISH.
std::string image_body(ComputeSource& source, const ImageConv& conv, const ImageTile& tile, ElementType work,
                       const ComputeTarget& target);
ComputeLaunch image_launch(const ImageConv& conv, const ImageTile& tile, int64_t images, const ComputeTarget& target);

}  // namespace tenon::opencl
