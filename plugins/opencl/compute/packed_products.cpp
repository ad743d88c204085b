// Products with panels of B packed in local memory (tile.hpp).
#include <tenon/support/str.hpp>

#include "opencl/compute/product_forms.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kPackedPanels = R"(
    for (long k0 = 0; k0 == 0 || k0 < K; k0 += DEPTH) {
    const long depth = min((long)DEPTH, K - k0);
)";
constexpr std::string_view kPack = R"(
    for (long k = LOCAL_ID; k < depth; k += LOCAL_SIZE)
      for (int v = 0; v < VECTORS; ++v) {
        const long first = column + v * LANES, from = b_at + (k0 + k) * b_step + first * b_column;
        if (b_column == 1 && first + LANES <= N) {
          PANEL(k, v) = BV(from);
        } else {
          T some[LANES];
          for (int c = 0; c < LANES; ++c) some[c] = first + c < N ? B(from + c * b_column) : (T)0;
          PANEL(k, v) = VLOAD(0, some);
        }
      }
    SYNC;
)";
// B is contiguous along the inner extent: transposes squares of LANES steps by LANES columns.
constexpr std::string_view kPackTransposed = R"(
    for (long k = LOCAL_ID * LANES; k < depth; k += LOCAL_SIZE * LANES)
      for (int v = 0; v < VECTORS; ++v) {
        const int steps = (int)min((long)LANES, depth - k);
        TV square[LANES];
        for (int c = 0; c < LANES; ++c) {
          const long from = b_at + min(column + v * LANES + c, N - 1) * b_column + k0 + k;
          if (steps == LANES) {
            square[c] = BV(from);
          } else {
            T some[LANES];
            for (int i = 0; i < LANES; ++i) some[i] = B(from + min(i, steps - 1));
            square[c] = VLOAD(0, some);
          }
        }
        TRANSPOSE(square);
        for (int i = 0; i < LANES; ++i)
          if (i < steps) PANEL(k + i, v) = square[i];
      }
    SYNC;
)";

}  // namespace

std::string packed_product_body(const ProductTile& tile, const Product& product, const Epilogue& epilogue) {
  return str(kPackedPanels, product.trans_b ? kPackTransposed : kPack, packed_rows(tile, is_short(epilogue)),
             "    SYNC;\n    }\n");
}

}  // namespace tenon::opencl
