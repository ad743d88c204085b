// The tile of registers that products and convolutions sum in, and the text around it.
//
//   for each block of columns of C                      a job; a work group has one
//     for each DEPTH steps of the inner extent
//       panel[k][column] = B                            packed into local memory: read again by every row tile
//       for each ROWS rows of C                         the group's work items share them
//         s[row][vector] += A[row][k] * panel[k][vector]
//         after the last step: the epilogue; before: the sums wait in local memory
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

// C = A * B with A of m x k, B of k x n; nothing where only a run knows.
struct ProductExtents {
  std::optional<int64_t> m, n, k;
};

struct ProductTile {
  int rows = 1;            // of A, each an element at a time
  int vectors = 1;         // of columns
  int lanes = 1;           // of a vector
  int64_t depth = 0;       // 0: nothing is packed
  int64_t block_rows = 0;  // of which the sums have place in local memory
  int64_t columns() const { return int64_t{vectors} * lanes; }
  bool packs() const { return depth > 0; }
};

// Of a vector of `work`.
int lanes_of(ElementType work, const ComputeTarget& target);

// By the target's numbers (ComputeTarget::tiling): rows and vectors so that few of them are of no use for m and n.
// Packs where the panel is read by several row tiles.
ProductTile choose_tile(const ProductExtents& extents, ElementType work, const ComputeTarget& target);

// Of one multiply-add of a vector that is wanted, with the share of those that are of no use, and of loads.
double cycles_of(const ProductTile& tile, const ProductExtents& extents);

// What a measured search tries besides.
std::vector<Tiling> other_tilings(const Tiling& tiling);

// How jobs cut rows: so that the device's units are done at about the same time, with few panels packed twice.
// `other_jobs`: of a block of rows; `waits`: the inner extent has several panels, between which sums wait.
struct RowBlocks {
  int64_t rows = 1, blocks = 1;
};
RowBlocks row_blocks(const ProductTile& tile, int64_t m, int64_t other_jobs, bool waits, const ComputeTarget& target);

// Defines ROWS, VECTORS, LANES, COLUMNS, T, TV, MULTIPLY_ADD, and where the tile packs DEPTH, PANEL(k, v) and
// PARTIAL(row, v), with their memory.
void define_tile(ComputeSource& source, const ProductTile& tile, ElementType work);

// Defines IV, integers of the size of `work`, and LANE_NUMBERS: 0, 1 ...
void define_lane_numbers(ComputeSource& source, int lanes, ElementType work);

// Defines TRANSPOSE(t): t[i] of LANES vectors becomes the elements i of all of them.
void define_transpose(ComputeSource& source, int lanes);

// The head of the loop over k of so many steps, up to its brace. Two loops: compilers guess by the depth of loops which
// values want registers, and gave those of sums to constants of the packing, whose loops are as deep.
std::string each_step(std::string_view steps);

// The walk over the rows [row0, row1) of a job with a packed panel of `depth` steps from `k0` on. Reads the macros
// A (ComputeSource::load_by_pointer), ROW_OF_A(row), A_STEP (elements of A), START(row) (what a row's sums begin with),
// LINE(row) (where the row begins among the elements of C; rows lie one behind the other), AFTER(x, row, at, count)
// (what becomes of x, the sums of `count` elements of the row from column `at` on, before the epilogue), and K, N,
// column. With `copies` whole tiles have a FINISH_WHOLE for each vector.
std::string packed_rows(const ProductTile& tile, bool copies);
// What ends a tile whose sums are in `sums`, row by row and vector by vector, up to the ends of the job: AFTER and
// FINISH of those that are there. Reads what packed_rows() does, and the variables row and row1.
std::string_view finished_rows();

}  // namespace tenon::opencl
