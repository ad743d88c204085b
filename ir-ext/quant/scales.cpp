#include <tenon-ext/quant/scales.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon-ext/quant/operators.hpp>

namespace tenon::quant {
namespace {

int64_t bounded(double exponent) {
  const auto most = static_cast<double>(kMostExponent);
  return static_cast<int64_t>(std::clamp(exponent, -most, most));
}

// The integer nearest to x / 2^exponent in the range of T.
template <class T>
T integer_of(float x, double inverse) {
  const double rounded = std::nearbyint(static_cast<double>(x) * inverse);
  if (std::isnan(rounded)) return 0;
  return static_cast<T>(std::clamp(rounded, static_cast<double>(std::numeric_limits<T>::min()),
                                   static_cast<double>(std::numeric_limits<T>::max())));
}

template <class T>
Result<Tensor> as_integers(const Tensor& x, ElementType element, int64_t exponent) {
  TENON_TRY(y, Tensor::allocate(element, x.dims()));
  const double inverse = std::ldexp(1.0, static_cast<int>(-exponent));
  const auto from = x.as<float>();
  std::transform(from.begin(), from.end(), y.mutable_as<T>().begin(),
                 [&](float value) { return integer_of<T>(value, inverse); });
  return y;
}

double squared_error(const Tensor& x, int64_t exponent) {
  const double step = std::ldexp(1.0, static_cast<int>(exponent));
  double sum = 0;
  for (const float value : x.as<float>()) {
    const double difference = value - integer_of<int8_t>(value, 1 / step) * step;
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

double step_of(int64_t exponent, double factor) { return std::ldexp(factor, static_cast<int>(exponent)); }

Step split_step(double step) {
  const int64_t exponent = bounded(std::round(std::log2(step)));
  return {exponent, std::clamp(step / step_of(exponent), 0.5, 2.0)};
}

int64_t covering_exponent(double reach) { return reach > 0 ? bounded(std::ceil(std::log2(reach / 127))) : 0; }

int64_t weights_exponent(const Tensor& weights) {
  double reach = 0;
  for (const float value : weights.as<float>()) {
    if (std::isfinite(value)) reach = std::max(reach, std::abs(static_cast<double>(value)));
  }
  const int64_t covering = covering_exponent(reach), below = bounded(static_cast<double>(covering) - 1);
  return squared_error(weights, below) < squared_error(weights, covering) ? below : covering;
}

Result<Tensor> as_i8(const Tensor& x, int64_t exponent) { return as_integers<int8_t>(x, kI8, exponent); }
Result<Tensor> as_i32(const Tensor& x, int64_t exponent) { return as_integers<int32_t>(x, kI32, exponent); }

Result<Tensor> scaled(const Tensor& x, double factor) {
  TENON_TRY(y, Tensor::allocate(kF32, x.dims()));
  const auto from = x.as<float>();
  std::transform(from.begin(), from.end(), y.mutable_as<float>().begin(),
                 [&](float value) { return static_cast<float>(value * factor); });
  return y;
}

double symmetric_step(double scale, int64_t zero_point, ElementType element) {
  const int64_t least = element == kU8 ? 0 : -128, greatest = least + 255;
  // The least i8 has no positive counterpart: -127 suffices.
  const int64_t below = zero_point - least - (element == kU8 ? 0 : 1), above = greatest - zero_point;
  return scale * static_cast<double>(std::max(below, above)) / 127;
}

}  // namespace tenon::quant
