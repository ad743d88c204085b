// Recurrent layers. X: [T, B, I] (time, batch, input), or with layout 1 [B, T, I]. W: [D, G * H, I], R: [D, G * H, H],
// B: [D, 2 * G * H] (of W, then of R): D directions, G gates, hidden size H. Y: [T, D, B, H], with layout 1 [B, T, D,
// B: [D, 2 * G * H] (of W, then of R): D directions, G gates, hidden size H. Y: [T, D, B, H], with layout 1 [B, T, D,
// H]; states: [D, B, H], with layout 1 [B, D, H]. sequence_lens: the number of valid steps of each batch entry; Y is 0
// after them, and the reverse direction starts at the last one.
//
// f, g, h are `activations`, at most three letters per direction; `clip` bounds their arguments. W', R' are transposes:
//   x W' + b means the gate's rows of W times x_t, plus the gate's part of B.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// H_t = f(x W' + h R' + b), h = H_(t-1)
struct RNN : OpView<RNN> {
  static constexpr std::string_view kName = "RNN";
  using OpView::OpView;
};

// Gates z, r, h in this order:
//   z = f(x Wz' + h Rz' + bz), r = f(x Wr' + h Rr' + br)
//   n = g(x Wh' + (r * h) Rh' + bh), or with linear_before_reset g(x Wh' + wbh + r * (h Rh' + rbh))
//   H_t = (1 - z) * n + z * h
struct GRU : OpView<GRU> {
  static constexpr std::string_view kName = "GRU";
  using OpView::OpView;
};

// Gates i, o, f, c in this order, P: [D, 3 * H] of i, o, f:
//   i = f(x Wi' + h Ri' + Pi * c + bi), f likewise, or with input_forget 1 - i; n = g(x Wc' + h Rc' + bc)
//   C_t = f * c + i * n, o = f(x Wo' + h Ro' + Po * C_t + bo), H_t = o * h(C_t)
struct LSTM : OpView<LSTM> {
  static constexpr std::string_view kName = "LSTM";
  using OpView::OpView;
};

}  // namespace tenon
