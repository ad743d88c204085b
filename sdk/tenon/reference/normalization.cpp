#include <tenon/ops/normalization.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

// Mean and variance of a range of elements, in f64 in two passes, to avoid cancellation.
struct Moments {
  double mean = 0, variance = 0;
};

// Of elements x[o * outer_stride + i], o < outer, i < inner. Without `centred`, the mean is 0 and the variance is the
// mean of squares.
template <class T>
Moments moments(const T* x, int64_t outer, int64_t outer_stride, int64_t inner, bool centred = true) {
  Moments out;
  const auto count = static_cast<double>(outer * inner);
  if (centred) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) out.mean += static_cast<double>(x[o * outer_stride + i]);
    }
    out.mean /= count;
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const double difference = static_cast<double>(x[o * outer_stride + i]) - out.mean;
      out.variance += difference * difference;
    }
  }
  out.variance /= count;
  return out;
}

// y = (x - mean) * factor + addend
template <class T>
void shift_and_scale(const T* x, T* y, int64_t count, double mean, double factor, double addend) {
  const auto m = static_cast<T>(mean), f = static_cast<T>(factor), a = static_cast<T>(addend);
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - m) * f + a;
}

double inverse_deviation(double variance, double epsilon) { return 1 / std::sqrt(variance + epsilon); }

// [N, C, rest]: a tensor of rank 1 has one channel.
struct Channels {
  int64_t batch = 1, channels = 1, inner = 1;
  explicit Channels(const Dims& dims) {
    if (!dims.empty()) batch = dims[0];
    if (dims.size() > 1) channels = dims[1];
    for (size_t axis = 2; axis < dims.size(); ++axis) inner *= dims[axis];
  }
};

Result<void> batch_normalization(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Channels c(x.dims());
  const double epsilon = context.attr<float>("epsilon", 1e-5f), momentum = context.attr<float>("momentum", 0.9f);
  const bool training = context.attr<int64_t>("training_mode", 0) != 0;
  std::vector<Moments> by_channel(c.channels);
  const auto of_operand = [&](size_t operand, int64_t channel) { return context.tensor(operand).double_at(channel); };
  with_work_type(work, [&]<class T>() {
    const T* from = x.as<T>().data();
    T* to = y.data<T>();
    context.parallel().run(c.channels, grain_of(c.batch * c.inner), [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        Moments& m = by_channel[channel];
        m = training ? moments(from + channel * c.inner, c.batch, c.channels * c.inner, c.inner)
                     : Moments{of_operand(3, channel), of_operand(4, channel)};
        const double factor = of_operand(1, channel) * inverse_deviation(m.variance, epsilon);
        for (int64_t n = 0; n < c.batch; ++n) {
          const int64_t at = (n * c.channels + channel) * c.inner;
          shift_and_scale(from + at, to + at, c.inner, m.mean, factor, of_operand(2, channel));
        }
      }
    });
  });
  for (size_t result = 1; result < context.result_count(); ++result) {
    TENON_TRY(running, context.output(result));
    for (int64_t channel = 0; channel < c.channels; ++channel) {
      const double own = result == 1 ? by_channel[channel].mean : by_channel[channel].variance;
      running->set_double(channel, of_operand(result + 2, channel) * momentum + own * (1 - momentum));
    }
  }
  return y.deliver();
}

// Normalises groups of `group` channels of each image by their own moments, then scales and shifts per channel.
Result<void> normalize_groups(EvalContext& context, int64_t group) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Channels c(x.dims());
  const double epsilon = context.attr<float>("epsilon", 1e-5f);
  const int64_t size = group * c.inner;
  with_work_type(work, [&]<class T>() {
    const T* from = x.as<T>().data();
    T* to = y.data<T>();
    context.parallel().run(
        c.batch * c.channels / std::max<int64_t>(1, group), grain_of(3 * size), [&](int64_t begin, int64_t end) {
          for (int64_t g = begin; g < end; ++g) {
            const Moments m = moments(from + g * size, 1, 0, size);
            for (int64_t i = 0; i < group; ++i) {
              const int64_t plane = g * group + i, channel = plane % c.channels;
              shift_and_scale(from + plane * c.inner, to + plane * c.inner, c.inner, m.mean,
                              context.tensor(1).double_at(channel) * inverse_deviation(m.variance, epsilon),
                              context.tensor(2).double_at(channel));
            }
          }
        });
  });
  return y.deliver();
}

Result<void> instance_normalization(EvalContext& context) { return normalize_groups(context, 1); }
Result<void> group_normalization(EvalContext& context) {
  return normalize_groups(context, Channels(context.tensor(0).dims()).channels / context.attr<int64_t>("num_groups"));
}

// A tensor that broadcasts to x, seen row by row: rows of `inner` elements, the same one for all rows if possible.
template <class T>
struct RowParameter {
  std::vector<T> values;
  int64_t stride = 0;

  // `row`: the dims of one row, the last ones of `x`.
  static RowParameter of(const Tensor& parameter, const Dims& x, const Dims& row) {
    Dims shape = parameter.dims();
    while (shape.size() > row.size() && shape.front() == 1) shape.erase(shape.begin());
    const bool shared = shape.size() <= row.size();
    const BroadcastPlan<1> plan(shared ? row : x, {shape});
    RowParameter out;
    out.values.resize(static_cast<size_t>(plan.count()));
    plan.for_runs(0, plan.count(), [&](int64_t first, int64_t count, const std::array<int64_t, 1>& offsets) {
      for (int64_t i = 0; i < count; ++i) {
        out.values[first + i] = parameter.as<T>()[offsets[0] + i * plan.inner_strides()[0]];
      }
    });
    if (!shared) {
      out.stride = 1;
      for (const int64_t dim : row) out.stride *= dim;
    }
    return out;
  }
  const T* row(int64_t i) const { return values.data() + i * stride; }
};

// LayerNormalization or, without `centred`, RMSNormalization. As ONNX specifies for both, normalised elements are
// rounded to the element type of X before they are scaled, if X is narrower than f32.
Result<void> normalize_rows(EvalContext& context, bool centred) {
  const Tensor& operand = context.tensor(0);
  const ElementType work = work_type(operand.element());
  TENON_TRY(x, in_work_type(operand, work));
  TENON_TRY(scale, in_work_type(context.tensor(1), work));
  Tensor bias;
  if (context.operand_count() > 2 && context.has_operand(2)) {
    TENON_TRY(converted, in_work_type(context.tensor(2), work));
    bias = std::move(converted);
  }
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", -1), x.rank()));
  const Dims row_dims(x.dims().begin() + axis, x.dims().end());
  int64_t inner = 1, rows = 1;
  for (int64_t i = 0; i < x.rank(); ++i) (i < axis ? rows : inner) *= x.dim(i);
  const double epsilon = context.attr<float>("epsilon", 1e-5f);
  TENON_TRY(y, WorkResult::make(context, 0, work));
  std::vector<Tensor*> statistics(3, nullptr);
  for (size_t result = 1; result < context.result_count(); ++result) {
    TENON_TRY(out, context.output(result));
    statistics[result] = out;
  }
  const bool rounds = operand.element() != work;
  with_work_type(work, [&]<class T>() {
    const auto scales = RowParameter<T>::of(scale, x.dims(), row_dims);
    const auto biases = bias.valid() ? RowParameter<T>::of(bias, x.dims(), row_dims) : RowParameter<T>();
    std::vector<Moments> by_row(rows);
    context.parallel().run(rows, grain_of(3 * inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        by_row[row] = moments(x.as<T>().data() + row * inner, 1, 0, inner, centred);
        shift_and_scale(x.as<T>().data() + row * inner, y.data<T>() + row * inner, inner, by_row[row].mean,
                        inverse_deviation(by_row[row].variance, epsilon), 0);
        T* out = y.data<T>() + row * inner;
        for (int64_t i = 0; rounds && i < inner; ++i) {
          const uint64_t bits = encode_float(operand.element(), static_cast<double>(out[i]));
          out[i] = static_cast<T>(decode_float(operand.element(), bits));
        }
        const T* factors = scales.row(row);
        for (int64_t i = 0; i < inner; ++i) out[i] *= factors[i];
        if (!bias.valid()) continue;
        const T* addends = biases.row(row);
        for (int64_t i = 0; i < inner; ++i) out[i] += addends[i];
      }
    });
    for (int64_t row = 0; row < rows; ++row) {
      if (statistics[1]) statistics[1]->set_double(row, by_row[row].mean);
      if (statistics[2]) statistics[2]->set_double(row, inverse_deviation(by_row[row].variance, epsilon));
    }
  });
  return y.deliver();
}

Result<void> layer_normalization(EvalContext& context) { return normalize_rows(context, true); }
Result<void> rms_normalization(EvalContext& context) { return normalize_rows(context, false); }

Result<void> lp_normalization(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", -1), x.rank()));
  const bool absolute = context.attr<int64_t>("p", 2) == 1;
  const AxisView view(x.dims(), static_cast<size_t>(axis));
  with_work_type(work, [&]<class T>() {
    view.run(context.parallel(), [&](int64_t, int64_t offset) {
      const T* from = x.as<T>().data() + offset;
      T* to = y.data<T>() + offset;
      double sum = 0;
      for (int64_t i = 0; i < view.extent; ++i) {
        const auto value = static_cast<double>(from[i * view.inner]);
        sum += absolute ? std::abs(value) : value * value;
      }
      const double norm = absolute ? sum : std::sqrt(sum);
      for (int64_t i = 0; i < view.extent; ++i) {
        to[i * view.inner] = norm == 0 ? T(0) : static_cast<T>(static_cast<double>(from[i * view.inner]) / norm);
      }
    });
  });
  return y.deliver();
}

Result<void> mean_variance_normalization(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  // The sum that each element belongs to: the strides of the remaining axes, 0 on the reduced ones.
  Dims kept = x.dims();
  for (const int64_t stated : context.attr<Attribute::Integers>("axes", {0, 2, 3})) {
    TENON_TRY(axis, normalize_axis(stated, x.rank()));
    kept[axis] = 1;
  }
  const BroadcastPlan<1> plan(x.dims(), {kept});
  with_work_type(work, [&]<class T>() {
    const T* from = x.as<T>().data();
    T* to = y.data<T>();
    int64_t sums = 1;
    for (const int64_t dim : kept) sums *= dim;
    const double count = sums == 0 ? 0 : static_cast<double>(x.size()) / static_cast<double>(sums);
    std::vector<double> mean(sums), variance(sums);
    const auto each = [&](auto&& body) {
      plan.for_runs(0, plan.count(), [&](int64_t first, int64_t run, const std::array<int64_t, 1>& offsets) {
        for (int64_t i = 0; i < run; ++i) body(first + i, offsets[0] + i * plan.inner_strides()[0]);
      });
    };
    each([&](int64_t i, int64_t at) { mean[at] += static_cast<double>(from[i]) / count; });
    each([&](int64_t i, int64_t at) {
      const double difference = static_cast<double>(from[i]) - mean[at];
      variance[at] += difference * difference / count;
    });
    each([&](int64_t i, int64_t at) {
      to[i] = static_cast<T>((static_cast<double>(from[i]) - mean[at]) / (std::sqrt(variance[at]) + 1e-9));
    });
  });
  return y.deliver();
}

Result<void> local_response_normalization(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Channels c(x.dims());
  const int64_t size = context.attr<int64_t>("size"), below = (size - 1) / 2, above = size - 1 - below;
  const double alpha = context.attr<float>("alpha", 0.0001f) / static_cast<double>(size),
               beta = context.attr<float>("beta", 0.75f);
  const double bias = context.attr<float>("bias", 1.0f);
  with_work_type(work, [&]<class T>() {
    context.parallel().run(c.batch * c.channels, grain_of(c.inner * (size + 20)), [&](int64_t begin, int64_t end) {
      std::vector<double> sums(c.inner);
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t channel = plane % c.channels;
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t k = std::max<int64_t>(0, channel - below); k <= std::min(c.channels - 1, channel + above); ++k) {
          const T* near = x.as<T>().data() + (plane - channel + k) * c.inner;
          for (int64_t i = 0; i < c.inner; ++i) sums[i] += static_cast<double>(near[i]) * static_cast<double>(near[i]);
        }
        const T* from = x.as<T>().data() + plane * c.inner;
        T* to = y.data<T>() + plane * c.inner;
        for (int64_t i = 0; i < c.inner; ++i)
          to[i] = static_cast<T>(static_cast<double>(from[i]) * std::pow(bias + alpha * sums[i], -beta));
      }
    });
  });
  return y.deliver();
}

Result<void> dropout(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const auto given = [&](size_t i) { return i < context.operand_count() && context.has_operand(i); };
  const double ratio = given(1) ? context.tensor(1).double_at(0) : 0.5;
  const bool training = given(2) && context.tensor(2).int_at(0) != 0;
  if (training && !(ratio >= 0 && ratio < 1)) {
    return error(Code::invalid_argument, "ratio is ", ratio, ", a share of elements to drop must lie in [0, 1)");
  }
  std::vector<bool> kept(static_cast<size_t>(data.size()), true);
  if (training && ratio > 0) {
    const Attribute* seed = context.op().attributes().find("seed");
    std::mt19937 random(
        static_cast<uint32_t>(seed ? static_cast<uint64_t>(context.attr<int64_t>("seed")) : context.random_seed()));
    // 53 bits of two draws, as NumPy makes its uniform numbers, so that its users' masks are reproduced.
    for (size_t i = 0; i < kept.size(); ++i) {
      const double high = static_cast<double>(random() >> 5), low = static_cast<double>(random() >> 6);
      kept[i] = (high * 0x1p26 + low) * 0x1p-53 >= ratio;
    }
  }
  if (training) {
    TENON_TRY(out, context.output(0));
    for (int64_t i = 0; i < data.size(); ++i)
      out->set_double(i, kept[static_cast<size_t>(i)] ? data.double_at(i) / (1 - ratio) : 0);
  } else {
    context.set_output(0, context.datum(0));
  }
  if (context.result_count() > 1) {
    TENON_TRY(mask, context.output(1));
    std::copy(kept.begin(), kept.end(), mask->mutable_as<uint8_t>().begin());
  }
  return {};
}

const EvaluatorRegistration kNormalizationRegistered({
    {BatchNormalization::kName, batch_normalization},
    {InstanceNormalization::kName, instance_normalization},
    {GroupNormalization::kName, group_normalization},
    {LayerNormalization::kName, layer_normalization},
    {RMSNormalization::kName, rms_normalization},
    {LpNormalization::kName, lp_normalization},
    {MeanVarianceNormalization::kName, mean_variance_normalization},
    {LRN::kName, local_response_normalization},
    {Dropout::kName, dropout},
});

}  // namespace
}  // namespace tenon
