// Products of few rows for work groups: the items share the inner extent, in slices, and reduce in sub-groups and in
// local memory. Every element of B is read once, so nothing is packed. What matters is that adjacent items read
// adjacent elements, of many rows or columns of B at once.
//
//   B by its rows           items ACROSS x SLICES: adjacent items have adjacent vectors of columns of a row of B
//   B by its columns        items SLICES x ACROSS: adjacent items have adjacent vectors of steps of a column of B
//   (transposed)
#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/compute/group_tile.hpp"
#include "opencl/compute/product_forms.hpp"
#include "opencl/compute/slice_folds.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr int64_t kMostSliceRows = 8;

struct SliceTile {
  int rows = 1, lanes = 1, chains = 1;  // chains: columns of B that an item reads at once where B is stored by columns
  int64_t across = 1, slices = 1;       // items for vectors of columns, and for each vector
  int64_t columns() const { return across * lanes; }
};

// Computes `own`, `across` and `slice` of an item; items beyond all slices are idle.
constexpr std::string_view kSliceJob = R"(
    const int own = OWN, slice = SLICE_OF(own), across = ACROSS_OF(own);
    const long M = n[0], N = n[1], K = n[2], row_blocks = (M + ROWS - 1) / ROWS;
    const long column_blocks = (N + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    const long row0 = item % row_blocks * ROWS, column0 = item / row_blocks % column_blocks * BLOCK_COLUMNS;
    const long batch = item / row_blocks / column_blocks;
    const long a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];
)";

constexpr std::string_view kSliceRows = R"(
    long rows[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row0 + r, M - 1) * a_row;
)";

// A whole vector of columns at a time; at the end of B's rows element by element.
constexpr std::string_view kByRows = R"(
    const long first = column0 + across * LANES;
    TV sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = (TV)0;
    if (slice < SLICES && first + LANES <= N) {
#pragma unroll 4
      for (long k = slice; k < K; k += SLICES) {
        const TV b = BV(b_at + k * b_step + first);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[r] = MULTIPLY_ADD((TV)A(rows[r] + k * A_STEP), b, sums[r]);
      }
    } else if (slice < SLICES && first < N) {
      for (long k = slice; k < K; k += SLICES) {
        T some[LANES];
        for (int c = 0; c < LANES; ++c) some[c] = B(b_at + k * b_step + min(first + c, N - 1));
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[r] = MULTIPLY_ADD((TV)A(rows[r] + k * A_STEP), VLOAD(0, some), sums[r]);
      }
    }
)";

// Several columns at a time; their vectors of steps are summed at the end.
constexpr std::string_view kByColumns = R"(
    for (int c = 0; c < LANES; c += CHAINS) {
      T found[ROWS * CHAINS];
      long from[CHAINS];
      TV sums[ROWS * CHAINS];
#pragma unroll
      for (int i = 0; i < CHAINS; ++i) from[i] = b_at + min(column0 + across * LANES + c + i, N - 1) * b_column;
#pragma unroll
      for (int i = 0; i < ROWS * CHAINS; ++i) sums[i] = (TV)0, found[i] = (T)0;
      long whole = K / LANES * LANES;
      if (slice < SLICES && across < ACROSS) {
#pragma unroll 2
        for (long k = slice * LANES; k < whole; k += SLICES * LANES) {
          TV b[CHAINS];
#pragma unroll
          for (int i = 0; i < CHAINS; ++i) b[i] = BV(from[i] + k);
#pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            const TV a = STEPS_OF_A(rows[r], k);
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) sums[r * CHAINS + i] = MULTIPLY_ADD(a, b[i], sums[r * CHAINS + i]);
          }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
          for (int i = 0; i < CHAINS; ++i) {
            T sum = SUM_OF(sums[r * CHAINS + i]);
            for (long k = whole + slice; k < K; k += SLICES) sum += A(rows[r] + k * A_STEP) * B(from[i] + k);
            found[r * CHAINS + i] = sum;
          }
      }
)";
constexpr std::string_view kColumnsOfParts = R"(
      for (int i = own; i < ROWS * CHAINS * ACROSS; i += LOCAL_SIZE) {
        const int row = i / (CHAINS * ACROSS), chain = i / ACROSS % CHAINS, vector = i % ACROSS;
        const __local T* of = pieces + ((row * CHAINS + chain) * ACROSS + vector) * SLICES;
        T sum = of[0];
        for (int piece = 1; piece < SLICES / together; ++piece) sum += of[piece];
        ((__local T*)parts)[(row * ACROSS + vector) * LANES + c + chain] = sum;
      }
      SYNC;
    }
)";

constexpr std::string_view kSliceFinish = R"(
    for (int i = own; i < ROWS * ACROSS; i += LOCAL_SIZE) {
      const long row = row0 + i / ACROSS, at = column0 + i % ACROSS * LANES;
      if (row < M && at < N) {
        const int count = (int)min((long)LANES, N - at);
        const long line = LINE(row) + at;
        PLACE(place, line);
        TV x = parts[SUMS_AT(i / ACROSS, i % ACROSS)];
        AFTER(x, row, at, count);
        FINISH(place, line, 0, count, x);
      }
    }
    SYNC;
)";

// Vectors of columns side by side: 16, or fewer where the units would have too few jobs, but at least as many as one
// memory transaction covers.
int64_t across_of(const Product& product, int lanes, const ComputeTarget& target) {
  constexpr int64_t kMost = 16, kLeast = 4, kJobsOfUnit = 4;
  int64_t across = std::min(kMost, floor2(target.work_group));
  const auto jobs = [&] { return product.extents.n.value_or(1 << 20) / (across * lanes) * product.matrices; };
  while (across > kLeast && jobs() < kJobsOfUnit * target.compute_units) across /= 2;
  return across;
}

// Vectors of steps side by side: as many as leave each item several, and at least as many as one memory transaction
// covers.
int64_t slices_of(const Product& product, int lanes, const ComputeTarget& target) {
  constexpr int64_t kLeast = 8, kVectorsOfItem = 4;
  const int64_t most = floor2(target.work_group);
  if (!product.extents.k) return most;
  return std::clamp(floor2(*product.extents.k / (lanes * kVectorsOfItem)), std::min(kLeast, most), most);
}

SliceTile choose_slices(const Product& product, const ComputeTarget& target) {
  SliceTile tile;
  tile.lanes = lanes_of(product.work, target);
  tile.rows = static_cast<int>(*product.extents.m);
  if (product.trans_b) {
    constexpr int kMostChains = 4, kMostSums = 16;
    tile.chains = std::min({kMostChains, tile.lanes, static_cast<int>(floor2(kMostSums / tile.rows))});
    tile.slices = slices_of(product, tile.lanes, target);
    tile.across = floor2(target.work_group / tile.slices);
  } else {
    tile.across = across_of(product, tile.lanes, target);
    tile.slices = floor2(target.work_group / tile.across);
  }
  return tile;
}

// Local memory: vectors of all items or the sums, and elements of all items.
int64_t vectors_of(const SliceTile& tile, bool by_columns) {
  return tile.rows * tile.across * (by_columns ? 1 : tile.slices);
}
int64_t pieces_of(const SliceTile& tile) { return tile.rows * tile.chains * tile.slices * tile.across; }

void define_slices(ComputeSource& source, const SliceTile& tile, const Product& product, const ComputeTarget& target) {
  const bool by_columns = product.trans_b;
  define_tile(source, {.rows = tile.rows, .vectors = 1, .lanes = tile.lanes}, product.work);
  source.define("BLOCK_COLUMNS", tile.columns());
  source.define("ACROSS", tile.across);
  source.define("SLICES", tile.slices);
  source.local(str("  __local TV parts[", vectors_of(tile, by_columns), "];\n"));
  source.of_group();
  define_slice_fold(source, slice_fold_of(by_columns, target), by_columns ? 1 : tile.across, tile.lanes);
  if (!by_columns) {
    source.define("SLICE_OF(own)", "((own) / ACROSS)");
    source.define("ACROSS_OF(own)", "((own) % ACROSS)");
    source.define("SUMS_AT(row, vector)", "((row) * (SLICES * ACROSS) + (vector))");
    return;
  }
  source.define("SLICE_OF(own)", "((own) % SLICES)");
  source.define("ACROSS_OF(own)", "((own) / SLICES)");
  source.define("SUMS_AT(row, vector)", "((row) * ACROSS + (vector))");
  source.define("CHAINS", tile.chains);
  source.local(str("  __local T pieces[", pieces_of(tile), "];\n"));
  define_sum_of_lanes(source, tile.lanes, product.work);
  std::string elements;
  for (int lane = 0; lane < tile.lanes; ++lane)
    elements += str(lane ? ", " : "", "A((from) + ((k) + ", lane, ") * A_STEP)");
  source.define("STEPS_OF_A(from, k)", product.trans_a ? str("(TV)(", elements, ")") : "AV((from) + (k))");
}

}  // namespace

std::optional<Result<ComputeKernel>> make_slice_product(const irgen::KernelRequest& request,
                                                        const ComputeTarget& target, const Epilogue& epilogue,
                                                        const Product& product) {
  if (product.extents.m.value_or(0) < 1 || *product.extents.m > kMostSliceRows) return std::nullopt;
  const SliceTile tile = choose_slices(product, target);
  const int64_t elements = vectors_of(tile, product.trans_b) * tile.lanes + (product.trans_b ? pieces_of(tile) : 0);
  if (elements * static_cast<int64_t>(product.work.bits() / 8) > target.local_bytes) return std::nullopt;
  ComputeSource source(request, target);
  define_terms(source, product, tile.lanes);
  define_slices(source, tile, product, target);
  define_operands(source, product, tile.lanes, epilogue);
  const std::string_view fold = slice_fold_text(product.trans_b, slice_fold_of(product.trans_b, target));
  const std::string sums = product.trans_b ? str(kByColumns, fold, kColumnsOfParts) : str(kByRows, fold);
  return source.kernel(str(kSliceJob, kOuterOffsets, kSliceRows, sums, kSliceFinish),
                       [tile, sides = product.sides](const CallShapes& shapes) -> Result<ComputeLaunch> {
                         const ProductSides s = sides(shapes);
                         const int64_t blocks = (s.m + tile.rows - 1) / tile.rows;
                         const int64_t columns = (s.n + tile.columns() - 1) / tile.columns();
                         return ComputeLaunch{s.numbers(), s.matrices() * blocks * columns};
                       });
}

}  // namespace tenon::opencl
