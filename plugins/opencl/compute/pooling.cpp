// Pools, and LRN. Pools with one or two spatial axes work on vectors of outputs (plane_pools.cpp). Others, those that
// also return the indices of the largest elements, and LRN compute one output element per item.
#include <tenon/ops/pooling.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/pool_forms.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 inputs and 1 outputs of a channel, 2 taps, then the axes, then for averages the padding after each.
constexpr int kFirstPoolAxis = 3;
constexpr std::string_view kPoolWalk = R"(
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
// For taps in the input and its padding: those beyond are not counted.
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
  define_axes(source, rank, kFirstPoolAxis);
  source.define("PADDED", request.op.attr<int64_t>("count_include_pad", 0));
  source.define("END", kFirstPoolAxis + kNumbersOfAxis * static_cast<int>(rank));
  source.define("P", request.op.attr<int64_t>("p", 2));
  if (request.op.result_count() > 1) {
    source.store("INDEX", 1, kI64);
    // With storage_order 1 indices count the spatial axes in reverse order.
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
  return source.kernel(kPoolWalk, [op, whole_channels](const CallShapes& shapes) -> Result<ComputeLaunch> {
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

Result<ComputeKernel> make_max_pool(const KernelRequest& request, const ComputeTarget& target) {
  const auto window = pool_window(request, target);
  return window ? make_plane_max_pool(request, target, *window) : make_pool(request, target, kMax, false);
}
Result<ComputeKernel> make_average_pool(const KernelRequest& request, const ComputeTarget& target) {
  const auto window = pool_window(request, target);
  if (!window || !work_type_of(request.operands[0].element()).is_float())
    return make_pool(request, target, kAverage, false);
  return make_plane_average_pool(request, target, *window);
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

constexpr ComputeRow kPoolingRows[] = {{MaxPool::kName, make_max_pool},
                                       {AveragePool::kName, make_average_pool},
                                       {LpPool::kName, make_lp_pool},
                                       {GlobalLpPool::kName, make_global_lp_pool},
                                       {"LRN", make_lrn}};

}  // namespace

std::span<const ComputeRow> pooling_rows() { return kPoolingRows; }

}  // namespace tenon::opencl
