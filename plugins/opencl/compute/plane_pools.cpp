// Pools by planes.
#include <algorithm>

#include <tenon/ops/pooling.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/pool_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

using irgen::KernelRequest;

std::string least_of(ElementType work) {
  if (work.is_float()) return "((T)-INFINITY)";
  if (work == kI32) return "INT_MIN";
  return work == kI64 ? "LONG_MIN" : "0";
}

Dims pads_end(const Op& op, const std::vector<WindowAxis>& axes) {
  const auto stated = op.attr<Attribute::Integers>("pads");
  const auto automatic = op.attr<std::string>("auto_pad", "NOTSET");
  Dims pads;
  for (size_t d = 0; d < axes.size(); ++d) {
    const WindowAxis& a = axes[d];
    const int64_t reach = (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.begin;
    if (automatic == "NOTSET")
      pads.push_back(stated.empty() ? 0 : stated[axes.size() + d]);
    else
      pads.push_back(automatic.starts_with("SAME") ? std::max<int64_t>(0, reach - a.in) : 0);
  }
  return pads;
}

std::optional<PlaneWindow> pool_window(const KernelRequest& request, const ComputeTarget& target) {
  if (request.op.result_count() > 1) return std::nullopt;
  const Shape& shape = request.operands[0].shape();
  if (!shape.ranked() || shape.rank() < 3) return std::nullopt;
  const auto window = Window::of(request.op, static_cast<size_t>(shape.rank()) - 2);
  if (!window.ok()) return std::nullopt;
  const auto y = request.results[0].shape().static_dims();
  return plane_window(*window, work_type_of(request.operands[0].element()), target,
                      y && !y->empty() ? std::optional(y->back()) : std::nullopt);
}

namespace {

Result<ComputeKernel> make_plane_pool(const KernelRequest& request, const ComputeTarget& target,
                                      const PlaneWindow& window, const PlaneText& text, ComputeSource& source) {
  const ElementType work = work_type_of(request.operands[0].element());
  const std::string body = plane_body(source, window, work, target, text);
  source.finish(plain_epilogue(request.results[0].element()), window.lanes);
  const Op* op = &request.op;
  return source.kernel(body, [op, window, work, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &y = shapes.results[0];
    TENON_TRY(of, Window::of(*op, x.size() - 2));
    ComputeLaunch made =
        plane_launch(window, plane_extents(of, spatial_of(x), spatial_of(y)), y[0] * y[1], 1, work, target);
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), {}));
    Dims end = pads_end(*op, axes);
    if (end.size() == 1) end.insert(end.begin(), 0);
    made.numbers.insert(made.numbers.end(), end.begin(), end.end());
    return made;
  });
}

}  // namespace

Result<ComputeKernel> make_plane_max_pool(const KernelRequest& request, const ComputeTarget& target,
                                          const PlaneWindow& window) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  // NaN counts as the greatest.
  source.define("LARGER(x, sum)", work.is_float() ? "(!(x <= sum) & (sum == sum))" : "(x > sum)");
  constexpr std::string_view kTake = "sum = LARGER(x, sum) ? x : sum";
  const std::string least = least_of(work);
  return make_plane_pool(request, target, window,
                         {.padding = least,
                          .job = "",
                          .column = "",
                          .sum = "TV",
                          .start = "(TV)PADDING",
                          .take = kTake,
                          .take_at = kTake,
                          .done = "FINISH(place, first, column, count, sum)",
                          .rows_first = true,
                          .take_numbers = work.is_float() ? "sum = x > sum ? x : sum" : "",
                          .copies = true},
                         source);
}

namespace {

// The number of a window's inputs that count along an axis, where `first` is the first one: with `count_include_pad`,
// those in the stated padding count, too. n[10] and n[11]: the padding after rows and columns.
constexpr std::string_view kCounted = "max(min((in - (first) + dilation - 1) / dilation, taps)";
constexpr std::string_view kBefore = " - max((dilation - 1 - (first)) / dilation, 0)";

}  // namespace

Result<ComputeKernel> make_plane_average_pool(const KernelRequest& request, const ComputeTarget& target,
                                              const PlaneWindow& window) {
  const ElementType work = work_type_of(request.operands[0].element()), sum = sum_type_of(work, target);
  ComputeSource source(request, target);
  const std::string sums = lanes_name(sum, window.lanes), take = str("sum += convert_", sums, "(x)");
  const bool padded = request.op.attr<int64_t>("count_include_pad", 0) != 0;
  source.define("COUNT(first, in, taps, dilation)", str(kCounted, padded ? "" : kBefore, ", 0)"));
  source.define("COUNTED_ROWS", padded ? "(in_rows + (int)n[10])" : "in_rows");
  source.define("COUNTED_COLUMNS", padded ? "(in_columns + (int)n[11])" : "in_columns");
  source.define("ROW_KERNEL", window.kernel[0]);
  const std::string column = str("      const SUM counted = convert_", sums,
                                 "(COUNT(from_columns, COUNTED_COLUMNS, COLUMN_KERNEL, COLUMN_DILATION));\n");
  const std::string done =
      str("const int rows = COUNT((y0 + (line)) * ROW_STRIDE - (int)n[4], COUNTED_ROWS, ROW_KERNEL, ROW_DILATION); "
          "FINISH(place, first, column, count, convert_",
          lanes_name(work, window.lanes), "(sum / max(counted * (SUM)rows, (SUM)1)))");
  return make_plane_pool(request, target, window,
                         {.padding = "0",
                          .job = "",
                          .column = column,
                          .sum = sums,
                          .start = "(SUM)0",
                          .take = take,
                          .take_at = take,
                          .done = done,
                          .copies = true},
                         source);
}

}  // namespace tenon::opencl
