// Random tensors, reproducible by seed.
#pragma once
#include <random>

#include <tenon/tensor/tensor.hpp>

namespace tenon::testing {

// Floats: multiples of 1/64 in [-2, 2], exact in every float type with 8 bits of precision; integers in [low, high].
inline Tensor random_tensor(std::mt19937& random, ElementType element, Dims dims, int64_t low = -20,
                            int64_t high = 20) {
  Tensor tensor = *Tensor::zeros(element, std::move(dims));
  std::uniform_int_distribution<int64_t> steps(element.is_float() ? -128 : low, element.is_float() ? 128 : high);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (element.is_float())
      tensor.set_double(i, static_cast<double>(steps(random)) / 64);
    else
      tensor.set_int(i, steps(random));
  }
  return tensor;
}

// Uniform in [low, high].
inline int64_t pick(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

}  // namespace tenon::testing
