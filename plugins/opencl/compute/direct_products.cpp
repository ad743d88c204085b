// Products whose second factor is read in place: for few rows, or without local memory.
#include <tenon/support/str.hpp>

#include "opencl/compute/product_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// B is read in place. Where it is contiguous along the inner extent (transposed), several steps at a time.
constexpr std::string_view kDirect = R"(
    for (long row = row0; row < row1; row += ROWS) {
    long rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row + r, M - 1) * a_row;
    TV sums[ROWS * VECTORS];
    for (int i = 0; i < ROWS * VECTORS; ++i) sums[i] = (TV)0;
)";
// Whole rows of the block's columns at a time, in memory order.
constexpr std::string_view kDirectRows = R"(
    if (column + COLUMNS <= N) {
      for (long k = 0; k < K; ++k) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          const TV a = (TV)A(rows[r] + k * A_STEP);
#pragma unroll
          for (int v = 0; v < VECTORS; ++v)
            sums[r * VECTORS + v] = MULTIPLY_ADD(a, BV(b_at + k * b_step + column + v * LANES), sums[r * VECTORS + v]);
        }
      }
    } else
)";
// Several columns at a time, so that there are independent dependency chains.
constexpr std::string_view kDirectColumns = R"(
    if (A_STEP == 1) {
      T some[ROWS * VECTORS * LANES];
      for (int c = 0; c < COLUMNS; c += CHAINS) {
        long from[CHAINS];
        TV lanes[ROWS * CHAINS];
#pragma unroll
        for (int i = 0; i < CHAINS; ++i) from[i] = b_at + min(column + c + i, N - 1) * b_column;
#pragma unroll
        for (int i = 0; i < ROWS * CHAINS; ++i) lanes[i] = (TV)0;
        long k = 0;
        for (; k + LANES <= K; k += LANES)
#pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            const TV a = AV(rows[r] + k);
#pragma unroll
            for (int i = 0; i < CHAINS; ++i)
              lanes[r * CHAINS + i] = MULTIPLY_ADD(a, BV(from[i] + k), lanes[r * CHAINS + i]);
          }
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
          for (int i = 0; i < CHAINS; ++i) {
            T sum = SUM_OF(lanes[r * CHAINS + i]);
            for (long rest = k; rest < K; ++rest) sum += A(rows[r] + rest) * B(from[i] + rest);
            some[r * COLUMNS + c + i] = sum;
          }
      }
      for (int i = 0; i < ROWS * VECTORS; ++i) sums[i] = VLOAD(i, some);
    } else
)";
constexpr std::string_view kDirectEach = R"(
      for (long k = 0; k < K; ++k)
        for (int v = 0; v < VECTORS; ++v) {
          T b[LANES];
          for (int c = 0; c < LANES; ++c)
            b[c] = B(b_at + k * b_step + min(column + v * LANES + c, N - 1) * b_column);
          for (int r = 0; r < ROWS; ++r)
            sums[r * VECTORS + v] = MULTIPLY_ADD((TV)A(rows[r] + k * A_STEP), VLOAD(0, b), sums[r * VECTORS + v]);
        }
)";

}  // namespace

void define_sum_of_lanes(ComputeSource& source, int lanes, ElementType work) {
  source.functions(lanes_function("sum_of", "+", work, lanes));
  source.define("SUM_OF(x)", "sum_of(x)");
}

std::string direct_product_body(const Product& product) {
  return str(kDirect, product.trans_b ? kDirectColumns : kDirectRows, kDirectEach, finished_rows(), "    }\n");
}

}  // namespace tenon::opencl
