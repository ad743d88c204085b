// The register tile of products and convolutions, and the text around it.
//
//   for each block of columns of C                      a job, for one work group
//     for each DEPTH steps of the inner extent
//       panel[k][column] = B                            packed into local memory, because every row tile reads it again
//       for each ROWS rows of C                         shared by the group's work items
//         s[row][vector] += A[row][k] * panel[k][vector]
//         after the last step: the epilogue; before: the sums are kept in local memory
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

// C = A * B with A of m x k, B of k x n; extents known only to a run are nullopt.
struct ProductExtents {
  std::optional<int64_t> m, n, k;
};

struct ProductTile {
  int rows = 1;            // of A, one element at a time each
  int vectors = 1;         // of columns
  int lanes = 1;           // of a vector
  int64_t depth = 0;       // 0: nothing is packed
  int64_t block_rows = 0;  // rows whose sums fit into local memory
  int64_t columns() const { return int64_t{vectors} * lanes; }
  bool packs() const { return depth > 0; }
};

// The lanes of a vector of `work`.
int lanes_of(ElementType work, const ComputeTarget& target);

// From the target's numbers (ComputeTarget::tiling): chooses rows and vectors so that little of them is wasted for m
// and n. Packs where several row tiles read the panel.
ProductTile choose_tile(const ProductExtents& extents, ElementType work, const ComputeTarget& target);

// Cycles of one useful vector multiply-add, including shares of wasted ones and of loads.
double cycles_of(const ProductTile& tile, const ProductExtents& extents);

// Further candidates for a measured search.
std::vector<Tiling> other_tilings(const Tiling& tiling);

// How jobs divide rows: the device's units should finish at about the same time, with few panels packed twice.
// `other_jobs`: for one block of rows; `waits`: the inner extent has several panels, between which sums are stored.
struct RowBlocks {
  int64_t rows = 1, blocks = 1;
};
RowBlocks row_blocks(const ProductTile& tile, int64_t m, int64_t other_jobs, bool waits, const ComputeTarget& target);

// Defines ROWS, VECTORS, LANES, COLUMNS, T, TV, MULTIPLY_ADD, and if the tile packs, DEPTH, PANEL(k, v) and
// PARTIAL(row, v), with their memory.
void define_tile(ComputeSource& source, const ProductTile& tile, ElementType work);

// Defines IV, vectors of integers as wide as `work`, and LANE_NUMBERS: 0, 1 ...
void define_lane_numbers(ComputeSource& source, int lanes, ElementType work);

// Defines TRANSPOSE(t): transposes LANES vectors t[i] of LANES elements.
void define_transpose(ComputeSource& source, int lanes);

// The head of the loop over k, up to its brace, as two nested loops. Compilers estimate by the depth of loops which
// values need registers, and otherwise gave those of sums to constants of the packing, whose loops are as deep.
std::string each_step(std::string_view steps);

// Processes the rows [row0, row1) of a job with a packed panel of `depth` steps from `k0` on. Uses the macros A
// (ComputeSource::load_by_pointer), ROW_OF_A(row), A_STEP (elements of A), START(row) (initial value of a row's sums),
// LINE(row) (begin of the row among the elements of C; rows are contiguous), AFTER(x, row, at, count) (what is done
// with x, the sums of `count` elements of the row from column `at` on, before the epilogue), and K, N, column. With
// `copies`, whole tiles have a FINISH_WHOLE for each vector.
std::string packed_rows(const ProductTile& tile, bool copies);
// The end of a tile whose sums are in `sums`, row by row and vector by vector: AFTER and FINISH of those within the
// job. Uses what packed_rows() uses, and the variables row and row1.
std::string_view finished_rows();

}  // namespace tenon::opencl
