// Products by blocks of rows and columns for a work group (group_tile.hpp).
#include <tenon/support/str.hpp>

#include "opencl/compute/group_tile.hpp"
#include "opencl/compute/product_forms.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kGroupProductJob = R"(
    const int own = (int)LOCAL_ID;
    const long M = n[0], N = n[1], K = n[2], row_blocks = (M + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const long column_blocks = (N + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    const long row0 = item % row_blocks * BLOCK_ROWS, column0 = item / row_blocks % column_blocks * BLOCK_COLUMNS;
    const long batch = item / row_blocks / column_blocks;
    // Compilers read the table anew behind each barrier.
    const long a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];
)";

constexpr GroupPanels kProductPanels{
    .a = "A(a_at + min(row0 + A_LINE(i), M - 1) * A_ROW + k * A_STEP)",
    .b = "B(b_at + k * B_STEP + min(column0 + B_LINE(i), N - 1) * B_COLUMN)",
    .b_inside = {},
    .prepare = {},
};

}  // namespace

Result<ComputeKernel> make_block_product(const irgen::KernelRequest& request, const ComputeTarget& target,
                                         const Epilogue& epilogue, const Product& product) {
  const GroupTile tile = choose_group_tile(product.extents, product.matrices, product.work, target);
  ComputeSource source(request, target);
  define_terms(source, product, tile.lanes);
  define_group_tile(source, tile, product.work, !product.trans_a, product.trans_b);
  source.define("A_ROW", product.trans_a ? "1" : "a_row");
  source.define("B_STEP", product.trans_b ? "1" : "b_step");
  source.define("B_COLUMN", product.trans_b ? "b_column" : "1");
  source.define("START(row)", "0");
  define_operands(source, product, tile.lanes, epilogue);
  return source.kernel(
      str(kGroupProductJob, kOuterOffsets, group_product_body(tile, kProductPanels, is_short(epilogue))),
      [tile, sides = product.sides](const CallShapes& shapes) -> Result<ComputeLaunch> {
        const ProductSides s = sides(shapes);
        return ComputeLaunch{s.numbers(), tile.jobs(s.m, s.n, s.matrices())};
      });
}

}  // namespace tenon::opencl
