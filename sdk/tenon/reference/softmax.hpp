// The formula of LogSoftmax, shared by the losses.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tenon {

// y = x - greatest - ln(sum of e^(x - greatest)) over `count` elements, `step` apart. The two are subtracted one at a
// time, because their sum would lose digits of the logarithm.
template <class T>
void log_softmax_line(const T* x, T* y, int64_t count, int64_t step) {
  if (count == 0) return;
  double greatest = x[0], sum = 0;
  for (int64_t i = 1; i < count; ++i) greatest = std::max<double>(greatest, x[i * step]);
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i * step] - greatest);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < count; ++i) y[i * step] = static_cast<T>(x[i * step] - greatest - log_sum);
}

}  // namespace tenon
