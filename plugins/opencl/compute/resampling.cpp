// Resize: to nearest elements it is a placement; the other modes are weighted sums of taps, listed for each axis.
#include <bit>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/resize.hpp>
#include <tenon/ops/resize_taps.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

Result<ComputeKernel> make_nearest_resize(const irgen::KernelRequest& request, const ComputeTarget& target);

namespace {

using irgen::KernelRequest;

// n: for each axis the output's extent, the input's stride, and the offset of its table. The table has, for each
// output, the offset and number of its taps, or -1 where the result is EXTRAPOLATION; a tap is an index and the bits of
// its weight.
constexpr std::string_view kResizeBody = R"(
    long rest = item, tap[RANK], count[RANK], place[RANK];
    int inside = 1;
    for (int d = RANK - 1; d >= 0; --d) {
      __global const long* table = n + n[3 * d + 2] + rest % n[3 * d] * 2;
      rest /= n[3 * d];
      tap[d] = table[0], count[d] = table[1], place[d] = 0;
      inside &= count[d] >= 0;
    }
    S sum = 0;
    int more = inside;
    while (more) {
      long at = 0;
      S weight = 1;
      for (int d = 0; d < RANK; ++d) {
        at += n[tap[d] + 2 * place[d]] * n[3 * d + 1];
        weight *= (S)WEIGHT(n[tap[d] + 2 * place[d] + 1]);
      }
      sum += weight * (S)X(at);
      int d = RANK - 1;
      for (; d >= 0 && ++place[d] == count[d]; --d) place[d] = 0;
      more = d >= 0;
    }
    Y(item, inside ? (T)sum : (T)EXTRAPOLATION);
)";

// The elements of a constant operand; nothing where there is no such operand.
Result<std::optional<std::vector<double>>> numbers_of(const Op& op, size_t operand) {
  if (!op.operand(operand)) return std::optional<std::vector<double>>();
  const Tensor* tensor = constant_of(op.operand(operand));
  if (!tensor) return error(Code::unsupported, "operand ", operand, " of ", op.describe(), " is known at a run only");
  if (tensor->size() == 0) return std::optional<std::vector<double>>();
  std::vector<double> made;
  for (int64_t i = 0; i < tensor->size(); ++i) made.push_back(tensor->double_at(i));
  return std::optional(std::move(made));
}

Result<ResizePlan> plan_of(const Op& op, const Dims& in) {
  TENON_TRY(roi, numbers_of(op, 1));
  TENON_TRY(scales, numbers_of(op, 2));
  TENON_TRY(wanted, numbers_of(op, 3));
  std::optional<std::vector<int64_t>> sizes;
  if (wanted) sizes.emplace(wanted->begin(), wanted->end());
  return ResizePlan::of(op, in, scales, sizes, roi);
}

int64_t bits_of(double weight, bool wide) {
  return wide ? std::bit_cast<int64_t>(weight) : int64_t{std::bit_cast<uint32_t>(static_cast<float>(weight))};
}

Result<ComputeLaunch> launch_of(const Op& op, const CallShapes& shapes, bool wide) {
  const Dims &in = shapes.operands[0], &out = shapes.results[0];
  TENON_TRY(plan, plan_of(op, in));
  ComputeLaunch made{Dims(3 * in.size()), elements_of(out)};
  int64_t stride = 1;
  for (size_t d = in.size(); d-- > 0; stride *= in[d]) {
    std::vector<ResizeTaps> taps;
    for (int64_t i = 0; i < out[d]; ++i)
      taps.push_back(plan.resized[d] ? ResizeAxis(op, in[d], out[d], plan.scales[d], plan.start[d], plan.end[d]).taps(i)
                                     : ResizeTaps{{{i, 1}}, false});
    made.numbers[3 * d] = out[d], made.numbers[3 * d + 1] = stride;
    made.numbers[3 * d + 2] = static_cast<int64_t>(made.numbers.size());
    auto at = static_cast<int64_t>(made.numbers.size()) + 2 * out[d];
    for (const ResizeTaps& of : taps) {
      made.numbers.insert(made.numbers.end(), {at, of.outside ? -1 : static_cast<int64_t>(of.taps.size())});
      at += 2 * static_cast<int64_t>(of.taps.size());
    }
    for (const ResizeTaps& of : taps)
      for (const ResizeTap& tap : of.taps)
        made.numbers.insert(made.numbers.end(), {tap.index, bits_of(tap.weight, wide)});
  }
  return made;
}

Result<ComputeKernel> make_resize(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  if (op->attr<std::string>("mode", "nearest") == "nearest") return make_nearest_resize(request, target);
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "images of integers are resampled on the host");
  if (!request.operands[0].shape().ranked() || request.operands[0].shape().rank() == 0)
    return error(Code::unsupported, "the rank of the image is not known");
  const ElementType sums = sum_type_of(work, target);
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.define("S", scalar_name(sums));
  source.define("RANK", request.operands[0].shape().rank());
  source.define("WEIGHT(bits)", sums == kF64 ? "as_double(bits)" : "as_float((uint)(bits))");
  source.define_float("EXTRAPOLATION", op->attr<float>("extrapolation_value", 0.0f));
  source.load("X", 0, work);
  source.store("Y", 0, work);
  return source.kernel(kResizeBody,
                       [op, wide = sums == kF64](const CallShapes& shapes) { return launch_of(*op, shapes, wide); });
}

constexpr ComputeRow kResamplingRows[] = {{Resize::kName, make_resize}};

}  // namespace

std::span<const ComputeRow> resampling_rows() { return kResamplingRows; }

}  // namespace tenon::opencl
