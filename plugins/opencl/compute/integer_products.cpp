// MatMulInteger: one result element per item, without tiles; bytes are computed in i32.
#include <tenon/support/str.hpp>

#include "opencl/compute/product_forms.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kIntegerJob = R"(
    const long M = n[0], N = n[1], K = n[2], a_row = n[3], b_step = n[5];
    const long column = item % N, row = item / N % M, batch = item / N / M;
)";
constexpr std::string_view kSum = R"(    a_at += row * a_row, b_at += column * n[6];
    const int a_zero = A_ZERO(batch * M + row), b_zero = B_ZERO(batch * N + column);
    int sum = 0;
    for (long k = 0; k < K; ++k) sum += (A(a_at + k) - a_zero) * (B(b_at + k * b_step) - b_zero);
    Y(item, sum);
)";

}  // namespace

Result<ComputeKernel> make_matmul_integer(const irgen::KernelRequest& request, const ComputeTarget& target) {
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
  return source.kernel(str(kIntegerJob, kOuterOffsets, kSum), [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const ProductSides s = matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]);
    return ComputeLaunch{s.numbers(), s.m * s.n * s.matrices()};
  });
}

}  // namespace tenon::opencl
