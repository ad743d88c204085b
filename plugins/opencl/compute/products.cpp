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
    const long column = item / row_blocks % column_blocks * COLUMNS;
    const long batch = item / row_blocks / column_blocks;
    long a_at = 0, b_at = 0, outer = batch;
    for (long d = n[10] - 1; d >= 0; --d) {
      const long index = outer % n[11 + 3 * d];
      outer /= n[11 + 3 * d];
      a_at += index * n[12 + 3 * d];
      b_at += index * n[13 + 3 * d];
    }
)";

constexpr std::string_view kPack = R"(
    for (long k0 = 0; k0 == 0 || k0 < K; k0 += DEPTH) {
    const long depth = min((long)DEPTH, K - k0);
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

// Few rows: B is read where it lies. Where it lies along the inner extent (transposed), so many steps at a time.
constexpr std::string_view kDirect = R"(
    for (long row = row0; row < row1; row += ROWS) {
    long rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row + r, M - 1) * a_row;
    for (int part = 0; part < VECTORS; ++part) {
    const long at = column + part * LANES;
    if (at >= N) break;
    TV sums[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = (TV)0;
    if (b_column == 1 && at + LANES <= N) {
      for (long k = 0; k < K; ++k) {
        const TV b = BV(b_at + k * b_step + at);
        for (int r = 0; r < ROWS; ++r) sums[r] = MULTIPLY_ADD((TV)A(rows[r] + k * A_STEP), b, sums[r]);
      }
    } else if (b_step == 1 && A_STEP == 1) {
      T some[ROWS * LANES];
      for (int c = 0; c < LANES; ++c) {
        const long b_from = b_at + min(at + c, N - 1) * b_column;
        TV lanes[ROWS];
        for (int r = 0; r < ROWS; ++r) lanes[r] = (TV)0;
        long k = 0;
        for (; k + LANES <= K; k += LANES) {
          const TV b = BV(b_from + k);
          for (int r = 0; r < ROWS; ++r) lanes[r] = MULTIPLY_ADD(AV(rows[r] + k), b, lanes[r]);
        }
        for (int r = 0; r < ROWS; ++r) {
          T parts[LANES], sum = 0;
          VSTORE(lanes[r], 0, parts);
          for (int i = 0; i < LANES; ++i) sum += parts[i];
          for (long rest = k; rest < K; ++rest) sum += A(rows[r] + rest) * B(b_from + rest);
          some[r * LANES + c] = sum;
        }
      }
      for (int r = 0; r < ROWS; ++r) sums[r] = VLOAD(r, some);
    } else {
      for (long k = 0; k < K; ++k) {
        T b[LANES];
        for (int c = 0; c < LANES; ++c) b[c] = at + c < N ? B(b_at + k * b_step + (at + c) * b_column) : (T)0;
        for (int r = 0; r < ROWS; ++r)
          sums[r] = MULTIPLY_ADD((TV)A(rows[r] + k * A_STEP), VLOAD(0, b), sums[r]);
      }
    }
    const int count = (int)min((long)LANES, N - at);
    for (int r = 0; r < ROWS && row + r < M; ++r) {
      TV x = sums[r];
)";
constexpr std::string_view kDirectEnd = R"(
      FINISH(LINE(row + r) + at, count, x);
    }
    }
    }
)";

// alpha times the sums x, plus beta times elements of C.
constexpr std::string_view kAddC = R"(
          TV c;
          if (n[8] == 0) {
            c = (TV)C((row + r) * n[7]);
          } else if (count == LANES) {
            c = CV((row + r) * n[7] + at);
          } else {
            T some[LANES];
            for (int i = 0; i < LANES; ++i) some[i] = C((row + r) * n[7] + at + min(i, count - 1));
            c = VLOAD(0, some);
          }
          x = (T)ALPHA * x + (T)BETA * c;
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
    const RowBlocks blocks = row_blocks(tile, m, made.items, target);
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

// The source of a product of operands 0 and 1 as `tile` has it; `after`: what becomes of sums first.
std::string product_body(const ProductTile& tile, std::string_view after) {
  if (!tile.packs()) return str(kHead, kDirect, after, kDirectEnd);
  return str(kHead, kPack, packed_rows(tile, after), "    SYNC;\n    }\n");
}

void define_product(ComputeSource& source, ElementType work, const ProductTile& tile, const Epilogue& epilogue) {
  source.vectors_of(tile.lanes);
  define_tile(source, tile, work);
  source.define("VSTORE", str("vstore", tile.lanes));
  source.define("A_AT(row)", "(a_at + (row) * a_row)");
  source.define("START(row)", "0");
  source.define("LINE(row)", "((batch * M + (row)) * N)");
  source.load("A", 0, work);
  source.load("B", 1, work);
  source.finish(epilogue, tile.lanes);
  if (tile.packs()) source.of_group();
}

Result<ComputeKernel> make_matmul(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const ElementType work = work_type_of(request.operands[0].element());
  const Type &a = request.operands[0], &b = request.operands[1];
  const bool row = a.shape().ranked() && a.shape().rank() == 1, column = b.shape().ranked() && b.shape().rank() == 1;
  const ProductTile tile =
      choose_tile({row ? 1 : last_dim(a, 1), column ? 1 : last_dim(b, 0), last_dim(a, 0)}, work, target);
  ComputeSource source(request, target);
  source.define("A_STEP", 1);
  define_product(source, work, tile, epilogue);
  return source.kernel(product_body(tile, ""), [tile, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
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
      choose_tile({last_dim(y, 1), last_dim(y, 0), last_dim(a, op.trans_a() ? 1 : 0)}, work, target);
  source.define("A_STEP", op.trans_a() ? "n[4]" : "1");
  define_product(source, work, tile, epilogue);
  factor("ALPHA", op.alpha());
  factor("BETA", op.beta());
  if (op.c()) source.load("C", 2, work);
  return source.kernel(product_body(tile, op.c() ? kAddC : "x = (T)ALPHA * x;\n"),
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
