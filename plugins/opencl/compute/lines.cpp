// Operators that traverse an axis in order: cumulative sums and products, TopK. An item is a line along the axis.
#include <tenon/ir/builder.hpp>
#include <tenon/ops/indexing.hpp>
#include <tenon/ops/reduce.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 extent of the axis, 1 elements after it, 2 extent of the result's axis.
constexpr std::string_view kLine = R"(
    const long extent = n[0], inner = n[1], count = n[2];
    const long from = item / inner * extent * inner + item % inner, to = item / inner * count * inner + item % inner;
)";

constexpr std::string_view kScanBody = R"(
    S run = UNIT;
    for (long i = 0; i < count; ++i) {
      const long at = (REVERSE ? extent - 1 - i : i) * inner;
      const S before = run;
      run = run OPERATION (S)X(from + at);
      Y(to + at, EXCLUSIVE ? before : run);
    }
)";

// Selects, one after the other, the next element after the last one selected: k is assumed to be small.
constexpr std::string_view kTopBody = R"(
    long taken = -1;
    T last = 0;
    for (long i = 0; i < count; ++i) {
      long best = -1;
      T value = 0;
      for (long j = 0; j < extent; ++j) {
        const T x = X(from + j * inner);
        const int behind = taken < 0 || BEFORE(last, x) || (!BEFORE(x, last) && j > taken);
        if (behind && (best < 0 || BEFORE(x, value))) best = j, value = x;
      }
      taken = best, last = value;
      Y(to + i * inner, value);
      INDEX(to + i * inner, best);
    }
)";

ComputeLaunch launch_of(const Dims& in, const Dims& out, int64_t axis) {
  const auto d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.size()) : axis);
  int64_t inner = 1;
  for (size_t i = d + 1; i < in.size(); ++i) inner *= in[i];
  return {{in[d], inner, out[d]}, in[d] == 0 ? 0 : elements_of(in) / in[d]};
}

Result<ComputeKernel> make_scan(const KernelRequest& request, const ComputeTarget& target, std::string_view operation,
                                int unit) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("OPERATION", operation);
  source.define("UNIT", unit);
  source.define("REVERSE", op->attr<int64_t>("reverse", 0));
  source.define("EXCLUSIVE", op->attr<int64_t>("exclusive", 0));
  source.load("X", 0, work);
  source.store("Y", 0, work);
  return source.kernel(str(kLine, kScanBody), [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const auto axis = constant_ints_of(op->operand(1));
    if (!axis || axis->size() != 1)
      return error(Code::unsupported, "the axis of ", op->describe(), " is known at a run only");
    return launch_of(shapes.operands[0], shapes.results[0], axis->front());
  });
}

Result<ComputeKernel> make_cum_sum(const KernelRequest& request, const ComputeTarget& target) {
  return make_scan(request, target, "+", 0);
}
Result<ComputeKernel> make_cum_prod(const KernelRequest& request, const ComputeTarget& target) {
  return make_scan(request, target, "*", 1);
}

Result<ComputeKernel> make_top_k(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  // NaN counts as the greatest.
  source.define("LESS(a, b)", work.is_float() ? "(isnan(b) ? !isnan(a) : (a) < (b))" : "((a) < (b))");
  source.define("BEFORE(a, b)", op->attr<int64_t>("largest", 1) != 0 ? "LESS(b, a)" : "LESS(a, b)");
  source.load("X", 0, work);
  source.store("Y", 0, work);
  source.store("INDEX", 1, kI64);
  return source.kernel(str(kLine, kTopBody), [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return launch_of(shapes.operands[0], shapes.results[0], op->attr<int64_t>("axis", -1));
  });
}

constexpr ComputeRow kLineRows[] = {
    {CumSum::kName, make_cum_sum}, {CumProd::kName, make_cum_prod}, {TopK::kName, make_top_k}};

}  // namespace

std::span<const ComputeRow> line_rows() { return kLineRows; }

}  // namespace tenon::opencl
