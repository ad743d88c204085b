// Pools, and LRN. Pools of one or two spatial axes work on vectors of outputs (planes.hpp), others, and those that say
// where the largest elements lie, on one output element an item, as LRN does.
#include <tenon/ops/pooling.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/planes.hpp"
#include "opencl/compute/tile.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 inputs and 1 outputs of a channel, 2 taps, then the axes, then for averages the padding behind each.
constexpr int kFirstAxis = 3;
constexpr std::string_view kWalk = R"(
    const long in_size = n[0], out_size = n[1], taps = n[2], plane = item / out_size * in_size;
    int start[R], k[R];
    long rest = item % out_size;
    for (int d = R - 1; d >= 0; --d) {
      start[d] = (int)(rest % OUT(d)) * STRIDE(d) - BEGIN(d);
      rest /= OUT(d);
      k[d] = 0;
    }
    START
    for (long tap = 0; tap < taps; ++tap) {
      long at = 0;
      int inside = 1;
      for (int d = 0; d < R; ++d) {
        const int i = start[d] + k[d] * DILATION(d);
        inside &= i >= 0 && i < IN(d);
        at = at * IN(d) + i;
      }
      if (inside) {
        const T x = X(plane + at);
        TAKE
      }
      NEXT_TAP(k);
    }
    FINISH
)";

struct Pool {
  std::string_view start, take, finish;
};

constexpr Pool kMax{"T best = LEAST; long where = -1;",
                    "if (where < 0 || (!IS_NAN(best) && (x > best || IS_NAN(x)))) best = x, where = at;",
                    "Y(item, best); WHERE"};
// Of taps in the input and its padding: those that lie beyond count for no average.
constexpr Pool kAverage{"S sum = 0; long count = 0;", "sum += x; ++count;", R"(if (PADDED) {
      count = 1;
      for (int d = 0; d < R; ++d) {
        long taken = 0;
        for (int j = 0; j < KERNEL(d); ++j) taken += start[d] + j * DILATION(d) < IN(d) + (int)n[END + d];
        count *= taken;
      }
    }
    Y(item, count == 0 ? (S)0 : sum / (S)count);)"};
constexpr Pool kLp{"S sum = 0;", "sum += pow((S)fabs(x), (S)P);", "Y(item, pow(sum, (S)1 / (S)P));"};

void define_pool(ComputeSource& source, const Pool& pool) {
  source.define("START", pool.start);
  source.define("TAKE", pool.take);
  std::string finish(pool.finish);
  for (char& c : finish)
    if (c == '\n') c = ' ';
  source.define("FINISH", finish);
}

std::string least_of(ElementType work) {
  if (work.is_float()) return "((T)-INFINITY)";
  if (work == kI32) return "INT_MIN";
  return work == kI64 ? "LONG_MIN" : "0";
}

// The padding behind each axis: as stated, or what the last window needs.
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

ComputeLaunch launch_of(const Dims& x, const Dims& y, const std::vector<WindowAxis>& axes) {
  int64_t taps = 1;
  for (const WindowAxis& a : axes) taps *= a.kernel;
  ComputeLaunch made{{elements_of(spatial_of(x)), elements_of(spatial_of(y)), taps}, elements_of(y)};
  add_axes(axes, made);
  return made;
}

Result<ComputeKernel> make_pool(const KernelRequest& request, const ComputeTarget& target, const Pool& pool,
                                bool whole_channels) {
  const ElementType work = work_type_of(request.operands[0].element());
  const size_t rank = spatial_rank(request, 0);
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("LEAST", least_of(work));
  source.define("IS_NAN(v)", work.is_float() ? "isnan(v)" : "0");
  source.load("X", 0, work);
  source.store("Y", 0, work);
  define_axes(source, rank, kFirstAxis);
  source.define("PADDED", request.op.attr<int64_t>("count_include_pad", 0));
  source.define("END", kFirstAxis + kNumbersOfAxis * static_cast<int>(rank));
  source.define("P", request.op.attr<int64_t>("p", 2));
  if (request.op.result_count() > 1) {
    source.store("INDEX", 1, kI64);
    // With storage_order 1 the spatial axes are counted the other way round.
    const bool by_columns = request.op.attr<int64_t>("storage_order", 0) == 1;
    source.define("WHERE", by_columns
                               ? "{ long left = where, column = 0, step = in_size; for (int d = R - 1; d >= 0; --d) "
                                 "{ step /= IN(d); column += left % IN(d) * step; left /= IN(d); } INDEX(item, "
                                 "plane + column); }"
                               : "INDEX(item, plane + where);");
  } else {
    source.define("WHERE", "");
  }
  define_pool(source, pool);
  const Op* op = &request.op;
  return source.kernel(kWalk, [op, whole_channels](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &y = shapes.results[0];
    if (whole_channels) {
      std::vector<WindowAxis> axes;
      for (const int64_t extent : spatial_of(x)) axes.push_back({.in = extent, .kernel = extent});
      if (axes.empty()) axes.emplace_back();
      return launch_of(x, y, axes);
    }
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), {}));
    ComputeLaunch made = launch_of(x, y, axes);
    const Dims end = pads_end(*op, axes);
    made.numbers.insert(made.numbers.end(), end.begin(), end.end());
    return made;
  });
}

// The window when the pool can work on planes.
std::optional<PlaneWindow> pool_window(const KernelRequest& request, const ComputeTarget& target) {
  if (request.op.result_count() > 1) return std::nullopt;
  const Shape& shape = request.operands[0].shape();
  if (!shape.ranked() || shape.rank() < 3) return std::nullopt;
  const auto window = Window::of(request.op, static_cast<size_t>(shape.rank()) - 2);
  if (!window.ok()) return std::nullopt;
  return plane_window(*window, work_type_of(request.operands[0].element()), target);
}

Result<ComputeKernel> make_plane_pool(const KernelRequest& request, const ComputeTarget& target,
                                      const PlaneWindow& window, const PlaneText& text, ComputeSource& source) {
  const ElementType work = work_type_of(request.operands[0].element());
  const std::string body = plane_body(source, window, work, target, text);
  source.finish(plain_epilogue(request.results[0].element()), lanes_of(work, target));
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

Result<ComputeKernel> make_max_pool(const KernelRequest& request, const ComputeTarget& target) {
  const auto window = pool_window(request, target);
  if (!window) return make_pool(request, target, kMax, false);
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("PADDING", least_of(work));
  // The first of the largest, or the first that is no number.
  source.define("LARGER(x, best)", work.is_float() ? "(!(x <= best) & (best == best))" : "(x > best)");
  return make_plane_pool(request, target, *window,
                         {.job = "",
                          .start = "      TV best = (TV)PADDING;\n",
                          .take = "best = LARGER(x, best) ? x : best;",
                          .done = "      FINISH(at, count, best);\n"},
                         source);
}

// How many of a window's inputs count: the product of those of its rows and of its columns, which are counted once for
// each column of the job. Of inputs in the padding, those that are stated count where `count_include_pad` says so.
constexpr std::string_view kCounts = R"(
    for (int column = LOCAL_ID; column < job_columns; column += LOCAL_SIZE) {
      int taken = 0;
      for (int k = 0; k < COLUMN_KERNEL; ++k) {
        const int i = (x0 + column) * COLUMN_STRIDE - (int)n[5] + k * COLUMN_DILATION;
        taken += PADDED ? i < in_columns + (int)n[10] : i >= 0 && i < in_columns;
      }
      counts[column] = (S)taken;
    }
    SYNC;
)";
constexpr std::string_view kCountRows = R"(
      int taken = 0;
      for (int k = 0; k < ROW_KERNEL; ++k) {
        const int i = (y0 + line) * ROW_STRIDE - (int)n[4] + k * ROW_DILATION;
        taken += PADDED ? i < in_rows + (int)n[9] : i >= 0 && i < in_rows;
      }
      SV sum = (SV)0;
)";
constexpr std::string_view kDivide = R"(
      const SV parts = (SV)(S)taken * NEAR_COUNTS(counts + column);
      FINISH(at, count, TO_TV(sum / max(parts, (SV)1)));
)";

Result<ComputeKernel> make_average_pool(const KernelRequest& request, const ComputeTarget& target) {
  const auto window = pool_window(request, target);
  const ElementType work = work_type_of(request.operands[0].element());
  if (!window || !work.is_float()) return make_pool(request, target, kAverage, false);
  const int lanes = lanes_of(work, target);
  const ElementType sum = sum_type_of(work, target);
  ComputeSource source(request, target);
  source.define("PADDING", "0");
  source.define("S", scalar_name(sum));
  source.define("SV", lanes_name(sum, lanes));
  source.define("TO_TV(v)", str("convert_", lanes_name(work, lanes), "(v)"));
  source.define("PADDED", request.op.attr<int64_t>("count_include_pad", 0));
  source.define("ROW_KERNEL", window->kernel[0]);
  source.define("ROW_DILATION", window->dilation[0]);
  source.define("COLUMN_KERNEL", window->kernel[1]);
  source.define("COLUMN_DILATION", window->dilation[1]);
  source.define("NEAR_COUNTS(p)", "(((__local TENON_NEAR(SV)*)(p))->v)");
  source.local(str("  __local S counts[", plane_columns(*window, work, target), "];\n"));
  return make_plane_pool(request, target, *window,
                         {.job = kCounts,
                          .start = kCountRows,
                          .take = str("sum += convert_", lanes_name(sum, lanes), "(x);"),
                          .done = kDivide},
                         source);
}
Result<ComputeKernel> make_lp_pool(const KernelRequest& request, const ComputeTarget& target) {
  return make_pool(request, target, kLp, false);
}
Result<ComputeKernel> make_global_lp_pool(const KernelRequest& request, const ComputeTarget& target) {
  return make_pool(request, target, kLp, true);
}

// n: 0 channels, 1 elements of a channel.
constexpr std::string_view kLrnBody = R"(
    const long channels = n[0], size = n[1], channel = item / size % channels;
    S sum = 0;
    for (long c = max(channel - (SIZE - 1) / 2, 0l); c <= min(channel + SIZE / 2, channels - 1); ++c) {
      const S x = X(item + (c - channel) * size);
      sum += x * x;
    }
    Y(item, X(item) / pow((S)BIAS + (S)ALPHA / (S)SIZE * sum, (S)BETA));
)";

Result<ComputeKernel> make_lrn(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.load("X", 0, work);
  source.store("Y", 0, work);
  source.define("SIZE", str(request.op.attr<int64_t>("size", 1), "l"));
  source.define_float("ALPHA", request.op.attr<float>("alpha", 0.0001f));
  source.define_float("BETA", request.op.attr<float>("beta", 0.75f));
  source.define_float("BIAS", request.op.attr<float>("bias", 1.0f));
  return source.kernel(kLrnBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& x = shapes.operands[0];
    return ComputeLaunch{{x[1], elements_of(spatial_of(x))}, elements_of(x)};
  });
}

constexpr ComputeRow kRows[] = {{MaxPool::kName, make_max_pool},
                                {AveragePool::kName, make_average_pool},
                                {LpPool::kName, make_lp_pool},
                                {GlobalLpPool::kName, make_global_lp_pool},
                                {"LRN", make_lrn}};

}  // namespace

std::span<const ComputeRow> pooling_rows() { return kRows; }

}  // namespace tenon::opencl
