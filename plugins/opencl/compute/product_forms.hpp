// The forms of MatMul and Gemm, and what they share. products.cpp selects the form.
//
//   packed     a panel of B in local memory, rows by vectors of columns in registers (tile.hpp)      CPUs
//   direct     B is read in place: for few rows, or without local memory                             CPUs
//   blocks     panels of A and B that a work group shares (group_tile.hpp)                           work groups
//   slices     for few rows: a work group shares the inner extent (group_slices.cpp)                 work groups
#pragma once
#include <functional>

#include "opencl/compute/tile.hpp"

namespace tenon::opencl {

// C = A * B of m x k and k x n. Strides are in elements: of A and B from row to row (step to step) and from step to
// step (column to column); of Gemm's C, 0 along broadcast dims; for outer dims, those of A and B.
struct ProductSides {
  int64_t m = 1, n = 1, k = 1, a_row = 0, a_step = 1, b_step = 1, b_column = 1, c_row = 0, c_column = 0;
  Dims batch, a_strides, b_strides;

  int64_t matrices() const;
  // n of a launch: 0 M, 1 N, 2 K, 3 and 4 strides of A from row to row and step to step, 5 and 6 of B from step to step
  // and column to column, 7 and 8 of C from row to row and column to column, 9 rows of a job (0: not set), 10 outer
  // dims, then extent, stride of A, stride of B for each.
  std::vector<int64_t> numbers() const;
  // Merges the matrices of a batch with a common B into one matrix of all their rows, where the layout of A and C
  // allows.
  void fold_batch();
  // Transposes a C of one column: C = B^T A^T. Its layout does not change.
  void swap();
};
inline constexpr size_t kJobRows = 9;

// Adds to a_at and b_at, element offsets in A and B, the begin of the matrices of `batch`.
inline constexpr std::string_view kOuterOffsets = R"(    long a_at = 0, b_at = 0, outer = batch;
    for (long d = n[10] - 1; d >= 0; --d) {
      const long index = outer % n[11 + 3 * d];
      outer /= n[11 + 3 * d];
      a_at += index * n[12 + 3 * d];
      b_at += index * n[13 + 3 * d];
    }
)";

// The job of the packed and direct forms.
inline constexpr std::string_view kProductJob = R"(
    const long M = n[0], N = n[1], K = n[2], job_rows = n[9];
    const long a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];
    const long row_blocks = (M + job_rows - 1) / job_rows, column_blocks = (N + COLUMNS - 1) / COLUMNS;
    const long row0 = item % row_blocks * job_rows, row1 = min(M, row0 + job_rows);
    // The last block of columns is moved back to be a whole one: what two of them have is the same.
    const long column = min(item / row_blocks % column_blocks * COLUMNS, max(N - COLUMNS, 0l));
    const long batch = item / row_blocks / column_blocks;
)";

ProductSides matmul_sides(const Dims& a, const Dims& b, const Dims& y);

// A product, as far as the choice of a form needs it.
struct Product {
  ElementType work;        // type of the computation
  ProductExtents extents;  // of one matrix
  int64_t matrices = 1;    // as far as known
  bool trans_a = false;    // A is contiguous from row to row
  bool trans_b = false;    // B is contiguous along the inner extent
  size_t a = 0, b = 1;     // operands
  std::function<ProductSides(const CallShapes&)> sides;
  // Defines AFTER(x, row, at, count): what is done with the sums x of `count` elements of `row` from column `at` on.
  std::function<void(ComputeSource&)> define_after;
};

// Common to all forms: define_terms(), before the tile, defines A_STEP and AFTER; define_operands(), after it, defines
// A and B, with the pointers and vectors that they read, LINE(row), and the epilogue.
void define_terms(ComputeSource& source, const Product& product, int lanes);
void define_operands(ComputeSource& source, const Product& product, int lanes, const Epilogue& epilogue);

// These follow kProductJob and kOuterOffsets.
std::string packed_product_body(const ProductTile& tile, const Product& product, const Epilogue& epilogue);
std::string direct_product_body(const Product& product);
// SUM_OF(x): the sum of a vector's elements, by halving.
void define_sum_of_lanes(ComputeSource& source, int lanes, ElementType work);

// For work groups of several items.
Result<ComputeKernel> make_block_product(const irgen::KernelRequest& request, const ComputeTarget& target,
                                         const Epilogue& epilogue, const Product& product);
// For few rows; nothing where there are more, or only a run knows how many.
std::optional<Result<ComputeKernel>> make_slice_product(const irgen::KernelRequest& request,
                                                        const ComputeTarget& target, const Epilogue& epilogue,
                                                        const Product& product);

Result<ComputeKernel> make_matmul_integer(const irgen::KernelRequest& request, const ComputeTarget& target);

}  // namespace tenon::opencl
