// Images sampled at arbitrary points: GridSample, RoiAlign, and AffineGrid. Points are computed in the type P: doubles
// where the device has them.
#include <algorithm>

#include <tenon/ops/pooling.hpp>
#include <tenon/ops/resize.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

void define_types(ComputeSource& source, ElementType work, const ComputeTarget& target) {
  source.define("T", scalar_name(work));
  source.define("P", scalar_name(sum_type_of(work, target)));
}

// ---- GridSample ----

constexpr std::string_view kReflected = R"(static P reflected(P x, P low, P high) {
  const P range = high - low;
  if (range <= 0) return low;
  const P at = fmod(fabs(x - low), 2 * range);
  return low + (at > range ? 2 * range - at : at);
}
)";
// The cubic convolution kernel (Keys) with a = -0.75.
constexpr std::string_view kCubic = R"(static P cubic(P x) {
  const P a = (P)-0.75, d = fabs(x);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}
)";

// n: 0 points, 1 channels, 2 elements of a channel, then extents. An item is a point, for all channels.
constexpr std::string_view kGridBody = R"(
    const long points = n[0], channels = n[1], size = n[2];
    long index[R * TAPS];
    P weight[R * TAPS];
    for (int d = 0; d < R; ++d) {
      const long extent = n[3 + d];
      const P last = (P)extent - 1, low = ALIGNED ? (P)0 : (P)-0.5, high = ALIGNED ? last : last + (P)0.5;
      const P given = (P)GRID(item * R + R - 1 - d);
      P x = ALIGNED ? (given + 1) / 2 * last : ((given + 1) * (P)extent - 1) / 2;
      if (isnan(x) || x < (P)-1e9) x = (P)-1e9;
      if (x > (P)1e9) x = (P)1e9;
      if (NEAREST) x = rint(x);
      PAD_POINT;
      if (NEAREST) x = rint(x);
      const P whole = floor(x), fraction = x - whole;
      for (int t = 0; t < TAPS; ++t) {
        long at = (long)whole + FIRST + t;
        PAD_INDEX;
        const P by = WEIGHT((P)(t + FIRST), fraction);
        const int inside = at >= 0 && at < extent;
        index[d * TAPS + t] = inside ? at : 0, weight[d * TAPS + t] = inside ? by : (P)0;
      }
    }
    for (long channel = 0; channel < channels; ++channel) {
      const long plane = item / points * channels + channel;
      P sum = 0;
      for (int tap = 0; tap < ALL_TAPS; ++tap) {
        long at = 0;
        P by = 1;
        int rest = tap, place[R];
        for (int d = R - 1; d >= 0; --d) place[d] = rest % TAPS, rest /= TAPS;
        for (int d = 0; d < R; ++d) {
          at = at * n[3 + d] + index[d * TAPS + place[d]];
          by *= weight[d * TAPS + place[d]];
        }
        if (by != 0) sum += by * (P)X(plane * size + at);
      }
      Y(plane * points + item % points, (T)sum);
    }
)";

Result<ComputeKernel> make_grid_sample(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(work, image_type(request));
  const auto mode = request.op.attr<std::string>("mode", "linear");
  const auto padding = request.op.attr<std::string>("padding_mode", "zeros");
  const bool nearest = mode == "nearest", cubic = mode == "cubic";
  const size_t rank = spatial_rank(request, 0);
  const int taps = nearest ? 1 : cubic ? 4 : 2;
  int all = 1;
  for (size_t d = 0; d < rank; ++d) all *= taps;
  ComputeSource source(request, target);
  define_types(source, work, target);
  source.define("R", rank);
  source.define("TAPS", taps);
  source.define("ALL_TAPS", all);
  source.define("FIRST", cubic ? -1 : 0);
  source.define("NEAREST", nearest ? 1 : 0);
  source.define("ALIGNED", request.op.attr<int64_t>("align_corners", 0));
  source.define("WEIGHT(t, fraction)", nearest ? "(P)1"
                                       : cubic ? "cubic((t) - (fraction))"
                                               : "((t) == 0 ? 1 - (fraction) : (fraction))");
  const bool reflects = padding == "reflection";
  source.define("PAD_POINT", padding == "border" ? "x = clamp(x, (P)0, max(last, (P)0))"
                             : reflects          ? "x = reflected(x, low, high)"
                                                 : "");
  source.define("PAD_INDEX", reflects              ? "at = clamp((long)reflected((P)at, low, high), 0l, extent - 1)"
                             : padding == "border" ? "at = clamp(at, 0l, extent - 1)"
                                                   : "");
  if (reflects) source.functions(kReflected);
  if (cubic) source.functions(kCubic);
  const ElementType grid = work_type_of(request.operands[1].element());
  source.load("X", 0, work);
  source.load("GRID", 1, grid);
  source.store("Y", 0, work);
  return source.kernel(kGridBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], image = spatial_of(x);
    const int64_t points = elements_of(spatial_of(shapes.results[0]));
    if (image.empty()) return error(Code::unsupported, "an image of ", x, " has no axes to sample");
    ComputeLaunch made{{points, x[1], elements_of(image)}, x[0] * points};
    made.numbers.insert(made.numbers.end(), image.begin(), image.end());
    return made;
  });
}

// ---- AffineGrid ----

// n: 0 points of an image, then extents. An item is a point.
constexpr std::string_view kAffineBody = R"(
    P point[K + 1];
    long rest = item % n[0];
    for (int d = K - 1; d >= 0; --d) {
      const P size = (P)n[1 + d], i = (P)(rest % n[1 + d]);
      rest /= n[1 + d];
      point[K - 1 - d] = ALIGNED ? (size == 1 ? 0 : 2 * i / (size - 1) - 1) : (2 * i + 1) / size - 1;
    }
    point[K] = 1;
    for (int row = 0; row < K; ++row) {
      P sum = 0;
      for (int j = 0; j <= K; ++j) sum += (P)THETA((item / n[0] * K + row) * (K + 1) + j) * point[j];
      Y(item * K + row, (T)sum);
    }
)";

Result<ComputeKernel> make_affine_grid(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(work, image_type(request));
  const Shape& y = request.results[0].shape();
  if (!y.ranked() || y.rank() < 3) return error(Code::unsupported, "the rank of the grid is not known");
  ComputeSource source(request, target);
  define_types(source, work, target);
  source.define("K", y.rank() - 2);
  source.define("ALIGNED", request.op.attr<int64_t>("align_corners", 0));
  source.load("THETA", 0, work);
  source.store("Y", 0, work);
  return source.kernel(kAffineBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& y = shapes.results[0];
    const Dims extents(y.begin() + 1, y.end() - 1);
    ComputeLaunch made{{elements_of(extents)}, y[0] * elements_of(extents)};
    made.numbers.insert(made.numbers.end(), extents.begin(), extents.end());
    return made;
  });
}

// ---- RoiAlign ----

// n: 0 channels, 1 height, 2 width, 3 rows and 4 columns of bins, 5 images.
constexpr std::string_view kRoiBody = R"(
    const long column = item % n[4], row = item / n[4] % n[3], channel = item / n[4] / n[3] % n[0];
    const long box = item / n[4] / n[3] / n[0], image = IMAGE(box), H = n[1], W = n[2];
    const int wrong = image < 0 || image >= n[5];
    const long plane = ((wrong ? 0 : image) * n[0] + channel) * H * W;
    P start[2], pace[2];
    long samples[2], first[2], end[2];
    for (int d = 0; d < 2; ++d) {
      const P low = (P)ROI(box * 4 + 1 - d) * (P)SCALE, high = (P)ROI(box * 4 + 3 - d) * (P)SCALE;
      const P bin = (HALF ? high - low : fmax(high - low, (P)1)) / (P)n[3 + d];
      samples[d] = RATIO > 0 ? RATIO : max(whole(ceil(bin)), 0l);
      pace[d] = bin / (P)max(samples[d], 1l);
      const long at = (d == 0 ? row : column) * samples[d];
      start[d] = (HALF ? low - (P)0.5 : low) + ((P)at + (P)0.5) * pace[d];
      first[d] = 0, end[d] = samples[d];
      if (fabs(pace[d]) > 0) {
        const P a = (-1 - start[d]) / pace[d], b = ((P)n[1 + d] - start[d]) / pace[d];
        first[d] = clamp(whole(floor(fmin(a, b))) - 1, 0l, samples[d]);
        end[d] = clamp(whole(ceil(fmax(a, b))) + 2, first[d], samples[d]);
      }
    }
    const long lines = end[0] - first[0], each = end[1] - first[1], all = samples[0] * samples[1];
    P folded = LARGEST && all > 0 && lines * each == all ? (P)-INFINITY : (P)0;
    for (long s = 0; s < lines * each; ++s) {
      const P y = start[0] + (P)(first[0] + s / each) * pace[0], x = start[1] + (P)(first[1] + s % each) * pace[1];
      const int inside = y >= -1 && y <= (P)H && x >= -1 && x <= (P)W;
      const P down = fmax(y, (P)0), across = fmax(x, (P)0);
      const long top = inside ? min((long)down, H - 1) : 0, left = inside ? min((long)across, W - 1) : 0;
      const P lower = top == H - 1 ? (P)0 : down - (P)top, righter = left == W - 1 ? (P)0 : across - (P)left;
      for (int corner = 0; corner < 4; ++corner) {
        const P by = (corner / 2 ? lower : 1 - lower) * (corner % 2 ? righter : 1 - righter);
        const long at = min(top + corner / 2, H - 1) * W + min(left + corner % 2, W - 1);
        const P part = inside && by != 0 ? by * (P)X(plane + at) : (P)0;
        folded = LARGEST ? (folded < part ? part : folded) : folded + part;
      }
    }
    if (wrong) FAULT;
    Y(item, (T)(LARGEST ? folded : folded / (P)max(all, 1l)));
)";
constexpr std::string_view kWhole = R"(static long whole(P x) {
  return isnan(x) ? 0 : (long)clamp(round(x), (P)-1e9, (P)1e9);
}
)";

Result<ComputeKernel> make_roi_align(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(work, image_type(request));
  const Op& op = request.op;
  ComputeSource source(request, target);
  define_types(source, work, target);
  source.functions(kWhole);
  source.define_float("SCALE", op.attr<float>("spatial_scale", 1.0f));
  source.define("HALF", op.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "half_pixel" ? 1 : 0);
  source.define("LARGEST", op.attr<std::string>("mode", "avg") == "max" ? 1 : 0);
  source.define("RATIO", str("((long)", op.attr<int64_t>("sampling_ratio", 0), ")"));
  source.load("X", 0, work);
  source.load("ROI", 1, work_type_of(request.operands[1].element()));
  source.load("IMAGE", 2, kI64);
  source.store("Y", 0, work);
  source.can_fail();
  return source.kernel(kRoiBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &y = shapes.results[0];
    if (elements_of(shapes.operands[2]) != y[0] || elements_of(x) == 0)
      return error(Code::unsupported, "boxes of ", y, " on images of ", x);
    return ComputeLaunch{{x[1], x[2], x[3], y[2], y[3], x[0]}, elements_of(y)};
  });
}

constexpr ComputeRow kSamplingRows[] = {
    {GridSample::kName, make_grid_sample}, {AffineGrid::kName, make_affine_grid}, {RoiAlign::kName, make_roi_align}};

}  // namespace

std::span<const ComputeRow> sampling_rows() { return kSamplingRows; }

}  // namespace tenon::opencl
