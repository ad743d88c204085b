// Choosing power-of-two scales, and converting numbers to integers with them.
#pragma once
#include <cstdint>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::quant {

// A step between reals, factor * 2^exponent, with a factor between the square roots of 1/2 and 2.
struct Step {
  int64_t exponent = 0;
  double factor = 1;
};
// `step` must be positive and finite.
TENON_API Step split_step(double step);
TENON_API double step_of(int64_t exponent, double factor = 1);
// The least exponent at which 127 * 2^exponent reaches `reach`; 0 for a reach of 0.
TENON_API int64_t covering_exponent(double reach);
// The exponent with the least squared error over the weights: the covering one, or one below it, which clips a few
// large ones. f32.
TENON_API int64_t weights_exponent(const Tensor& weights);

// saturate(round(x / 2^exponent)), ties to even, for f32.
TENON_API Result<Tensor> as_i8(const Tensor& x, int64_t exponent);
TENON_API Result<Tensor> as_i32(const Tensor& x, int64_t exponent);
// x * factor, for f32.
TENON_API Result<Tensor> scaled(const Tensor& x, double factor);

// The step of symmetric i8 that covers the same numbers as QuantizeLinear's scale and zero point for 8-bit integers:
// the scale itself for i8 around 0, about twice it (255 / 127) for u8 from 0. There are no zero points with it.
TENON_API double symmetric_step(double scale, int64_t zero_point, ElementType element);

}  // namespace tenon::quant
