// Quantised operators that ONNX lacks but quantisers use, in the domain com.microsoft:
//
//   QLinearAdd, QLinearMul                  A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale,
//                                           C_zero_point?
//   QLinearSigmoid, QLinearLeakyRelu,       X, X_scale, X_zero_point?, Y_scale, Y_zero_point?
//   QLinearAveragePool, QLinearGlobalAveragePool
//   QLinearConcat                           Y_scale, Y_zero_point, then X, X_scale, X_zero_point of each
//   QGemm                                   A, a_scale, a_zero_point, B, b_scale, b_zero_point, C?, y_scale?,
//                                           y_zero_point?; C is i32 at a_scale * b_scale; f32 without y_scale
//
// Each is its float operator between DequantizeLinear and QuantizeLinear, which is what the reference runs and what
// expand-quantised replaces it by. An absent zero point is 0. channels_last is not supported.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon::quant {

// Whether it is one of these.
TENON_API bool is_qlinear(const Op& op);

}  // namespace tenon::quant
