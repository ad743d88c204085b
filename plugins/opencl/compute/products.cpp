// MatMul, Gemm and their integer forms, by tiles of registers (tile.hpp).
#include <cmath>

#include <tenon/ops/matmul.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/tile.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 M, 1 N, 2 K, 3 and 4 elements of A from row to row and step to step, 5 and 6 of B from step to step and
// column to column, 7 and 8 of C from row to row and column to column, 9 rows of a job, 10 outer dims, then extent,
// stride of A, stride of B for each.
constexpr int kOuterDims = 10;
constexpr std::string_view kHead = R"(
    const long M = n[0], N = n[1], K = n[2], a_row = n[3], b_step = n[5], b_column = n[6], job_rows = n[9];
    const long row_blocks = (M + job_rows - 1) / job_rows, column_blocks = (N + COLUMNS - 1) / COLUMNS;
    const long row0 = item % row_blocks * job_rows, row1 = min(M, row0 + job_rows);
    // The last block of columns is moved back to be a whole one: what two of them have is the same.
    const long column = min(item / row_blocks % column_blocks * COLUMNS, max(N - COLUMNS, 0l));
    const long batch = item / row_blocks / column_blocks;
    long a_at = 0, b_at = 0, outer = batch;
    for (long d = n[10] - 1; d >= 0; --d) {
      const long index = outer % n[11 + 3 * d];
      outer /= n[11 + 3 * d];
      a_at += index * n[12 + 3 * d];
      b_at += index * n[13 + 3 * d];
    }
)";

constexpr std::string_view kPanels = R"(
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
// B lies along the inner extent: squares of LANES steps by as many columns.
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

// Few rows: B is read where it lies. Where it lies along the inner extent (transposed), so many steps at a time.
constexpr std::string_view kDirect = R"(
    for (long row = row0; row < row1; row += ROWS) {
    long rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row + r, M - 1) * a_row;
    TV sums[ROWS * VECTORS];
    for (int i = 0; i < ROWS * VECTORS; ++i) sums[i] = (TV)0;
)";
// Whole rows of the block's columns at a time, which memory likes.
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
// Some columns at a time, so that their sums do not wait for each other.
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
            for (int i = 0; i < CHAINS; ++i) lanes[r * CHAINS + i] = MULTIPLY_ADD(a, BV(from[i] + k), lanes[r * CHAINS + i]);
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
    for (int r = 0; r < ROWS && row + r < row1; ++r) {
    const long line = LINE(row + r) + column;
    PLACE(place, line);
    for (int part = 0; part < VECTORS; ++part) {
      const long at = column + part * LANES;
      const int count = (int)min((long)LANES, N - at);
      if (count <= 0) break;
      TV x = sums[r * VECTORS + part];
      AFTER(x, row + r, at, count);
      FINISH(place, line, part * LANES, count, x);
    }
    }
    }
)";

// alpha times the sums x, plus beta times elements of C.
constexpr std::string_view kAddC = R"(
TV tenon_add_c(const TV x, const long row, const long at, const int count, __global const long* n, __global const uchar* a2) {
  TV c;
  if (n[8] == 0) {
    c = (TV)C(row * n[7]);
  } else if (count == LANES) {
    c = CV(row * n[7] + at);
  } else {
    T some[LANES];
    for (int i = 0; i < LANES; ++i) some[i] = C(row * n[7] + at + min(i, count - 1));
    c = VLOAD(0, some);
  }
  return (T)ALPHA * x + (T)BETA * c;
}
)";

struct Sides {
  int64_t m = 1, n = 1, k = 1, a_row = 0, a_step = 1, b_step = 1, b_column = 1, c_row = 0, c_column = 0;
  Dims batch, a_strides, b_strides;

  ComputeLaunch launch(const ProductTile& tile, const ComputeTarget& target) const {
    ComputeLaunch made{{m, n, k, a_row, a_step, b_step, b_column, c_row, c_column, 0, int64_t(batch.size())}, 1};
    for (size_t d = 0; d < batch.size(); ++d) {
      made.numbers.insert(made.numbers.end(), {batch[d], a_strides[d], b_strides[d]});
      made.items *= batch[d];
    }
    made.items *= (n + tile.columns() - 1) / tile.columns();
    const RowBlocks blocks = row_blocks(tile, m, made.items, tile.packs() && k > tile.depth, target);
    made.numbers[kOuterDims - 1] = blocks.rows;
    made.items *= m == 0 ? 0 : blocks.blocks;
    return made;
  }
};

// Elements from one outer index to the next, 0 where the operand has extent 1 and is repeated.
Dims outer_strides(const Dims& dims, size_t outer, const Dims& batch) {
  Dims strides(batch.size(), 0);
  int64_t stride = 1;
  for (size_t d = outer; d < dims.size(); ++d) stride *= dims[d];
  for (size_t i = 0; i < outer; ++i) {
    const size_t from = outer - 1 - i, to = batch.size() - 1 - i;
    if (dims[from] != 1) strides[to] = stride;
    stride *= dims[from];
  }
  return strides;
}

Sides matmul_sides(const Dims& a, const Dims& b, const Dims& y) {
  Sides s;
  const bool row = a.size() == 1, column = b.size() == 1;
  s.k = a.back();
  s.m = row ? 1 : a[a.size() - 2];
  s.n = column ? 1 : b.back();
  s.a_row = s.k;
  s.b_step = s.n;
  const size_t outer = y.size() - (row ? 0 : 1) - (column ? 0 : 1);
  s.batch.assign(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(outer));
  s.a_strides = outer_strides(a, row ? 0 : a.size() - 2, s.batch);
  s.b_strides = outer_strides(b, column ? 0 : b.size() - 2, s.batch);
  return s;
}

std::optional<int64_t> last_dim(const Type& type, size_t from_end) {
  const auto dims = type.shape().static_dims();
  if (!dims) return std::nullopt;
  return from_end < dims->size() ? (*dims)[dims->size() - 1 - from_end] : 1;
}

// SUM_OF(x): the sum of a vector's elements, by halves.
void define_sum_of_lanes(ComputeSource& source, int lanes, ElementType work) {
  std::string text = str("T tenon_sum(TV x) {\n");
  std::string from = "x";
  for (int half = lanes / 2; half > 0; half /= 2) {
    const std::string type = half > 1 ? lanes_name(work, half) : std::string(scalar_name(work)), to = str("x", half);
    text += str("  const ", type, " ", to, " = ", from, ".lo + ", from, ".hi;\n");
    from = to;
  }
  source.functions(str(text, "  return ", from, ";\n}\n"));
  source.define("SUM_OF(x)", "tenon_sum(x)");
}

// The source of a product of operands 0 and 1 as `tile` has it.
std::string product_body(const ProductTile& tile, bool transposed, const Epilogue& epilogue) {
  if (!tile.packs()) return str(kHead, kDirect, transposed ? kDirectColumns : kDirectRows, kDirectEach);
  return str(kHead, kPanels, transposed ? kPackTransposed : kPack, packed_rows(tile, is_short(epilogue)),
             "    SYNC;\n    }\n");
}

// Where nothing is packed, more columns at a time: long stretches of B's rows.
ProductTile product_tile(const ProductExtents& extents, ElementType work, const ComputeTarget& target) {
  ProductTile tile = choose_tile(extents, work, target);
  constexpr int kMostVectors = 8;
  if (tile.packs() || target.tiling.exact) return tile;
  const int most = std::min(kMostVectors, target.tiling.registers / tile.rows);
  const int64_t jobs = 2 * target.compute_units;
  while (2 * tile.vectors <= most && (!extents.n || *extents.n >= 2 * tile.columns() * jobs)) tile.vectors *= 2;
  return tile;
}

void define_product(ComputeSource& source, ElementType work, const ProductTile& tile, bool transposed,
                    const Epilogue& epilogue) {
  source.vectors_of(tile.lanes);
  define_tile(source, tile, work);
  if (transposed) {
    constexpr int kMostChains = 4;
    define_transpose(source, tile.lanes);
    define_sum_of_lanes(source, tile.lanes, work);
    source.define("CHAINS", tile.rows > kMostChains ? 1 : kMostChains);
  }
  source.define("ROW_OF_A(row)", "(a_at + (row) * a_row)");
  source.define("START(row)", "0");
  source.define("LINE(row)", "((batch * M + (row)) * N)");
  source.load("A", 0, work);
  source.load_by_pointer("A", 0, work);
  source.load("B", 1, work);
  source.finish(epilogue, tile.lanes);
  if (tile.packs()) source.of_group();
}

Result<ComputeKernel> make_matmul(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const ElementType work = work_type_of(request.operands[0].element());
  const Type &a = request.operands[0], &b = request.operands[1];
  const bool row = a.shape().ranked() && a.shape().rank() == 1, column = b.shape().ranked() && b.shape().rank() == 1;
  const ProductTile tile =
      product_tile({row ? 1 : last_dim(a, 1), column ? 1 : last_dim(b, 0), last_dim(a, 0)}, work, target);
  ComputeSource source(request, target);
  source.define("A_STEP", 1);
  source.define("AFTER(x, row, at, count)", "(void)0");
  define_product(source, work, tile, false, epilogue);
  return source.kernel(
      product_body(tile, false, epilogue), [tile, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
        return matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]).launch(tile, target);
      });
}

Sides gemm_sides(const Gemm& op, const CallShapes& shapes) {
  const Dims &a = shapes.operands[0], &b = shapes.operands[1], &y = shapes.results[0];
  Sides s;
  s.m = y[0], s.n = y[1], s.k = op.trans_a() ? a[0] : a[1];
  s.a_row = op.trans_a() ? 1 : a[1], s.a_step = op.trans_a() ? a[1] : 1;
  s.b_step = op.trans_b() ? 1 : b[1], s.b_column = op.trans_b() ? b[1] : 1;
  if (!op.c()) return s;
  const Dims& c = shapes.operands[2];
  const int64_t columns = c.empty() ? 1 : c.back(), c_rows = c.size() == 2 ? c[0] : 1;
  s.c_column = columns == 1 ? 0 : 1, s.c_row = c_rows == 1 ? 0 : columns;
  return s;
}

Result<ComputeKernel> make_gemm(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const Gemm op(const_cast<Op&>(request.op));
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  const auto factor = [&](std::string_view name, float value) {
    if (work.is_float())
      source.define_float(name, value);
    else
      source.define(name, static_cast<int64_t>(value));
  };
  if (!work.is_float() && (op.alpha() != std::floor(op.alpha()) || op.beta() != std::floor(op.beta())))
    return error(Code::unsupported, "alpha and beta of integers are whole on the device");
  const Type &a = request.operands[0], &y = request.results[0];
  const ProductTile tile =
      product_tile({last_dim(y, 1), last_dim(y, 0), last_dim(a, op.trans_a() ? 1 : 0)}, work, target);
  source.define("A_STEP", op.trans_a() ? "n[4]" : "1");
  define_product(source, work, tile, op.trans_b(), epilogue);
  factor("ALPHA", op.alpha());
  factor("BETA", op.beta());
  if (op.c()) {
    source.load("C", 2, work);
    source.functions(kAddC);
    source.define("AFTER(x, row, at, count)", "x = tenon_add_c(x, row, at, count, n, a2)");
  } else {
    source.define("AFTER(x, row, at, count)", op.alpha() == 1 ? "(void)0" : "x = (T)ALPHA * x");
  }
  return source.kernel(product_body(tile, op.trans_b(), epilogue),
                       [op, tile, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
                         return gemm_sides(op, shapes).launch(tile, target);
                       });
}

// One element an item: bytes in i32, whose products need no tiles to be few.
constexpr std::string_view kIntegerBody = R"(
    const long M = n[0], N = n[1], K = n[2], a_row = n[3], b_step = n[5];
    const long column = item % N, row = item / N % M, batch = item / N / M;
    long a_at = row * a_row, b_at = column * n[6], rest = batch;
    for (long d = n[10] - 1; d >= 0; --d) {
      const long index = rest % n[11 + 3 * d];
      rest /= n[11 + 3 * d];
      a_at += index * n[12 + 3 * d];
      b_at += index * n[13 + 3 * d];
    }
    const int a_zero = A_ZERO(batch * M + row), b_zero = B_ZERO(batch * N + column);
    int sum = 0;
    for (long k = 0; k < K; ++k) sum += (A(a_at + k) - a_zero) * (B(b_at + k * b_step) - b_zero);
    Y(item, sum);
)";

Result<ComputeKernel> make_matmul_integer(const KernelRequest& request, const ComputeTarget& target) {
  ComputeSource source(request, target);
  source.load("A", 0, kI32);
  source.load("B", 1, kI32);
  source.store("Y", 0, kI32);
  for (const size_t operand : {size_t{2}, size_t{3}}) {
    const std::string_view name = operand == 2 ? "A_ZERO" : "B_ZERO";
    if (!request.op.operand(operand)) {
      source.define(str(name, "(i)"), 0);
      continue;
    }
    const auto dims = request.operands[operand].shape().static_dims();
    if (!dims || dims->size() > 1) return error(Code::unsupported, "zero points are scalars or vectors on the device");
    const bool one = dims->empty() || dims->front() == 1;
    source.load(str(name, "_OF"), operand, kI32);
    source.define(str(name, "(i)"), one ? str(name, "_OF(0)") : str(name, "_OF((i) % ", dims->front(), ")"));
  }
  return source.kernel(kIntegerBody, [target](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Sides s = matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]);
    ComputeLaunch made = s.launch({}, target);
    made.items = s.m * s.n;
    for (const int64_t extent : s.batch) made.items *= extent;
    return made;
  });
}

constexpr ComputeRow kRows[] = {
    {.op = MatMul::kName, .make_with = make_matmul},
    {.op = Gemm::kName, .make_with = make_gemm},
    {.op = MatMulInteger::kName, .make = make_matmul_integer},
};

}  // namespace

std::span<const ComputeRow> product_rows() { return kRows; }

}  // namespace tenon::opencl
