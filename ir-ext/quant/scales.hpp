// Choosing powers of two, and numbers as integers of them.
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
// step > 0 and finite.
TENON_API Step split_step(double step);
TENON_API double step_of(int64_t exponent, double factor = 1);
// The least exponent at which 127 * 2^exponent reaches `reach`; 0 for a reach of 0.
TENON_API int64_t covering_exponent(double reach);
// The exponent with the least squared error over the weights: the covering one, or one below it, which cuts a few large
// ones off. f32.
TENON_API int64_t weights_exponent(const Tensor& weights);

// saturate(round(x / 2^exponent)), halves to even, of f32.
TENON_API Result<Tensor> as_i8(const Tensor& x, int64_t exponent);
TENON_API Result<Tensor> as_i32(const Tensor& x, int64_t exponent);
// x * factor, of f32.
TENON_API Result<Tensor> scaled(const Tensor& x, double factor);

// What QuantizeLinear's scale and zero point say of 8-bit integers, as a step of symmetric i8 that covers the same
// numbers: the scale itself for i8 around 0, twice of it (255 / 127) for u8 from 0. Zero points vanish in it.
TENON_API double symmetric_step(double scale, int64_t zero_point, ElementType element);

}  // namespace tenon::quant
