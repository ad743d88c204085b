// MatMul, Gemm and their integer forms: tiles of some rows by 16 columns in registers, one step of the inner extent
// after the other. Where both factors lie along the inner extent (the second one transposed), 16 steps at a time.
#include <cmath>

#include <tenon/ops/matmul.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 M, 1 N, 2 K, 3 and 4 bytes of A in elements from row to row and step to step, 5 and 6 of B from step to step and
// column to column, 7 and 8 of C from row to row and column to column, 9 outer dims, then extent, stride of A, stride
// of B for each.
constexpr std::string_view kBody = R"(
    const long M = n[0], N = n[1], K = n[2], a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];
    const long column_tiles = (N + 15) / 16, row_tiles = (M + ROWS - 1) / ROWS;
    const long column = item % column_tiles * 16, row = item / column_tiles % row_tiles * ROWS;
    const long batch = item / column_tiles / row_tiles;
    long a_at = 0, b_at = 0, rest = batch;
    for (long d = n[9] - 1; d >= 0; --d) {
      const long index = rest % n[10 + 3 * d];
      rest /= n[10 + 3 * d];
      a_at += index * n[11 + 3 * d];
      b_at += index * n[12 + 3 * d];
    }
    long rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row + r, M - 1) * a_row;
    T16 sums[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = (T16)0;
    if (b_column == 1 && column + 16 <= N) {
      for (long k = 0; k < K; ++k) {
        const T16 b = B16(b_at + k * b_step + column);
        for (int r = 0; r < ROWS; ++r) sums[r] = MULTIPLY_ADD((T16)A(rows[r] + k * a_step), b, sums[r]);
      }
    } else if (b_step == 1 && a_step == 1 && K >= 16) {
      for (int c = 0; c < 16 && column + c < N; ++c) {
        T16 lanes[ROWS];
        for (int r = 0; r < ROWS; ++r) lanes[r] = (T16)0;
        const long b_from = b_at + (column + c) * b_column;
        long k = 0;
        for (; k + 16 <= K; k += 16) {
          const T16 b = B16(b_from + k);
          for (int r = 0; r < ROWS; ++r) lanes[r] = MULTIPLY_ADD(A16(rows[r] + k), b, lanes[r]);
        }
        for (int r = 0; r < ROWS; ++r) {
          const T8 h = lanes[r].lo + lanes[r].hi;
          const T4 q = h.lo + h.hi;
          T sum = (q.x + q.z) + (q.y + q.w);
          for (long rest_k = k; rest_k < K; ++rest_k) sum += A(rows[r] + rest_k) * B(b_from + rest_k);
          ((T*)&sums[r])[c] = sum;
        }
      }
    } else {
      for (long k = 0; k < K; ++k) {
        T b[16];
        for (int c = 0; c < 16; ++c) b[c] = column + c < N ? B(b_at + k * b_step + (column + c) * b_column) : (T)0;
        for (int r = 0; r < ROWS; ++r) sums[r] = MULTIPLY_ADD((T16)A(rows[r] + k * a_step), vload16(0, b), sums[r]);
      }
    }
    for (int r = 0; r < ROWS && row + r < M; ++r)
      for (int c = 0; c < 16 && column + c < N; ++c) {
        const T sum = ((const T*)&sums[r])[c];
        Y((batch * M + row + r) * N + column + c, FINISH(sum, (row + r) * n[7] + (column + c) * n[8]));
      }
)";

struct Sides {
  int64_t m = 1, n = 1, k = 1, a_row = 0, a_step = 1, b_step = 1, b_column = 1, c_row = 0, c_column = 0;
  Dims batch, a_strides, b_strides;

  ComputeLaunch launch(int64_t tile_rows) const {
    ComputeLaunch made{{m, n, k, a_row, a_step, b_step, b_column, c_row, c_column, int64_t(batch.size())}, 1};
    for (size_t d = 0; d < batch.size(); ++d) {
      made.numbers.insert(made.numbers.end(), {batch[d], a_strides[d], b_strides[d]});
      made.items *= batch[d];
    }
    made.items *= (m + tile_rows - 1) / tile_rows * ((n + 15) / 16);
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

std::string_view multiply_add(ElementType work) { return work.is_float() ? "fma((a), (b), (c))" : "((a) * (b) + (c))"; }

void define_factors(ComputeSource& source, ElementType work, const ComputeTarget& target) {
  source.define("T", scalar_name(work));
  for (const int lanes : {4, 8, 16}) source.define(str("T", lanes), lanes_name(work, lanes));
  source.define("MULTIPLY_ADD(a, b, c)", multiply_add(work));
  source.define("ROWS", target.tile_rows);
  source.load("A", 0, work);
  source.load("B", 1, work);
  source.store("Y", 0, work);
}

Result<ComputeKernel> make_matmul(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  define_factors(source, work, target);
  source.define("FINISH(sum, c)", "(sum)");
  return source.kernel(kBody, [rows = target.tile_rows](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]).launch(rows);
  });
}

Result<ComputeKernel> make_gemm(const KernelRequest& request, const ComputeTarget& target) {
  const Gemm op(const_cast<Op&>(request.op));
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  define_factors(source, work, target);
  const bool has_c = op.c() != nullptr;
  const auto factor = [&](std::string_view name, float value) {
    if (work.is_float())
      source.define_float(name, value);
    else
      source.define(name, static_cast<int64_t>(value));
  };
  if (!work.is_float() && (op.alpha() != std::floor(op.alpha()) || op.beta() != std::floor(op.beta())))
    return error(Code::unsupported, "alpha and beta of integers are whole on the device");
  factor("ALPHA", op.alpha());
  factor("BETA", op.beta());
  if (has_c) source.load("C", 2, work);
  source.define("FINISH(sum, c)", has_c ? "((T)ALPHA * (sum) + (T)BETA * C(c))" : "((T)ALPHA * (sum))");
  return source.kernel(kBody, [op, rows = target.tile_rows](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &a = shapes.operands[0], &b = shapes.operands[1], &y = shapes.results[0];
    Sides s;
    s.m = y[0], s.n = y[1], s.k = op.trans_a() ? a[0] : a[1];
    s.a_row = op.trans_a() ? 1 : a[1], s.a_step = op.trans_a() ? a[1] : 1;
    s.b_step = op.trans_b() ? 1 : b[1], s.b_column = op.trans_b() ? b[1] : 1;
    if (op.c()) {
      const Dims& c = shapes.operands[2];
      const int64_t columns = c.empty() ? 1 : c.back(), c_rows = c.size() == 2 ? c[0] : 1;
      s.c_column = columns == 1 ? 0 : 1, s.c_row = c_rows == 1 ? 0 : columns;
    }
    return s.launch(rows);
  });
}

// One element an item: bytes in i32, whose products need no tiles to be few.
constexpr std::string_view kIntegerBody = R"(
    const long M = n[0], N = n[1], K = n[2], a_row = n[3], b_step = n[5];
    const long column = item % N, row = item / N % M, batch = item / N / M;
    long a_at = row * a_row, b_at = column * n[6], rest = batch;
    for (long d = n[9] - 1; d >= 0; --d) {
      const long index = rest % n[10 + 3 * d];
      rest /= n[10 + 3 * d];
      a_at += index * n[11 + 3 * d];
      b_at += index * n[12 + 3 * d];
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
  return source.kernel(kIntegerBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Sides s = matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]);
    ComputeLaunch made = s.launch(1);
    made.items = s.m * s.n;
    for (const int64_t extent : s.batch) made.items *= extent;
    return made;
  });
}

constexpr ComputeRow kRows[] = {
    {MatMul::kName, make_matmul}, {Gemm::kName, make_gemm}, {MatMulInteger::kName, make_matmul_integer}};

}  // namespace

std::span<const ComputeRow> product_rows() { return kRows; }

}  // namespace tenon::opencl
