// Sum of two 8-bit tensors of the same shape, each shifted to a common scale.
//
//   y = clip(((a << a_shift) + (b << b_shift) + rounding) >> shift, clip_min, clip_max)   (epilogue.hpp)
//
// a_shift, b_shift = 0, in [0, 23].
#pragma once
#include <tenon/ops/elementwise_views.hpp>

namespace tenon::fused {

struct QAdd : BinaryView<QAdd> {
  static constexpr std::string_view kName = "fused.QAdd";
  using BinaryView::BinaryView;
  int64_t a_shift() const { return attr<int64_t>("a_shift", 0); }
  int64_t b_shift() const { return attr<int64_t>("b_shift", 0); }
};

}  // namespace tenon::fused
