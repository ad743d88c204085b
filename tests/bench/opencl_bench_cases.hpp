// The cases of opencl_bench.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tenon/tensor/shape.hpp>

#include "opencl_by_hand.hpp"

namespace tenon::opencl {

// A case: a graph, and hand-written kernels for the same buffers.
struct Work {
  std::string name, text;
  std::vector<Dims> shapes;
  Dims result;
  double amount = 0;  // operations, or bytes
  std::string_view unit = "GFLOP/s";
  std::vector<HandKernel> hand = {};
};

// Chains of operators that read x and write y.
std::vector<Work> elementwise_works();
// Products, convolutions and pools.
std::vector<Work> arithmetic_works();

}  // namespace tenon::opencl
