#include <tenon/ops/resize.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/ops/resize_taps.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/reference/elements.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/loops.hpp>
#include <tenon/reference/sliding_window.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

// Integers are interpolated in f64.
ElementType image_type(ElementType element) { return element.is_float() ? work_type(element) : kF64; }

// ---- Resize ----

// What each output of one axis reads; `outside` where the region of interest is outside X.
struct AxisTaps {
  std::vector<std::vector<ResizeTap>> taps;
  std::vector<bool> outside;

  bool identity(int64_t in) const {
    if (static_cast<int64_t>(taps.size()) != in) return false;
    for (size_t i = 0; i < taps.size(); ++i) {
      if (outside[i] || taps[i].size() != 1 || taps[i][0].index != static_cast<int64_t>(i) || taps[i][0].weight != 1)
        return false;
    }
    return true;
  }
};

// The lists may be larger than the result: a kilobyte of model can request a long axis with few rows.
Result<AxisTaps> axis_taps(const Op& op, const ResizePlan& plan, size_t axis, int64_t in) {
  const ResizeAxis resized(op, in, plan.out[axis], plan.scales[axis], plan.start[axis], plan.end[axis]);
  const auto taps_each = static_cast<double>(std::min(in, 2 * std::min(resized.reach(), in) + 1));
  const double bytes = static_cast<double>(plan.out[axis]) *
                       (sizeof(std::vector<ResizeTap>) + taps_each * static_cast<double>(sizeof(ResizeTap)));
  if (bytes > static_cast<double>(tensor_bytes_limit()))
    return error(Code::resource_exhausted, "axis ", axis, " of extent ", plan.out[axis], " takes lists of ", bytes,
                 " bytes of what each element reads; the limit for one tensor is ", tensor_bytes_limit(),
                 " (TENON_TENSOR_LIMIT raises it)");
  AxisTaps out;
  for (int64_t i = 0; i < plan.out[axis]; ++i) {
    ResizeTaps taps = resized.taps(i);
    out.outside.push_back(taps.outside);
    out.taps.push_back(std::move(taps.taps));
  }
  return out;
}

// x seen as outer x in x inner, with its middle axis resampled by `taps`. What is outside becomes the extrapolated
// value; later axes preserve it where they are inside, because their weights sum to 1.
template <class T>
std::vector<T> resample(const std::vector<T>& x, int64_t outer, int64_t in, int64_t inner, const AxisTaps& taps,
                        T extrapolation, ParallelFor& parallel) {
  const auto out = static_cast<int64_t>(taps.taps.size());
  std::vector<T> y(outer * out * inner);
  parallel.run(outer * out, grain_of(inner * 4), [&](int64_t begin, int64_t end) {
    std::vector<double> sums(inner);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i = row % out;
      T* to = y.data() + row * inner;
      if (taps.outside[i]) {
        std::fill_n(to, inner, extrapolation);
        continue;
      }
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const ResizeTap& tap : taps.taps[i]) {
        const T* from = x.data() + (row / out * in + tap.index) * inner;
        for (int64_t j = 0; j < inner; ++j) sums[j] += tap.weight * static_cast<double>(from[j]);
      }
      for (int64_t j = 0; j < inner; ++j) to[j] = static_cast<T>(sums[j]);
    }
  });
  return y;
}

// Sets what is outside X along `axis`.
void extrapolate(const std::vector<bool>& outside, const AxisView& axis, double value, Tensor& y) {
  for (int64_t slice = 0; slice < axis.outer * axis.extent; ++slice) {
    if (!outside[static_cast<size_t>(slice % axis.extent)]) continue;
    for (int64_t i = 0; i < axis.inner; ++i) y.set_double(slice * axis.inner + i, value);
  }
}

// Nearest elements of any type, which are moved without arithmetic.
Result<void> resize_nearest(EvalContext& context, const std::vector<AxisTaps>& axes) {
  TENON_TRY(x, spread(context.tensor(0)));
  TENON_TRY(y, SpreadOutput::open(context, 0));
  const Dims strides = row_major_strides(x.dims());
  std::vector<Dims> places(axes.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (const std::vector<ResizeTap>& taps : axes[axis].taps) places[axis].push_back(taps[0].index * strides[axis]);
  }
  copy_gathered(context.parallel(), x, places, y.tensor());
  TENON_OK(y.close());
  Tensor result = y.result();
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (std::ranges::find(axes[axis].outside, true) == axes[axis].outside.end()) continue;
    if (!result.element().is_number())
      return error(Code::unsupported, "a region outside X has no value to take in ", result.element());
    extrapolate(axes[axis].outside, AxisView(result.dims(), axis), context.attr<float>("extrapolation_value", 0.0f),
                result);
  }
  return {};
}

std::optional<std::vector<double>> numbers(EvalContext& context, size_t operand) {
  if (operand >= context.operand_count() || !context.has_operand(operand) || context.tensor(operand).size() == 0)
    return {};
  std::vector<double> out;
  for (int64_t i = 0; i < context.tensor(operand).size(); ++i) out.push_back(context.tensor(operand).double_at(i));
  return out;
}

Result<void> resize(EvalContext& context) {
  const Tensor& operand = context.tensor(0);
  std::optional<std::vector<int64_t>> sizes;
  if (context.operand_count() > 3 && context.has_operand(3)) sizes = context.tensor(3).to_ints();
  TENON_TRY(plan, ResizePlan::of(context.op(), operand.dims(), numbers(context, 2), sizes, numbers(context, 1)));
  // Before the lists of taps, which are as long as the extents: results that are too large or empty end here.
  TENON_TRY(result, context.output(0));
  if (result->size() == 0) return {};
  std::vector<AxisTaps> axes;
  for (size_t axis = 0; axis < plan.out.size(); ++axis) {
    if (operand.dim(axis) == 0 && plan.out[axis] > 0) {
      return error(Code::invalid_argument, "axis ", axis, " has no elements that could become ", plan.out[axis]);
    }
    AxisTaps taps;
    if (plan.resized[axis]) {
      TENON_TRY(resized, axis_taps(context.op(), plan, axis, operand.dim(axis)));
      taps = std::move(resized);
    } else {
      for (int64_t i = 0; i < plan.out[axis]; ++i) taps.taps.push_back({{i, 1}});
      taps.outside.assign(taps.taps.size(), false);
    }
    axes.push_back(std::move(taps));
  }
  if (context.attr<std::string>("mode", "nearest") == "nearest") return resize_nearest(context, axes);
  const ElementType work = image_type(operand.element());
  TENON_TRY(x, in_work_type(operand, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  with_work_type(work, [&]<class T>() {
    std::vector<T> image(x.as<T>().begin(), x.as<T>().end());
    Dims dims = x.dims();
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (axes[axis].identity(dims[axis])) continue;
      int64_t outer = 1, inner = 1;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (i != axis) (i < axis ? outer : inner) *= dims[i];
      }
      image = resample<T>(image, outer, dims[axis], inner, axes[axis], context.attr<float>("extrapolation_value", 0.0f),
                          context.parallel());
      dims[axis] = plan.out[axis];
    }
    std::copy(image.begin(), image.end(), y.data<T>());
  });
  return y.deliver();
}

// ---- GridSample ----

// Reflects x at low and high until it is between them.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  double at = std::fmod(std::abs(x - low), 2 * range);
  if (at > range) at = 2 * range - at;
  return low + at;
}

enum class Padding : uint8_t { zeros, border, reflection };
enum class Sampling : uint8_t { nearest, linear, cubic };

class GridSampler {
 public:
  GridSampler(const Op& op, const Dims& image) : image_(image), aligned_(op.attr<int64_t>("align_corners", 0) != 0) {
    const auto padding = op.attr<std::string>("padding_mode", "zeros"), mode = op.attr<std::string>("mode", "linear");
    padding_ = padding == "border" ? Padding::border : padding == "reflection" ? Padding::reflection : Padding::zeros;
    sampling_ = mode == "nearest" ? Sampling::nearest : mode == "cubic" ? Sampling::cubic : Sampling::linear;
  }

  // The elements of one image that a point reads. `point`: last axis first.
  void taps(const std::vector<double>& point, std::vector<ResizeTap>& out) const {
    out.assign(1, {0, 1});
    for (size_t axis = 0; axis < image_.size(); ++axis) {
      const auto along = axis_taps(point[image_.size() - 1 - axis], image_[axis]);
      std::vector<ResizeTap> next;
      for (const ResizeTap& tap : out) {
        for (const ResizeTap& other : along)
          next.push_back({tap.index * image_[axis] + other.index, tap.weight * other.weight});
      }
      out = std::move(next);
    }
  }

 private:
  std::vector<ResizeTap> axis_taps(double coordinate, int64_t extent) const {
    const auto size = static_cast<double>(extent);
    const double low = aligned_ ? 0 : -0.5, high = aligned_ ? size - 1 : size - 0.5;
    double x = aligned_ ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    if (!std::isfinite(x)) x = std::isnan(x) || x < 0 ? -1e9 : 1e9;
    x = std::clamp(x, -1e9, 1e9);
    if (sampling_ == Sampling::nearest) x = std::nearbyint(x);
    if (padding_ == Padding::border)
      x = std::clamp(x, 0.0, size - 1);
    else if (padding_ == Padding::reflection)
      x = reflected(x, low, high);
    if (sampling_ == Sampling::nearest) x = std::nearbyint(x);
    const auto floor = static_cast<int64_t>(std::floor(x));
    const double fraction = x - std::floor(x);
    std::vector<ResizeTap> out;
    const auto add = [&](int64_t index, double weight) {
      if (padding_ == Padding::reflection)
        index = static_cast<int64_t>(reflected(static_cast<double>(index), low, high));
      if (padding_ != Padding::zeros) index = std::clamp<int64_t>(index, 0, extent - 1);
      if (weight != 0 && index >= 0 && index < extent) out.push_back({index, weight});
    };
    if (sampling_ == Sampling::nearest) {
      add(floor, 1);
    } else if (sampling_ == Sampling::linear) {
      add(floor, 1 - fraction);
      add(floor + 1, fraction);
    } else {
      for (int64_t i = -1; i <= 2; ++i) add(floor + i, cubic_weight(static_cast<double>(i) - fraction, -0.75));
    }
    return out;
  }

  Dims image_;
  bool aligned_;
  Padding padding_;
  Sampling sampling_;
};

Result<void> grid_sample(EvalContext& context) {
  const Tensor& grid = context.tensor(1);
  const ElementType work = image_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Dims image = spatial_dims(x.dims());
  const GridSampler sampler(context.op(), image);
  const int64_t channels = x.dim(1), size = product_of_dims(image),
                points = product_of_dims(spatial_dims(y.tensor().dims()));
  const auto axes = static_cast<int64_t>(image.size());
  with_work_type(work, [&]<class T>() {
    context.parallel().run(x.dim(0) * points, grain_of(64 + channels * 8), [&](int64_t begin, int64_t end) {
      std::vector<double> point(image.size());
      std::vector<ResizeTap> taps;
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t axis = 0; axis < axes; ++axis) point[axis] = grid.double_at(p * axes + axis);
        sampler.taps(point, taps);
        for (int64_t channel = 0; channel < channels; ++channel) {
          const int64_t plane = p / points * channels + channel;
          double sum = 0;
          for (const ResizeTap& tap : taps)
            sum += tap.weight * static_cast<double>(x.as<T>()[plane * size + tap.index]);
          y.data<T>()[plane * points + p % points] = static_cast<T>(sum);
        }
      }
    });
  });
  return y.deliver();
}

// ---- AffineGrid, Col2Im ----

Result<void> affine_grid(EvalContext& context) {
  const Tensor& theta = context.tensor(0);
  TENON_TRY(grid, context.output(0));
  const bool aligned = context.attr<int64_t>("align_corners", 0) != 0;
  const Dims extents(grid->dims().begin() + 1, grid->dims().end() - 1);
  const auto k = static_cast<int64_t>(extents.size());
  const int64_t points = product_of_dims(extents);
  std::vector<double> point(k + 1, 1);  // last axis first, then 1
  for (int64_t p = 0; p < grid->dim(0) * points; ++p) {
    int64_t rest = p % points;
    for (int64_t axis = k; axis-- > 0; rest /= extents[axis]) {
      const auto i = static_cast<double>(rest % extents[axis]), size = static_cast<double>(extents[axis]);
      point[k - 1 - axis] = aligned ? (size == 1 ? 0 : 2 * i / (size - 1) - 1) : (2 * i + 1) / size - 1;
    }
    for (int64_t row = 0; row < k; ++row) {
      double sum = 0;
      for (int64_t j = 0; j <= k; ++j) sum += theta.double_at((p / points * k + row) * (k + 1) + j) * point[j];
      grid->set_double(p * k + row, sum);
    }
  }
  return {};
}

Result<void> col2im(EvalContext& context) {
  const ElementType work = image_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const auto block = context.tensor(2).to_ints();
  const Dims image = spatial_dims(y.tensor().dims());
  TENON_TRY(window, Window::of(context.op(), image.size(), std::vector<Dim>(block.begin(), block.end())));
  Dims blocks;
  for (size_t axis = 0; axis < image.size(); ++axis) {
    TENON_TRY(extent, window.output_extent(axis, Dim(image[axis])));
    if (!extent.is_static()) {
      return error(Code::unsupported, context.op().describe(), ": an image extent of ", image[axis], " is too large");
    }
    blocks.push_back(extent.value());
  }
  SlidingWindow g;
  g.set(window, image, blocks);
  const int64_t planes = y.tensor().dim(0) * y.tensor().dim(1);
  with_work_type(work, [&]<class T>() {
    context.parallel().run(planes, grain_of(g.taps * g.out_size), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        T* to = y.data<T>() + plane * g.in_size;
        std::fill_n(to, g.in_size, T(0));
        scatter_taps(g, x.as<T>().data() + plane * g.taps * g.out_size, to);
      }
    });
  });
  return y.deliver();
}

const EvaluatorRegistration kResizeRegistered({
    {Resize::kName, resize},
    {GridSample::kName, grid_sample},
    {AffineGrid::kName, affine_grid},
    {Col2Im::kName, col2im},
});

}  // namespace
}  // namespace tenon
