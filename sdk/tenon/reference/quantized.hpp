// Quantised operands and results of products and convolutions.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <tenon/tensor/tensor.hpp>

namespace tenon {

// The integers of `tensor` minus their zero points, modulo 2^32. `zero_points`: null for 0, one for all, or one for
// each of `blocks` equal parts of the tensor.
inline std::vector<uint32_t> centered(const Tensor& tensor, const Tensor* zero_points, int64_t blocks) {
  std::vector<uint32_t> out(static_cast<size_t>(tensor.size()));
  const int64_t block = blocks == 0 ? 0 : tensor.size() / blocks;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t zero = !zero_points ? 0 : zero_points->int_at(zero_points->size() == 1 ? 0 : i / block);
    out[static_cast<size_t>(i)] = static_cast<uint32_t>(tensor.int_at(i) - zero);
  }
  return out;
}

// tensor[i] = value / scale + zero point, where `value` has already been divided: for integers rounded half to even and
// saturated, for floats the sum.
inline void store_quantized(Tensor& tensor, int64_t i, double value, double zero_point) {
  const ElementType element = tensor.element();
  if (!element.is_int()) return tensor.set_double(i, value + zero_point);
  const double rounded = std::nearbyint(value) + zero_point;
  const double most = std::ldexp(1.0, element.bits() - (element.is_signed_int() ? 1 : 0)) - 1;
  const double least = element.is_signed_int() ? -most - 1 : 0;
  tensor.set_int(i, std::isnan(rounded) ? 0 : static_cast<int64_t>(std::fmin(std::fmax(rounded, least), most)));
}

}  // namespace tenon
