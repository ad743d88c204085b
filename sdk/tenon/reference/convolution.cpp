#include <tenon/ops/convolution.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <tenon/ops/window.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/gemm.hpp>
#include <tenon/reference/loops.hpp>
#include <tenon/reference/quantized.hpp>
#include <tenon/reference/sliding_window.hpp>

namespace tenon {
namespace {

// A convolution with all sizes known.
struct Geometry : SlidingWindow {
  int64_t batch = 0, channels = 0, outputs = 0, group = 1;

  int64_t group_channels() const { return channels / group; }
  int64_t group_outputs() const { return outputs / group; }
  int64_t depth() const { return group_channels() * taps; }
};

std::vector<Dim> as_dims(const Dims& values) { return {values.begin(), values.end()}; }

// For an operator like Conv; w: [M, C / group, kernel ...].
Result<Geometry> conv_geometry(const Op& op, const Tensor& x, const Tensor& w, const Dims& y) {
  Geometry g;
  g.batch = x.dim(0), g.channels = x.dim(1), g.outputs = w.dim(0);
  g.group = op.attr<int64_t>("group", 1);
  TENON_TRY(window, Window::of(op, w.dims().size() - 2, as_dims(spatial_dims(w.dims()))));
  g.set(window, spatial_dims(x.dims()), spatial_dims(y));
  return g;
}

// The image of one group of channels as the matrix [(channel, tap), output position], generated on demand.
template <class T>
class ImagePanels final : public PanelSource<T> {
 public:
  ImagePanels(const Geometry& geometry, const T* image) : g_(geometry), image_(image), offsets_(g_.tap_offsets()) {}

  void pack(int64_t depth, int64_t depths, int64_t x, int64_t count, int64_t width, T* out) const override {
    std::vector<T> line((count + width - 1) / width * width, T(0));
    for (int64_t d = 0; d < depths; ++d) {
      const T* channel = image_ + (depth + d) / g_.taps * g_.in_size;
      read(channel, &offsets_[(depth + d) % g_.taps * g_.rank()], x, count, line.data());
      for (int64_t first = 0; first < count; first += width) {
        std::copy_n(line.data() + first, width, out + first * depths + d * width);
      }
    }
  }

 private:
  // Reads positions [x, x + count) under one tap, row by row.
  void read(const T* channel, const int64_t* offset, int64_t x, int64_t count, T* line) const {
    const size_t last = g_.last();
    const int64_t extent = g_.out[last], stride = g_.strides[last];
    for (int64_t at = 0; at < count;) {
      const int64_t row = (x + at) / extent, column = (x + at) % extent;
      const int64_t length = std::min(extent - column, count - at);
      const int64_t start = g_.input_row(row, offset);
      const int64_t first = column * stride + offset[last];
      const OutputRange range = start < 0 ? OutputRange{length, length} : inside(first, stride, g_.in[last], length);
      T* to = line + at;
      std::fill_n(to, range.begin, T(0));
      // A number, not a pointer: it may be before the image, and an empty image has no address.
      const int64_t from = std::max<int64_t>(start, 0) + first;
      if (stride == 1) {
        if (range.begin < range.end)
          std::copy(channel + from + range.begin, channel + from + range.end, to + range.begin);
      } else {
        for (int64_t j = range.begin; j < range.end; ++j) to[j] = channel[from + j * stride];
      }
      std::fill(to + range.end, to + length, T(0));
      at += length;
    }
  }

  const Geometry& g_;
  const T* image_;
  std::vector<int64_t> offsets_;
};

// One input channel per output channel: rows of the output accumulate shifted rows of the input.
template <class T>
void convolve_depthwise(const Geometry& g, const T* x, const T* w, const T* bias, T* y, ParallelFor& parallel) {
  const size_t last = g.last();
  const int64_t extent = g.out[last], stride = g.strides[last];
  const std::vector<int64_t> offsets = g.tap_offsets();
  parallel.run(g.batch * g.outputs, grain_of(g.out_size * g.taps), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t m = plane % g.outputs;
      const T* image = x + (plane / g.outputs * g.channels + m / g.group_outputs()) * g.in_size;
      T* rows = y + plane * g.out_size;
      std::fill_n(rows, g.out_size, bias ? bias[m] : T(0));
      for (int64_t row = 0; row < g.rows(); ++row) {
        T* to = rows + row * extent;
        for (int64_t tap = 0; tap < g.taps; ++tap) {
          const int64_t* offset = &offsets[tap * g.rank()];
          const int64_t start = g.input_row(row, offset);
          if (start < 0) continue;
          const T factor = w[m * g.taps + tap];
          const OutputRange range = inside(offset[last], stride, g.in[last], extent);
          const int64_t from = start + offset[last];
          if (stride == 1) {
            for (int64_t j = range.begin; j < range.end; ++j) to[j] += factor * image[from + j];
          } else {
            for (int64_t j = range.begin; j < range.end; ++j) to[j] += factor * image[from + j * stride];
          }
        }
      }
    }
  });
}

// Calls body(n, group, inner) for all pairs: distributed over threads if there are many, otherwise one by one, each
// with all threads inside.
template <class Body>
void for_each_group(int64_t batch, int64_t groups, ParallelFor& parallel, Body&& body) {
  const int64_t pairs = batch * groups;
  if (pairs >= 4 * parallel.threads() && parallel.threads() > 1) {
    parallel.run(pairs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i / groups, i % groups, serial());
    });
  } else {
    for (int64_t i = 0; i < pairs; ++i) body(i / groups, i % groups, parallel);
  }
}

// y += w * panels(n, group) for every image and group of channels, after initialising y with the bias.
template <class T, class Panels>
void convolve_by_panels(const Geometry& g, const T* w, const T* bias, T* y, ParallelFor& parallel, Panels&& panels) {
  for_each_group(g.batch, g.group, parallel, [&](int64_t n, int64_t group, ParallelFor& inner) {
    const int64_t first = group * g.group_outputs();
    T* to = y + (n * g.outputs + first) * g.out_size;
    for (int64_t m = 0; bias && m < g.group_outputs(); ++m)
      std::fill_n(to + m * g.out_size, g.out_size, bias[first + m]);
    const StridedPanels<T> weights(w + first * g.depth(), g.depth(), 1);
    panels(n, group, [&](const PanelSource<T>& image) {
      gemm<T>(g.group_outputs(), g.out_size, g.depth(), weights, image, to, g.out_size,
              bias ? Store::add : Store::overwrite, inner);
    });
  });
}

template <class T>
void convolve(const Geometry& g, const T* x, const T* w, const T* bias, T* y, ParallelFor& parallel) {
  if (g.group_channels() == 1 && g.group > 1) return convolve_depthwise(g, x, w, bias, y, parallel);
  // A 1x1 kernel without strides and pads reads the image itself as the matrix.
  const bool plain = g.taps == 1 && g.in == g.out &&
                     std::all_of(g.strides.begin(), g.strides.end(), [](auto s) { return s == 1; }) &&
                     std::all_of(g.begin.begin(), g.begin.end(), [](auto p) { return p == 0; });
  convolve_by_panels<T>(g, w, bias, y, parallel, [&](int64_t n, int64_t group, auto&& multiply) {
    const T* image = x + (n * g.channels + group * g.group_channels()) * g.in_size;
    if (plain)
      multiply(StridedPanels<T>(image, 1, g.in_size));
    else
      multiply(ImagePanels<T>(g, image));
  });
}

const Tensor* operand_or_null(EvalContext& context, size_t i) {
  return i < context.operand_count() && context.has_operand(i) ? &context.tensor(i) : nullptr;
}

// The operand in the work type; an invalid tensor if it is absent.
Result<Tensor> optional_in_work_type(EvalContext& context, size_t i, ElementType work) {
  const Tensor* tensor = operand_or_null(context, i);
  if (!tensor) return Tensor();
  return in_work_type(*tensor, work);
}
template <class T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.valid() ? tensor.as<T>().data() : nullptr;
}

Result<void> conv(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(w, in_work_type(context.tensor(1), work));
  TENON_TRY(b, optional_in_work_type(context, 2, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(g, conv_geometry(context.op(), x, w, y.tensor().dims()));
  with_work_type(work, [&]<class T>() {
    convolve<T>(g, x.as<T>().data(), w.as<T>().data(), data_or_null<T>(b), y.data<T>(), context.parallel());
  });
  return y.deliver();
}

// ---- ConvTranspose ----

// The convolution of which this is the transpose: its input is the output here.
Result<Geometry> transposed_geometry(const Op& op, const Tensor& x, const Tensor& w, const Dims& y) {
  Geometry g;
  g.batch = x.dim(0), g.channels = y[1], g.outputs = x.dim(1);
  g.group = op.attr<int64_t>("group", 1);
  g.in = spatial_dims(y), g.out = spatial_dims(x.dims()), g.kernel = spatial_dims(w.dims());
  const size_t rank = g.in.size();
  TENON_TRY(window, Window::of(op, rank, as_dims(g.kernel)));
  g.strides = window.strides, g.dilations = window.dilations;
  TENON_TRY(begin, conv_transpose_begin(op, window, {g.out.begin(), g.out.end()}, {g.in.begin(), g.in.end()}));
  for (const Expr& pad : begin) g.begin.push_back(pad.constant());
  g.finish();
  return g;
}

template <class T>
void convolve_transposed(const Geometry& g, const T* x, const T* w, const T* bias, T* y, ParallelFor& parallel) {
  constexpr int64_t kColumns = int64_t{1} << 22;  // approximate elements of the buffer between product and scatter
  const int64_t group_channels = g.group_channels(), lines = group_channels * g.taps;
  const int64_t chunk = std::clamp<int64_t>(kColumns / std::max<int64_t>(1, g.taps * g.out_size), 1,
                                            std::max<int64_t>(1, group_channels));
  for_each_group(g.batch, g.group, parallel, [&](int64_t n, int64_t group, ParallelFor& inner) {
    std::vector<T> columns(chunk * g.taps * g.out_size);
    const int64_t first = group * g.group_outputs();
    const MatrixView<T> image{x + (n * g.outputs + first) * g.out_size, g.out_size, 1};
    for (int64_t m = 0; m < group_channels; m += chunk) {
      const int64_t count = std::min(chunk, group_channels - m);
      gemm<T>(count * g.taps, g.out_size, g.group_outputs(), {w + first * lines + m * g.taps, 1, lines}, image,
              columns.data(), g.out_size, Store::overwrite, inner);
      inner.run(count, grain_of(g.taps * g.out_size), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t channel = group * group_channels + m + i;
          T* plane = y + (n * g.channels + channel) * g.in_size;
          std::fill_n(plane, g.in_size, bias ? bias[channel] : T(0));
          scatter_taps(g, columns.data() + i * g.taps * g.out_size, plane);
        }
      });
    }
  });
}

Result<void> conv_transpose(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(w, in_work_type(context.tensor(1), work));
  TENON_TRY(b, optional_in_work_type(context, 2, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(g, transposed_geometry(context.op(), x, w, y.tensor().dims()));
  with_work_type(work, [&]<class T>() {
    convolve_transposed<T>(g, x.as<T>().data(), w.as<T>().data(), data_or_null<T>(b), y.data<T>(), context.parallel());
  });
  return y.deliver();
}

// ---- quantised ----

Result<void> conv_integer(EvalContext& context) {
  const Tensor &x = context.tensor(0), &w = context.tensor(1);
  TENON_TRY(y, context.output(0));
  TENON_TRY(g, conv_geometry(context.op(), x, w, y->dims()));
  const auto image = centered(x, operand_or_null(context, 2), 1);
  const auto weights = centered(w, operand_or_null(context, 3), g.outputs);
  auto out = y->mutable_as<int32_t>();
  std::vector<uint32_t> sums(out.size());
  convolve<uint32_t>(g, image.data(), weights.data(), nullptr, sums.data(), context.parallel());
  std::transform(sums.begin(), sums.end(), out.begin(), [](uint32_t sum) { return std::bit_cast<int32_t>(sum); });
  return {};
}

Result<void> qlinear_conv(EvalContext& context) {
  const Tensor &x = context.tensor(0), &w = context.tensor(3), &w_scale = context.tensor(4);
  TENON_TRY(y, context.output(0));
  TENON_TRY(g, conv_geometry(context.op(), x, w, y->dims()));
  const auto image = centered(x, &context.tensor(2), 1);
  const auto weights = centered(w, &context.tensor(5), g.outputs);
  std::vector<uint32_t> bias, sums(y->size());
  if (const Tensor* b = operand_or_null(context, 8)) {
    for (const int32_t value : b->as<int32_t>()) bias.push_back(static_cast<uint32_t>(value));
  }
  convolve<uint32_t>(g, image.data(), weights.data(), bias.empty() ? nullptr : bias.data(), sums.data(),
                     context.parallel());
  const double scale = context.tensor(1).double_at(0) / context.tensor(6).double_at(0);
  for (int64_t plane = 0; plane < g.batch * g.outputs; ++plane) {
    const double factor = scale * w_scale.double_at(w_scale.size() == 1 ? 0 : plane % g.outputs);
    for (int64_t i = plane * g.out_size; i < (plane + 1) * g.out_size; ++i) {
      store_quantized(*y, i, std::bit_cast<int32_t>(sums[i]) * factor, context.tensor(7).double_at(0));
    }
  }
  return {};
}

// ---- DeformConv ----

// The image seen through displaced taps.
template <class T>
class DeformedPanels final : public PanelSource<T> {
 public:
  // `image`: the channels of one group, `first_channel` the index of the first one; `offset`, `mask`: for this image.
  DeformedPanels(const Geometry& g, const T* image, int64_t first_channel, int64_t offset_groups, const T* offset,
                 const T* mask)
      : g_(g),
        image_(image),
        first_channel_(first_channel),
        offset_groups_(offset_groups),
        offset_(offset),
        mask_(mask) {}

  void pack(int64_t depth, int64_t depths, int64_t x, int64_t count, int64_t width, T* out) const override {
    std::vector<int64_t> taps(g_.rank());
    for (int64_t d = 0; d < depths; ++d) {
      const int64_t channel = (depth + d) / g_.taps, tap = (depth + d) % g_.taps;
      g_.tap_offset(tap, taps.data());
      // The row of masks for this channel and tap; offsets have one such row per axis.
      const int64_t row = (first_channel_ + channel) / (g_.channels / offset_groups_) * g_.taps + tap;
      for (int64_t i = 0; i < (count + width - 1) / width * width; ++i) {
        T value = 0;
        if (i < count) {
          value = sample(image_ + channel * g_.in_size, taps, row, x + i);
          if (mask_) value *= mask_[row * g_.out_size + x + i];
        }
        out[i / width * depths * width + d * width + i % width] = value;
      }
    }
  }

 private:
  T sample(const T* image, const std::vector<int64_t>& taps, int64_t row, int64_t position) const {
    const size_t rank = g_.rank();
    std::vector<double> fraction(rank);
    std::vector<int64_t> floor(rank);
    int64_t rest = position;
    for (size_t axis = rank; axis-- > 0; rest /= g_.out[axis]) {
      const double moved = static_cast<double>(offset_[(row * rank + axis) * g_.out_size + position]);
      // Positions far outside read 0, whatever the distance; so does NaN.
      const double at = std::clamp(static_cast<double>(rest % g_.out[axis] * g_.strides[axis] + taps[axis]) + moved,
                                   -2.0, static_cast<double>(g_.in[axis]) + 1);
      if (std::isnan(at)) return 0;
      floor[axis] = static_cast<int64_t>(std::floor(at));
      fraction[axis] = at - std::floor(at);
    }
    double sum = 0;
    for (uint64_t corner = 0; corner < (uint64_t{1} << rank); ++corner) {
      double weight = 1;
      int64_t index = 0;
      for (size_t axis = 0; axis < rank && weight != 0; ++axis) {
        const bool upper = corner >> axis & 1;
        const int64_t at = floor[axis] + upper;
        weight = at < 0 || at >= g_.in[axis] ? 0 : weight * (upper ? fraction[axis] : 1 - fraction[axis]);
        index = index * g_.in[axis] + at;
      }
      if (weight != 0) sum += weight * static_cast<double>(image[index]);
    }
    return static_cast<T>(sum);
  }

  const Geometry& g_;
  const T* image_;
  int64_t first_channel_, offset_groups_;
  const T *offset_, *mask_;
};

Result<void> deform_conv(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(w, in_work_type(context.tensor(1), work));
  TENON_TRY(offset, in_work_type(context.tensor(2), work));
  TENON_TRY(b, optional_in_work_type(context, 3, work));
  TENON_TRY(mask, optional_in_work_type(context, 4, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(g, conv_geometry(context.op(), x, w, y.tensor().dims()));
  const int64_t offset_groups = context.attr<int64_t>("offset_group", 1);
  with_work_type(work, [&]<class T>() {
    convolve_by_panels<T>(
        g, w.as<T>().data(), data_or_null<T>(b), y.data<T>(), context.parallel(),
        [&](int64_t n, int64_t group, auto&& multiply) {
          const int64_t first = group * g.group_channels(), rows = offset_groups * g.taps * g.out_size;
          multiply(DeformedPanels<T>(g, x.as<T>().data() + (n * g.channels + first) * g.in_size, first, offset_groups,
                                     offset.as<T>().data() + n * rows * g.rank(),
                                     mask.valid() ? mask.as<T>().data() + n * rows : nullptr));
        });
  });
  return y.deliver();
}

// ---- CausalConvWithState ----

// As in the ONNX function, the convolution is rounded to the element type before the activation.
Result<void> causal_conv(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  const ElementType element = input.element(), work = work_type(element);
  const int64_t rows = input.dim(0) * input.dim(1), channels = input.dim(1), length = input.dim(2),
                taps = context.tensor(1).dim(2);
  const int64_t kept = taps - 1, joined = kept + length;
  TENON_TRY(x, in_work_type(input, work));
  TENON_TRY(w, in_work_type(context.tensor(1), work));
  TENON_TRY(b, optional_in_work_type(context, 2, work));
  TENON_TRY(past, optional_in_work_type(context, 3, work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  WorkResult present;
  if (context.result_count() > 1) {
    TENON_TRY(made, WorkResult::make(context, 1, work));
    present = std::move(made);
  }
  with_work_type(work, [&]<class T>() {
    context.parallel().run(rows, grain_of(length * taps), [&](int64_t begin, int64_t end) {
      std::vector<T> z(joined);
      for (int64_t row = begin; row < end; ++row) {
        if (past.valid()) std::copy_n(past.as<T>().data() + row * kept, kept, z.begin());
        std::copy_n(x.as<T>().data() + row * length, length, z.begin() + kept);
        const T* weights = w.as<T>().data() + row % channels * taps;
        for (int64_t t = 0; t < length; ++t) {
          T sum = b.valid() ? b.as<T>()[row % channels] : T(0);
          for (int64_t k = 0; k < taps; ++k) sum += z[t + k] * weights[k];
          y.data<T>()[row * length + t] = sum;
        }
        if (context.result_count() > 1) std::copy_n(z.begin() + length, kept, present.data<T>() + row * kept);
      }
    });
  });
  if (context.result_count() > 1) TENON_OK(present.deliver());
  if (context.attr<std::string>("activation", "none") == "none") return y.deliver();
  if (element != work) {
    TENON_TRY(rounded, convert(y.tensor(), element));
    TENON_TRY(widened, convert(rounded, work));
    std::copy_n(widened.data(), widened.bytes(), y.tensor().mutable_data());
  }
  with_work_type(work, [&]<class T>() {
    for (T& value : y.tensor().mutable_as<T>()) value /= 1 + std::exp(-value);
  });
  return y.deliver();
}

const EvaluatorRegistration kConvolutionRegistered({
    {Conv::kName, conv},
    {ConvTranspose::kName, conv_transpose},
    {ConvInteger::kName, conv_integer},
    {QLinearConv::kName, qlinear_conv},
    {DeformConv::kName, deform_conv},
    {CausalConvWithState::kName, causal_conv},
});

}  // namespace
}  // namespace tenon
