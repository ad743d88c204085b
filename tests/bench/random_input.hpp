// Random inputs of benchmarks.
#pragma once
#include <random>

#include <tenon/tensor/type.hpp>
#include <tenon/tensor/numeric.hpp>

#include "bench/interleaved.hpp"

namespace tenon::bench {

// For known shapes: normally distributed floats around 1, all values of 8-bit numbers.
inline Tensor random_input(const Type& type, std::mt19937& random) {
  const ElementType element = type.element();
  Tensor tensor = must(Tensor::allocate(kF32, *type.shape().static_dims()), "an input");
  std::normal_distribution<float> normal(1.0f, 2.0f);
  std::uniform_int_distribution<int> number(element.is_signed_int() ? -128 : 0, element.is_signed_int() ? 127 : 255);
  for (float& x : tensor.mutable_as<float>())
    x = element.is_float() ? normal(random)
                           : static_cast<float>(element.is_bool() ? number(random) & 1 : number(random));
  return element == kF32 ? tensor : must(convert(tensor, element), "an input");
}

}  // namespace tenon::bench
