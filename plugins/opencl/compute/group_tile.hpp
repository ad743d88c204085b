// The tile of products and convolutions that a work group of several items computes together:
//
//   a job has BLOCK_ROWS x COLUMNS of C; its items form a grid of DOWN x ACROSS
//     for each DEPTH steps of the inner extent
//       panels[step][row], [step][column] = A, B        loaded into local memory by all items, adjacent ones from
//                                                       adjacent addresses, whichever way an operand is laid out
//       s[row][vector] += A * B                         each item has ROWS x VECTORS * LANES sums, in registers
//
// The panels of the next steps are prefetched into registers while the current ones are multiplied, if registers
// suffice.
//
// Items have vectors of columns, not single columns, and vectors of rows. Items in one row of the grid have adjacent
// vectors, so that adjacent items read adjacent vectors of the panel of B and the same elements of the panel of A, and
// store adjacent results. Rows of panels are an odd number of vectors long, so that stores along the inner extent cause
// no bank conflicts.
#pragma once
#include "opencl/compute/tile.hpp"

namespace tenon::opencl {

// The largest power of two that is at most x; at least 1.
int64_t floor2(int64_t x);

struct GroupTile {
  int rows = 1, vectors = 1, lanes = 1;  // of an item: rows by vectors of columns
  int across = 1, down = 1;              // items of the grid; the group's other items only load
  int64_t group = 1;                     // items of the work group
  int64_t depth = 1;                     // steps of a panel, a power of two
  bool ahead = false;                    // prefetches the next panels while the current ones are multiplied

  // Lanes of the vectors of rows that an item reads from the panel of A.
  int row_lanes() const { return rows % 4 == 0 ? 4 : rows % 2 == 0 ? 2 : 1; }
  int64_t block_rows() const { return int64_t{rows} * down; }
  int64_t columns() const { return int64_t{vectors} * lanes * across; }
  // Distance in elements from one step to the next in the panels.
  int64_t a_pitch() const;
  int64_t b_pitch() const;
  // Elements after each panel, one for each item, as targets of stores to be discarded.
  int64_t spare() const;
  int64_t local_bytes(ElementType work) const;
  // Jobs for `matrices` matrices.
  int64_t jobs(int64_t m, int64_t n, int64_t matrices) const;
};

// Whether products and convolutions for work groups use this form.
bool works_in_groups(const ComputeTarget& target);

// From the target's numbers (Tiling; local memory, units, work group) and the known extents: few rows and columns are
// wasted, and all units have work. `matrices`: as far as known. `of_fetched`: the cost of loading an element, in
// multiply-adds: a load, a store, and their addresses.
GroupTile choose_group_tile(const ProductExtents& extents, int64_t matrices, ElementType work,
                            const ComputeTarget& target, double of_fetched = 6);
// Further candidates for a measured search.
std::vector<Tiling> other_group_tilings(const Tiling& tiling);

// How the items share a panel of `lines` rows or columns. `along`: elements are contiguous along the inner extent.
struct PanelWalk {
  bool along = false;
  int64_t span = 1;    // items that load adjacent elements
  int64_t stride = 1;  // items in the other direction
  int64_t passes = 1;  // over the lines
  int64_t slabs = 1;   // over the steps
  int64_t loads() const { return passes * slabs; }
  static PanelWalk of(const GroupTile& tile, int64_t lines, bool along);
};

// Defines everything that define_tile() defines, BLOCK_ROWS, BLOCK_COLUMNS and what the text below needs, with the
// local memory of the panels. `a_along`, `b_along`: the layouts of the operands.
void define_group_tile(ComputeSource& source, const GroupTile& tile, ElementType work, bool a_along, bool b_along);

// Texts for loading: expressions for the elements of A in row A_LINE(i) of the block, and of B in column B_LINE(i), at
// step `k`, which is less than K. They are also evaluated beyond the extents, where any element within bounds will do.
struct GroupPanels {
  std::string_view a, b;
  // Lines that clear `inside` where an element of B is 0.
  std::string_view b_inside;
  // Executed by all items before panels are loaded: stores to local memory what the loads of the steps from `from` on
  // need.
  std::string_view prepare;
};
// The text of a job. Uses the macros START(row), LINE(row), AFTER(x, row, at, count), FINISH, and the variables M, N,
// K, row0, column0, own (the item's number).
std::string group_product_body(const GroupTile& tile, const GroupPanels& panels, bool copies);

}  // namespace tenon::opencl
