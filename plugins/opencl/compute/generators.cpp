// Operators that generate elements from extents and a few numbers, and read almost nothing.
#include <algorithm>
#include <functional>

#include <tenon/ops/shape.hpp>
#include <tenon/ops/signal.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

Result<ComputeLaunch> each_element(const CallShapes& shapes) {
  return ComputeLaunch{{elements_of(shapes.results[0])}, elements_of(shapes.results[0])};
}

// ---- Values that depend on positions alone ----

Result<ComputeKernel> make_constant_of_shape(const KernelRequest& request, const ComputeTarget& target) {
  const Attribute* attribute = request.op.attributes().find("value");
  const Tensor* value = attribute ? attribute->get_if<Tensor>() : nullptr;
  if (value && !raw_type_of(value->element()).valid())
    return error(Code::unsupported, "elements of ", value->element(), " are no whole bytes");
  uint64_t bits = 0;
  if (value) std::copy_n(value->data(), value->bytes(), reinterpret_cast<std::byte*>(&bits));
  ComputeSource source(request, target);
  source.store_raw("Y", 0);
  return source.kernel(
      str("    Y(item, (", scalar_name(raw_type_of(request.results[0].element())), ")", bits, "ul);\n"), each_element);
}

// n: 0 rows, 1 columns.
Result<ComputeKernel> make_eye_like(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.results[0].element());
  ComputeSource source(request, target);
  source.store("Y", 0, work);
  source.define("W", scalar_name(work));
  source.define("K", str("((long)", request.op.attr<int64_t>("k", 0), ")"));
  return source.kernel(
      "    const long row = item / n[1], column = item % n[1];\n    Y(item, (W)(K == column - row));\n",
      [](const CallShapes& shapes) -> Result<ComputeLaunch> {
        const Dims& y = shapes.results[0];
        return ComputeLaunch{{y[0], y[1]}, y[0] * y[1]};
      });
}

// Integers wrap around; a float is `start` plus one product, computed in doubles.
Result<ComputeKernel> make_range(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.results[0].element());
  ComputeSource source(request, target);
  source.define("S", work.is_float() ? scalar_name(sum_type_of(work, target)) : "ulong");
  source.load("START", 0, work);
  source.load("STEP", 2, work);
  source.store("Y", 0, work);
  return source.kernel("    Y(item, (S)START(0) + (S)item * (S)STEP(0));\n", each_element);
}

// n: the requested extents.
Result<ComputeKernel> make_extents(const KernelRequest& request, const ComputeTarget& target,
                                   std::function<Result<ComputeLaunch>(const CallShapes&)> launch) {
  ComputeSource source(request, target);
  source.store("Y", 0, kI64);
  return source.kernel("    Y(item, n[item]);\n", std::move(launch));
}

Result<ComputeKernel> make_shape(const KernelRequest& request, const ComputeTarget& target) {
  return make_extents(request, target, [op = &request.op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& x = shapes.operands[0];
    const auto rank = static_cast<int64_t>(x.size());
    const int64_t start = op->attr<int64_t>("start", 0);
    const int64_t begin = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
    const int64_t count = elements_of(shapes.results[0]);
    return ComputeLaunch{std::vector<int64_t>(x.begin() + begin, x.begin() + begin + count), count};
  });
}

Result<ComputeKernel> make_size(const KernelRequest& request, const ComputeTarget& target) {
  return make_extents(request, target, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return ComputeLaunch{{elements_of(shapes.operands[0])}, 1};
  });
}

// ---- Windows of signals: A0 - A1 cos(2 pi i / N) + A2 cos(4 pi i / N) ----

Result<ComputeKernel> make_window(const KernelRequest& request, const ComputeTarget& target, std::string_view a0,
                                  std::string_view a1, std::string_view a2) {
  const ElementType work = work_type_of(request.results[0].element());
  if (!work.is_float()) return error(Code::unsupported, "a window of ", request.results[0].element());
  ComputeSource source(request, target);
  source.store("Y", 0, work);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("N", request.op.attr<int64_t>("periodic", 1) != 0 ? "n[0]" : "max(n[0] - 1, 1l)");
  return source.kernel(str("    const S turn = (S)2 * (S)item / (S)(N);\n    Y(item, (S)(", a0, ") - (S)(", a1,
                           ") * cospi(turn) + (S)(", a2, ") * cospi((S)2 * turn));\n"),
                       each_element);
}

Result<ComputeKernel> make_hann(const KernelRequest& request, const ComputeTarget& target) {
  return make_window(request, target, "0.5", "0.5", "0");
}
Result<ComputeKernel> make_hamming(const KernelRequest& request, const ComputeTarget& target) {
  return make_window(request, target, "(S)25 / 46", "(S)21 / 46", "0");
}
Result<ComputeKernel> make_blackman(const KernelRequest& request, const ComputeTarget& target) {
  return make_window(request, target, "0.42", "0.5", "0.08");
}

constexpr ComputeRow kGeneratorRows[] = {
    {ConstantOfShape::kName, make_constant_of_shape},
    {EyeLike::kName, make_eye_like},
    {Range::kName, make_range},
    {ShapeOf::kName, make_shape},
    {Size::kName, make_size},
    {HannWindow::kName, make_hann},
    {HammingWindow::kName, make_hamming},
    {BlackmanWindow::kName, make_blackman},
};

}  // namespace

std::span<const ComputeRow> generator_rows() { return kGeneratorRows; }

}  // namespace tenon::opencl
