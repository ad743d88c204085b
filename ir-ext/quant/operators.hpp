// Symmetric quantisation to 8 bits with power-of-two scales: a real number x is represented by the integer q with
// x = 2^exponent * q. There are no zero points and no multiplications: hardware shifts.
//
// `exponent` is in [-100, 100], so that scales are exact floats. Between reals and integers there may also be a
// `factor`: x = factor * 2^exponent * q, factor > 0. Between integer layers there is none: fold-factors has moved it
// into weights. All of these operators are elementwise, in any layout.
#pragma once
#include <tenon/ops/elementwise_views.hpp>

namespace tenon::quant {

inline constexpr int64_t kMostExponent = 100;

template <class Derived>
struct ExponentView : UnaryView<Derived> {
  using UnaryView<Derived>::UnaryView;
  int64_t exponent() const { return this->template attr<int64_t>("exponent", 0); }
  float factor() const { return this->template attr<float>("factor", 1); }
};

// y = saturate(round(x / (factor * 2^exponent))), ties to even; f32 to i8; NaN gives 0.
struct Quantize : ExponentView<Quantize> {
  static constexpr std::string_view kName = "quant.Quantize";
  using ExponentView::ExponentView;
};
// y = x * (factor * 2^exponent), exact if factor is 1; i8 to f32.
struct Dequantize : ExponentView<Dequantize> {
  static constexpr std::string_view kName = "quant.Dequantize";
  using ExponentView::ExponentView;
};
// y = Dequantize(Quantize(x)), f32 to f32: states that x is to be held in 8 bits. Calibration inserts it into a float
// model, and fuse-quantised turns it into integers.
struct Round : ExponentView<Round> {
  static constexpr std::string_view kName = "quant.Round";
  using ExponentView::ExponentView;
};
// y = clip(((x << left_shift) + rounding) >> shift, clip_min, clip_max), i8 or i32 to i8, as in fused/epilogue.hpp:
// from exponent e to e + shift - left_shift. A ReLU on integers is clip_min = 0 alone.
struct Requantize : UnaryView<Requantize> {
  static constexpr std::string_view kName = "quant.Requantize";
  using UnaryView::UnaryView;
};

}  // namespace tenon::quant
