// Windows of fused operators, in the form of the corresponding generic operators.
#pragma once
#include <initializer_list>

#include <tenon/ir/graph.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::fused {

// The attributes among strides, pads, dilations and `more` that the operator has.
inline Attributes window_attributes(const Op& op, std::initializer_list<const char*> more) {
  Attributes window;
  const auto take = [&](const char* name) {
    if (const Attribute* found = op.attributes().find(name)) window.set(name, *found);
  };
  for (const char* name : {"strides", "pads", "dilations"}) take(name);
  for (const char* name : more) take(name);
  return window;
}

// Weights of a depthwise convolution that sums each window: i8[channels, 1, kernel ...] of ones.
inline Result<Tensor> window_of_ones(const Op& op, int64_t channels) {
  Dims dims{channels, 1};
  for (const int64_t extent : op.attr<Attribute::Integers>("kernel_shape")) dims.push_back(extent);
  TENON_TRY(ones, Tensor::zeros(kI8, dims));
  for (int8_t& one : ones.mutable_as<int8_t>()) one = 1;
  return ones;
}

}  // namespace tenon::fused
