#include <tenon/ops/pooling.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tenon/ops/window.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/loops.hpp>
#include <tenon/reference/sliding_window.hpp>

namespace tenon {
namespace {

Result<SlidingWindow> pool_window(const Op& op, const Dims& x, const Dims& y) {
  TENON_TRY(window, Window::of(op, x.size() - 2));
  SlidingWindow sliding;
  sliding.set(window, spatial_dims(x), spatial_dims(y));
  return sliding;
}

// Calls body(plane, first output, row) for every row of every [n, c] plane, in parallel; `row` is one scratch row for
// each S.
template <class... S, class Body>
void for_rows(const SlidingWindow& g, int64_t planes, ParallelFor& parallel, Body&& body) {
  const int64_t columns = g.out[g.last()];
  parallel.run(planes, grain_of(g.out_size * g.taps), [&](int64_t begin, int64_t end) {
    std::tuple<std::vector<S>...> scratch{std::vector<S>(columns)...};
    for (int64_t plane = begin; plane < end; ++plane) {
      for (int64_t row = 0; row < g.rows(); ++row) {
        std::apply([&](auto&... lines) { body(plane, row, lines.data()...); }, scratch);
      }
    }
  });
}

// Calls body(j, input) for the outputs j of `row` whose tap `tap` is inside the input; `input` is an index into the
// plane.
template <class Body>
void for_tap(const SlidingWindow& g, int64_t row, const int64_t* offset, Body&& body) {
  const size_t last = g.last();
  const int64_t start = g.input_row(row, offset);
  if (start < 0) return;
  const OutputRange range = inside(offset[last], g.strides[last], g.in[last], g.out[last]);
  for (int64_t j = range.begin; j < range.end; ++j) body(j, start + offset[last] + j * g.strides[last]);
}

template <class T>
bool beats(T value, T best) {
  if constexpr (std::is_floating_point_v<T>)
    return value > best || std::isnan(value);
  else
    return value > best;
}

// Converts a row-major index into a plane to one with the axes in reverse order.
int64_t column_major(int64_t index, const Dims& dims) {
  int64_t out = 0, stride = product_of_dims(dims);
  for (size_t axis = dims.size(); axis-- > 0; index /= dims[axis]) {
    stride /= dims[axis];
    out += index % dims[axis] * stride;
  }
  return out;
}

template <class T>
void max_pool_rows(const SlidingWindow& g, int64_t planes, const T* x, T* y, int64_t* indices, bool column_order,
                   ParallelFor& parallel) {
  const auto offsets = g.tap_offsets();
  const int64_t columns = g.out[g.last()];
  for_rows<int64_t>(g, planes, parallel, [&](int64_t plane, int64_t row, int64_t* where) {
    const T* image = x + plane * g.in_size;
    T* to = y + plane * g.out_size + row * columns;
    std::fill_n(
        to, columns,
        std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest());
    std::fill_n(where, columns, int64_t{-1});
    for (int64_t tap = 0; tap < g.taps; ++tap) {
      for_tap(g, row, &offsets[tap * g.rank()], [&](int64_t j, int64_t input) {
        if (where[j] >= 0 && !beats(image[input], to[j])) return;
        if constexpr (std::is_floating_point_v<T>) {
          if (std::isnan(to[j])) return;
        }
        to[j] = image[input];
        where[j] = input;
      });
    }
    for (int64_t j = 0; indices && j < columns; ++j) {
      const int64_t at = column_order && where[j] >= 0 ? column_major(where[j], g.in) : where[j];
      indices[plane * g.out_size + row * columns + j] = plane * g.in_size + at;
    }
  });
}

Result<void> max_pool(EvalContext& context) {
  const Tensor& operand = context.tensor(0);
  const ElementType work = operand.element().is_float() ? work_type(operand.element()) : operand.element();
  if (!work.is_float() && work != kI8 && work != kU8)
    return error(Code::invalid_argument, "X is of ", work,
                 ", floats and integers of 8 bits are pooled; cast it before");
  TENON_TRY(x, in_work_type(operand, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(g, pool_window(context.op(), x.dims(), y.tensor().dims()));
  int64_t* indices = nullptr;
  if (context.result_count() > 1) {
    TENON_TRY(out, context.output(1));
    indices = out->mutable_as<int64_t>().data();
  }
  const auto run = [&]<class T>() {
    max_pool_rows<T>(g, x.dim(0) * x.dim(1), x.as<T>().data(), y.data<T>(), indices,
                     context.attr<int64_t>("storage_order", 0) == 1, context.parallel());
  };
  if (work == kI8)
    run.operator()<int8_t>();
  else if (work == kU8)
    run.operator()<uint8_t>();
  else
    with_work_type(work, run);
  return y.deliver();
}

// The number of taps of the window at output `row`, `column` that are in the input or its padding.
int64_t padded_count(const SlidingWindow& g, const Dims& pads_end, int64_t row, int64_t column) {
  int64_t count = 1, rest = row;
  for (size_t axis = g.rank(); axis-- > 0;) {
    const int64_t at = axis == g.last() ? column : rest % g.out[axis];
    if (axis != g.last()) rest /= g.out[axis];
    const int64_t first = at * g.strides[axis] - g.begin[axis];
    const OutputRange range = inside(first, g.dilations[axis], g.in[axis] + pads_end[axis], g.kernel[axis]);
    count *= first < 0 ? range.end : range.end - range.begin;
  }
  return count;
}

// The padding after the input: up to the last window for auto_pad, otherwise as stated.
Dims pads_end(const Op& op, const SlidingWindow& g) {
  Dims pads;
  const auto stated = op.attr<Attribute::Integers>("pads");
  const bool explicit_pads = op.attr<std::string>("auto_pad", "NOTSET") == "NOTSET" && !stated.empty();
  for (size_t axis = 0; axis < g.rank(); ++axis) {
    const int64_t reach =
        (g.out[axis] - 1) * g.strides[axis] + (g.kernel[axis] - 1) * g.dilations[axis] + 1 - g.begin[axis];
    const bool same = op.attr<std::string>("auto_pad", "NOTSET").starts_with("SAME");
    pads.push_back(explicit_pads ? stated[g.rank() + axis] : same ? std::max<int64_t>(0, reach - g.in[axis]) : 0);
  }
  return pads;
}

// Sums `term` over the elements of each window in double, and returns `finish`(sum, elements inside, row, column).
template <class T, class Term, class Finish>
void sum_pool_rows(const SlidingWindow& g, int64_t planes, const T* x, T* y, ParallelFor& parallel, Term term,
                   Finish finish) {
  const auto offsets = g.tap_offsets();
  const int64_t columns = g.out[g.last()];
  for_rows<double, int64_t>(g, planes, parallel, [&](int64_t plane, int64_t row, double* sums, int64_t* counts) {
    const T* image = x + plane * g.in_size;
    std::fill_n(sums, columns, 0.0);
    std::fill_n(counts, columns, int64_t{0});
    for (int64_t tap = 0; tap < g.taps; ++tap) {
      for_tap(g, row, &offsets[tap * g.rank()], [&](int64_t j, int64_t input) {
        sums[j] += term(static_cast<double>(image[input]));
        ++counts[j];
      });
    }
    for (int64_t j = 0; j < columns; ++j)
      y[plane * g.out_size + row * columns + j] = static_cast<T>(finish(sums[j], counts[j], row, j));
  });
}

template <class Term, class Finish>
Result<void> sum_pool(EvalContext& context, const SlidingWindow& g, Term term, Finish finish) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  with_work_type(work, [&]<class T>() {
    sum_pool_rows<T>(g, x.dim(0) * x.dim(1), x.as<T>().data(), y.data<T>(), context.parallel(), term, finish);
  });
  return y.deliver();
}

Result<SlidingWindow> window_of(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  return pool_window(context.op(), context.tensor(0).dims(), y->dims());
}

// A single window over each channel.
SlidingWindow whole_channel(const Tensor& x) {
  SlidingWindow g;
  g.in = g.kernel = spatial_dims(x.dims());
  g.out = g.strides = g.dilations = Dims(g.in.size(), 1);
  g.begin = Dims(g.in.size(), 0);
  g.finish();
  return g;
}

double power_sum_term(double value, int64_t p) { return std::pow(std::abs(value), static_cast<double>(p)); }

Result<void> lp_pool_over(EvalContext& context, const SlidingWindow& g) {
  const int64_t p = context.attr<int64_t>("p", 2);
  const auto root = [p](double sum, int64_t, int64_t, int64_t) { return std::pow(sum, 1.0 / static_cast<double>(p)); };
  return sum_pool(
      context, g, [p](double value) { return power_sum_term(value, p); }, root);
}

Result<void> average_pool(EvalContext& context) {
  TENON_TRY(g, window_of(context));
  const bool with_padding = context.attr<int64_t>("count_include_pad", 0) != 0;
  const Dims end = pads_end(context.op(), g);
  return sum_pool(
      context, g, [](double value) { return value; },
      [&](double sum, int64_t count, int64_t row, int64_t column) {
        const int64_t elements = with_padding ? padded_count(g, end, row, column) : count;
        return elements == 0 ? 0 : sum / static_cast<double>(elements);
      });
}

Result<void> lp_pool(EvalContext& context) {
  TENON_TRY(g, window_of(context));
  return lp_pool_over(context, g);
}

Result<void> global_average_pool(EvalContext& context) {
  return sum_pool(
      context, whole_channel(context.tensor(0)), [](double value) { return value; },
      [](double sum, int64_t count, int64_t, int64_t) { return sum / static_cast<double>(count); });
}

Result<void> global_lp_pool(EvalContext& context) { return lp_pool_over(context, whole_channel(context.tensor(0))); }

Result<void> global_max_pool(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const SlidingWindow g = whole_channel(x);
  with_work_type(work, [&]<class T>() {
    max_pool_rows<T>(g, x.dim(0) * x.dim(1), x.as<T>().data(), y.data<T>(), nullptr, false, context.parallel());
  });
  return y.deliver();
}

// ---- MaxUnpool ----

Result<void> max_unpool(EvalContext& context) {
  const Tensor& indices = context.tensor(1);
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(shape, max_unpool_shape(context.op(), Shape(x.dims())));
  const Dims from = *shape.static_dims(), to = y.tensor().dims();
  if (indices.dims() != x.dims() || from.size() != to.size()) {
    return error(Code::invalid_argument, "X ", x.dims(), ", I ", indices.dims(), " and the output ", to,
                 " must fit each other");
  }
  const Dims strides = row_major_strides(to);
  const int64_t count = product_of_dims(from);
  return with_work_type(work, [&]<class T>() -> Result<void> {
    std::fill_n(y.data<T>(), y.tensor().size(), T(0));
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t rest = indices.int_at(i), at = 0;
      if (rest < 0 || rest >= count) {
        return error(Code::invalid_argument, "element ", i, " of I is ", rest, ", X was pooled from ", count,
                     " elements ", from);
      }
      for (size_t axis = from.size(); axis-- > 0; rest /= from[axis]) {
        if (rest % from[axis] >= to[axis]) {
          return error(Code::invalid_argument, "element ", i, " of I lies at ", rest % from[axis], " on axis ", axis,
                       ", the output has ", to[axis], " there");
        }
        at += rest % from[axis] * strides[axis];
      }
      y.data<T>()[at] = x.as<T>()[i];
    }
    return y.deliver();
  });
}

// ---- boxes ----

Result<int64_t> image_of(double index, int64_t box, int64_t batch) {
  if (index >= 0 && index < static_cast<double>(batch)) return static_cast<int64_t>(index);
  return error(Code::invalid_argument, "box ", box, " lies in image ", index, ", there are ", batch);
}

// Rounds a number from a model to an index, without overflow.
int64_t rounded(double value) {
  return static_cast<int64_t>(std::clamp(std::isnan(value) ? 0 : std::round(value), -1e9, 1e9));
}

// Elements [begin, end) of bin `bin` of `bins` over `extent` elements from `start`, clamped to [0, limit).
OutputRange roi_bin(int64_t bin, int64_t bins, int64_t start, int64_t extent, int64_t limit) {
  const double size = static_cast<double>(extent) / static_cast<double>(bins);
  const auto edge = [&](double at) { return std::clamp<int64_t>(static_cast<int64_t>(at) + start, 0, limit); };
  return {edge(std::floor(static_cast<double>(bin) * size)), edge(std::ceil(static_cast<double>(bin + 1) * size))};
}

Result<void> max_roi_pool(EvalContext& context) {
  const Tensor &x = context.tensor(0), &rois = context.tensor(1);
  TENON_TRY(y, context.output(0));
  const double scale = context.attr<float>("spatial_scale", 1.0f);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), rows = y->dim(2), columns = y->dim(3);
  for (int64_t box = 0; box < rois.dim(0); ++box) {
    TENON_TRY(image, image_of(rois.double_at(box * 5), box, x.dim(0)));
    const auto corner = [&](int64_t i) { return rounded(rois.double_at(box * 5 + i) * scale); };
    const int64_t left = corner(1), top = corner(2);
    const int64_t box_width = std::max<int64_t>(1, corner(3) - left + 1),
                  box_height = std::max<int64_t>(1, corner(4) - top + 1);
    for (int64_t e = 0; e < channels * rows * columns; ++e) {
      const int64_t channel = e / columns / rows;
      const OutputRange i = roi_bin(e / columns % rows, rows, top, box_height, height),
                        j = roi_bin(e % columns, columns, left, box_width, width);
      double best = i.begin < i.end && j.begin < j.end ? -INFINITY : 0;
      for (int64_t row = i.begin; row < i.end; ++row) {
        for (int64_t column = j.begin; column < j.end; ++column) {
          const double value = x.double_at(((image * channels + channel) * height + row) * width + column);
          if (beats(value, best)) best = value;
        }
      }
      y->set_double(box * channels * rows * columns + e, best);
    }
  }
  return {};
}

// The four neighbours of a point and their weights; weight 0 if the point is outside.
struct Neighbours {
  int64_t index[4] = {};
  double weight[4] = {};

  Neighbours(double y, double x, int64_t height, int64_t width) {
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return;
    const auto [top, bottom, lower] = split(y, height);
    const auto [left, right, righter] = split(x, width);
    const int64_t at[4] = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    const double by[4] = {(1 - lower) * (1 - righter), (1 - lower) * righter, lower * (1 - righter), lower * righter};
    std::copy_n(at, 4, index);
    std::copy_n(by, 4, weight);
  }

 private:
  struct Split {
    int64_t low, high;
    double fraction;
  };
  static Split split(double at, int64_t extent) {
    at = std::max(at, 0.0);
    const auto low = static_cast<int64_t>(at);
    if (low >= extent - 1) return {extent - 1, extent - 1, 0};
    return {low, low + 1, at - static_cast<double>(low)};
  }
};

// The points at which one axis of a box is sampled: `samples` in each of `bins`.
struct BoxAxis {
  double start, step;
  int64_t samples;

  BoxAxis(double low, double high, int64_t bins, int64_t sampling_ratio, bool half_pixel) {
    start = half_pixel ? low - 0.5 : low;
    const double extent = half_pixel ? high - low : std::max(high - low, 1.0);
    const double bin = extent / static_cast<double>(bins);
    samples = sampling_ratio > 0 ? sampling_ratio : std::max<int64_t>(0, rounded(std::ceil(bin)));
    step = bin / static_cast<double>(std::max<int64_t>(1, samples));
  }
  double at(int64_t bin, int64_t sample) const {
    return start + (static_cast<double>(bin * samples + sample) + 0.5) * step;
  }
  // The samples of a bin that may touch an image with this many lines. The others add nothing, and a box from a model
  // may have a thousand million of them.
  OutputRange touching(int64_t bin, int64_t lines) const {
    if (lines == 0) return {0, 0};
    if (!(std::abs(step) > 0)) return {0, samples};  // also for NaN, of which there is one sample
    const auto index = [&](double position) { return (position - at(bin, 0)) / step; };
    const double a = index(-1), b = index(static_cast<double>(lines));
    const int64_t first = std::clamp<int64_t>(rounded(std::floor(std::min(a, b))) - 1, 0, samples);
    return {first, std::clamp<int64_t>(rounded(std::ceil(std::max(a, b))) + 2, first, samples)};
  }
};

Result<void> roi_align(EvalContext& context) {
  const Tensor &rois = context.tensor(1), &batch_indices = context.tensor(2);
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const double scale = context.attr<float>("spatial_scale", 1.0f);
  const bool half_pixel = context.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool largest = context.attr<std::string>("mode", "avg") == "max";
  const int64_t ratio = context.attr<int64_t>("sampling_ratio", 0);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), rows = y.tensor().dim(2),
                columns = y.tensor().dim(3);
  constexpr int64_t kMostSamples = 4096;
  if (ratio > kMostSamples) {
    return error(Code::unsupported, "sampling_ratio ", ratio, ": at most ", kMostSamples,
                 " samples are taken along an axis of a bin");
  }
  if (batch_indices.size() != rois.dim(0)) {
    return error(Code::invalid_argument, "there are ", rois.dim(0), " boxes and ", batch_indices.size(),
                 " batch_indices");
  }
  std::vector<int64_t> images;
  for (int64_t box = 0; box < rois.dim(0); ++box) {
    TENON_TRY(image, image_of(static_cast<double>(batch_indices.int_at(box)), box, x.dim(0)));
    images.push_back(image);
  }
  with_work_type(work, [&]<class T>() {
    const T* elements = x.as<T>().data();
    T* out = y.data<T>();
    context.parallel().run(rois.dim(0) * rows * columns, grain_of(16 * channels), [&](int64_t begin, int64_t end) {
      std::vector<double> folded(channels);
      for (int64_t e = begin; e < end; ++e) {
        const int64_t box = e / columns / rows, row = e / columns % rows, column = e % columns;
        const auto corner = [&](int64_t i) { return rois.double_at(box * 4 + i) * scale; };
        const BoxAxis down(corner(1), corner(3), rows, ratio, half_pixel),
            across(corner(0), corner(2), columns, ratio, half_pixel);
        const OutputRange rows_touched = down.touching(row, height), columns_touched = across.touching(column, width);
        const int64_t lines = rows_touched.end - rows_touched.begin, each = columns_touched.end - columns_touched.begin;
        const int64_t samples = down.samples * across.samples;
        // A sample outside counts as 0.
        std::fill(folded.begin(), folded.end(), largest && samples > 0 && lines * each == samples ? -INFINITY : 0);
        for (int64_t s = 0; s < lines * each; ++s) {
          const Neighbours near(down.at(row, rows_touched.begin + s / each),
                                across.at(column, columns_touched.begin + s % each), height, width);
          for (int64_t channel = 0; channel < channels; ++channel) {
            const T* image = elements + (images[box] * channels + channel) * height * width;
            for (int n = 0; n < 4; ++n) {
              const double part = near.weight[n] == 0 ? 0 : near.weight[n] * static_cast<double>(image[near.index[n]]);
              // The largest weighted neighbour, not the largest sample, as in ONNX.
              folded[channel] = largest ? std::max(folded[channel], part) : folded[channel] + part;
            }
          }
        }
        for (int64_t channel = 0; channel < channels; ++channel) {
          const double value =
              largest ? folded[channel] : folded[channel] / static_cast<double>(std::max<int64_t>(1, samples));
          out[((box * channels + channel) * rows + row) * columns + column] = static_cast<T>(value);
        }
      }
    });
  });
  return y.deliver();
}

const EvaluatorRegistration kPoolingRegistered({
    {MaxPool::kName, max_pool},
    {AveragePool::kName, average_pool},
    {LpPool::kName, lp_pool},
    {GlobalMaxPool::kName, global_max_pool},
    {GlobalAveragePool::kName, global_average_pool},
    {GlobalLpPool::kName, global_lp_pool},
    {MaxUnpool::kName, max_unpool},
    {MaxRoiPool::kName, max_roi_pool},
    {RoiAlign::kName, roi_align},
});

}  // namespace
}  // namespace tenon
