#include <tenon/reference/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/ops/softmax.hpp>
#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// The cost of an exponential in elementary operations.
constexpr int64_t kExpCost = 8;

// Calls line(in, out, extent, step), which computes one line along the axis.
template <class Line>
Result<void> along_axis(EvalContext& context, Line line) {
  const Tensor& input = context.tensor(0);
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", -1), input.rank()));
  TENON_TRY(x, to_carrier(input));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  const AxisView view(input.dims(), static_cast<size_t>(axis));
  with_float_carrier(x.element(), [&]<class T>() {
    const T* in = x.as<T>().data();
    T* out = y.data<T>();
    view.run(
        context.parallel(), [&](int64_t, int64_t offset) { line(in + offset, out + offset, view.extent, view.inner); },
        kExpCost);
  });
  return y.close();
}

Result<void> softmax(EvalContext& context) {
  return along_axis(context, []<class T>(const T* x, T* y, int64_t extent, int64_t step) {
    if (extent == 0) return;
    T greatest = x[0];
    for (int64_t i = 1; i < extent; ++i) greatest = std::max(greatest, x[i * step]);
    thread_local std::vector<double> powers;  // in f64, to be rounded once
    powers.resize(static_cast<size_t>(extent));
    double sum = 0;
    for (int64_t i = 0; i < extent; ++i) {
      const double power = std::exp(static_cast<double>(x[i * step]) - static_cast<double>(greatest));
      powers[static_cast<size_t>(i)] = power;
      sum += power;
    }
    for (int64_t i = 0; i < extent; ++i) y[i * step] = static_cast<T>(powers[static_cast<size_t>(i)] / sum);
  });
}

Result<void> log_softmax(EvalContext& context) {
  return along_axis(
      context, []<class T>(const T* x, T* y, int64_t extent, int64_t step) { log_softmax_line(x, y, extent, step); });
}

Result<void> hardmax(EvalContext& context) {
  return along_axis(context, []<class T>(const T* x, T* y, int64_t extent, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 0; i < extent; ++i) {
      const T value = x[i * step], leader = x[best * step];
      if (value > leader || (value != value && leader == leader)) best = i;  // NaN is the greatest, as in ArgMax
      y[i * step] = 0;
    }
    if (extent > 0) y[best * step] = 1;
  });
}

const EvaluatorRegistration kSoftmaxRegistered({
    {Softmax::kName, softmax},
    {LogSoftmax::kName, log_softmax},
    {Hardmax::kName, hardmax},
});

}  // namespace
}  // namespace tenon
