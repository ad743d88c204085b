// Signals: Fourier transforms, windows, the mel filter bank. Complex numbers are pairs (real, imaginary) along a last
// axis of extent 2; a last axis of extent 1 holds real numbers.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// y[k] = sum over n of x[n] exp(-2 pi i k n / N) along `axis`, N = dft_length (the axis' extent when absent; x is
// cropped or padded with zeros to it). inverse: exp(+...), divided by N. onesided: only k up to N / 2; with inverse, x
// holds these k and y is real, N = 2 (extent - 1) when dft_length is absent. f(16..64)[..., extent, ..., 1 or 2].
struct DFT : OpView<DFT> {
  static constexpr std::string_view kName = "DFT";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* dft_length() const { return operand(1); }  // may be null
  Value* axis() const { return operand(2); }        // may be null: -2
  bool inverse() const { return attr<int64_t>("inverse", 0) != 0; }
  bool onesided() const { return attr<int64_t>("onesided", 0) != 0; }
};

// y[b, f, k] = sum over n of signal[b, f * frame_step + n] window[n] exp(-2 pi i k n / N), N = frame_length, or the
// window's length, or the signal's. onesided (the default): only k up to N / 2. signal: [batch, length, 1 or 2]; y:
// [batch, 1 + (length - N) / frame_step, bins, 2].
struct STFT : OpView<STFT> {
  static constexpr std::string_view kName = "STFT";
  using OpView::OpView;
  Value* signal() const { return operand(0); }
  Value* frame_step() const { return operand(1); }
  Value* window() const { return operand(2); }        // may be null: ones
  Value* frame_length() const { return operand(3); }  // may be null
  bool onesided() const { return attr<int64_t>("onesided", 1) != 0; }
};

// Windows of `size` points; N = size (periodic, the default) or size - 1.
// w[n] = 1/2 - 1/2 cos(2 pi n / N)
struct HannWindow : OpView<HannWindow> {
  static constexpr std::string_view kName = "HannWindow";
  using OpView::OpView;
  Value* size() const { return operand(0); }
};
// w[n] = 25/46 - 21/46 cos(2 pi n / N)
struct HammingWindow : OpView<HammingWindow> {
  static constexpr std::string_view kName = "HammingWindow";
  using OpView::OpView;
  Value* size() const { return operand(0); }
};
// w[n] = 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)
struct BlackmanWindow : OpView<BlackmanWindow> {
  static constexpr std::string_view kName = "BlackmanWindow";
  using OpView::OpView;
  Value* size() const { return operand(0); }
};

// Triangular filters, evenly spaced on the mel scale 2595 log10(1 + f / 700) between the edges: the matrix that maps
// the dft_length / 2 + 1 bins of a one-sided spectrum to num_mel_bins. Filter i rises from corner i to corner i + 1 and
// falls to corner i + 2; corners are whole bins: floor((dft_length + 1) f / sample_rate).
struct MelWeightMatrix : OpView<MelWeightMatrix> {
  static constexpr std::string_view kName = "MelWeightMatrix";
  using OpView::OpView;
  Value* num_mel_bins() const { return operand(0); }
  Value* dft_length() const { return operand(1); }
  Value* sample_rate() const { return operand(2); }
  Value* lower_edge_hertz() const { return operand(3); }
  Value* upper_edge_hertz() const { return operand(4); }
};

}  // namespace tenon
