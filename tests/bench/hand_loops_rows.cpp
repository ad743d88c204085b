// Hand-written loops over rows that are reduced and traversed again.
#include <algorithm>
#include <cmath>

#include "bench/hand_loops.hpp"

namespace tenon::bench {

struct Statistics {
  float mean = 0, inverse = 0;  // of the deviation
};
static Statistics statistics_of(const float* x, int64_t n) {
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f)};
}

// `y` may be `x`.
static void normalise_row(const float* x, const float* __restrict scale, const float* __restrict bias, float* y,
                          int64_t n) {
  const auto [mean, inverse] = statistics_of(x, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
}

void layer_norm(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r)
    normalise_row(a.input<float>(0) + r * n, a.input<float>(1), a.input<float>(2), a.output<float>(0) + r * n, n);
}

void skip_layer_norm(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    const float* __restrict z = a.input<float>(1) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + z[i];
    normalise_row(y, a.input<float>(2), a.input<float>(3), y, n);
  }
}

void rms_norm(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  const float* __restrict scale = a.input<float>(1);
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    float squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    const float inverse = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * inverse * scale[i];
  }
}

void group_norm(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t groups = a.extents[1], channels = a.extents[2], pixels = a.extents[3], n = channels * pixels;
  for (int64_t r = begin; r < end; ++r) {
    const Statistics of = statistics_of(a.input<float>(0) + r * n, n);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t channel = r % groups * channels + c;
      const float factor = a.input<float>(1)[channel] * of.inverse, bias = a.input<float>(2)[channel];
      const float* __restrict x = a.input<float>(0) + r * n + c * pixels;
      float* __restrict y = a.output<float>(0) + r * n + c * pixels;
      for (int64_t i = 0; i < pixels; ++i) y[i] = (x[i] - of.mean) * factor + bias;
    }
  }
}

// Computes the powers of a row, which must be multiplied by the returned value.
static float powers_of_row(const float* __restrict x, float* __restrict y, int64_t n) {
  float most = x[0], sum = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
  return 1 / sum;
}

void softmax(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    float* __restrict y = a.output<float>(0) + r * n;
    const float inverse = powers_of_row(a.input<float>(0) + r * n, y, n);
    for (int64_t i = 0; i < n; ++i) y[i] *= inverse;
  }
}

void softmax_skip(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    const float inverse = powers_of_row(x, y, n);
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] * inverse + x[i];
  }
}

void sum_rows(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    a.output<float>(0)[r] = sum;
  }
}

}  // namespace tenon::bench
