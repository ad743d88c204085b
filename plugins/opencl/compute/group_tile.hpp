// The tile of products and convolutions that a work group of several items computes together:
//
//   a job has BLOCK_ROWS x COLUMNS of C; its items stand in a grid of DOWN x ACROSS
//     for each DEPTH steps of the inner extent
//       panels[step][row], [step][column] = A, B        by all items, neighbours from neighbouring addresses, whichever
//                                                       way an operand lies; into local memory
//       s[row][vector] += A * B                         of each item ROWS x VECTORS * LANES sums, in registers
//
// The panels of the next steps are fetched into registers while these are multiplied, where there are registers.
//
// Items have vectors, not single columns, and vectors of rows: those of a grid's row lie side by side, so that
// neighbours read neighbouring vectors of the panel of B and the same of the panel of A, and store neighbours. Rows of
// panels are an odd number of vectors long: what neighbours along the inner extent store falls into different banks.
#pragma once
#include "opencl/compute/tile.hpp"

namespace tenon::opencl {

// The largest power of two up to x; at least 1.
int64_t floor2(int64_t x);

struct GroupTile {
  int rows = 1, vectors = 1, lanes = 1;  // of an item: rows by vectors of columns
  int across = 1, down = 1;              // items; what the group has beyond their product helps to fetch only
  int64_t group = 1;                     // items of the work group
  int64_t depth = 1;                     // steps of a panel, a power of two
  bool ahead = false;                    // are the next panels fetched while these are multiplied?

  // Of vectors of rows, which an item reads from the panel of A.
  int row_lanes() const { return rows % 4 == 0 ? 4 : rows % 2 == 0 ? 2 : 1; }
  int64_t block_rows() const { return int64_t{rows} * down; }
  int64_t columns() const { return int64_t{vectors} * lanes * across; }
  // Elements from step to step in the panels.
  int64_t a_pitch() const;
  int64_t b_pitch() const;
  // Elements behind each panel, a place for each item: for what it has to store in none.
  int64_t spare() const;
  int64_t local_bytes(ElementType work) const;
  // Jobs for so many matrices.
  int64_t jobs(int64_t m, int64_t n, int64_t matrices) const;
};

// Are products and convolutions for work groups made in this form?
bool works_in_groups(const ComputeTarget& target);

// By the target's numbers (Tiling; local memory, units, work group) and the extents that are known, so that few rows
// and columns are of no use and the units have enough to do. `matrices`: as far as known. `of_fetched`: what an element
// that is fetched takes, in multiply-adds: a load, a store, their addresses.
GroupTile choose_group_tile(const ProductExtents& extents, int64_t matrices, ElementType work,
                            const ComputeTarget& target, double of_fetched = 6);
// What a measured search tries besides.
std::vector<Tiling> other_group_tilings(const Tiling& tiling);

// How the items share a panel of `lines` rows or columns. `along`: elements lie side by side along the inner extent.
struct PanelWalk {
  bool along = false;
  int64_t span = 1;    // items that fetch neighbours
  int64_t stride = 1;  // items behind one another across
  int64_t passes = 1;  // over the lines
  int64_t slabs = 1;   // over the steps
  int64_t loads() const { return passes * slabs; }
  static PanelWalk of(const GroupTile& tile, int64_t lines, bool along);
};

// Defines what define_tile() does, BLOCK_ROWS, BLOCK_COLUMNS and what the text below needs, with the
// panels' local memory. `a_along`, `b_along`: how the operands lie.
void define_group_tile(ComputeSource& source, const GroupTile& tile, ElementType work, bool a_along, bool b_along);

// What fetches: expressions of the elements of A in row A_LINE(i) of the block, and of B in column B_LINE(i), at step
// `k`, which is less than K. Those beyond the extents are wanted as well, and may be anything in bounds.
struct GroupPanels {
  std::string_view a, b;
  // Lines that clear `inside` where an element of B is 0.
  std::string_view b_inside;
  // Before panels are fetched, by all items: what these read from local memory for the steps from `from` on.
  std::string_view prepare;
};
// The whole job. Reads the macros START(row), LINE(row), AFTER(x, row, at, count), FINISH, and the variables
// M, N, K, row0, column0, own (the item's number).
std::string group_product_body(const GroupTile& tile, const GroupPanels& panels, bool copies);

}  // namespace tenon::opencl
