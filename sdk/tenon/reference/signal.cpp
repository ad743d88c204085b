#include <tenon/ops/signal.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <tenon/reference/carrier.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

// y[k] = sum over n of x[n] exp(sign * 2 pi i k n / N) for k = 0 .. N - 1, N = length. By the prime factors of N
// (Cooley and Tukey, 1965), decimation in frequency; O(N * sum of the factors).
template <class T>
class Fourier {
 public:
  using Complex = std::complex<T>;

  Fourier(int64_t length, int sign) {
    for (int64_t k = 0; k < length; ++k) {
      const double angle = sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      roots_.emplace_back(static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle)));
    }
  }

  std::vector<Complex> operator()(const std::vector<Complex>& x) const {
    const size_t length = x.size(), factor = smallest_factor(length), rest = length / factor;
    if (rest == 1) return by_definition(x);
    std::vector<std::vector<Complex>> parts(factor, std::vector<Complex>(rest));
    std::vector<Complex> column(factor), out(length);
    for (size_t i = 0; i < rest; ++i) {
      for (size_t j = 0; j < factor; ++j) column[j] = x[i + j * rest];
      const std::vector<Complex> turned = by_definition(column);
      for (size_t q = 0; q < factor; ++q) parts[q][i] = product(turned[q], root(q * i, length));
    }
    for (size_t q = 0; q < factor; ++q) {
      const std::vector<Complex> part = (*this)(parts[q]);
      for (size_t k = 0; k < rest; ++k) out[k * factor + q] = part[k];
    }
    return out;
  }

 private:
  static size_t smallest_factor(size_t n) {
    for (size_t factor = 2; factor * factor <= n; ++factor) {
      if (n % factor == 0) return factor;
    }
    return n;
  }
  // Without the special handling of infinities in std::complex.
  static Complex product(const Complex& a, const Complex& b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  // exp(sign * 2 pi i k / n), where n divides the length.
  const Complex& root(size_t k, size_t n) const { return roots_[k % n * (roots_.size() / n)]; }
  std::vector<Complex> by_definition(const std::vector<Complex>& x) const {
    std::vector<Complex> out(x.size());
    for (size_t k = 0; k < x.size(); ++k) {
      for (size_t n = 0; n < x.size(); ++n) out[k] += product(x[n], root(k * n, x.size()));
    }
    return out;
  }

  std::vector<Complex> roots_;
};

// Reads and writes the complex numbers of a line, which are `stride` numbers apart.
struct Line {
  int64_t offset, stride, parts;  // offset and stride in numbers, not parts

  template <class T>
  std::complex<T> read(const T* data, int64_t i) const {
    const T* at = data + (offset + i * stride) * parts;
    return {at[0], parts == 2 ? at[1] : T()};
  }
  template <class T>
  void write(T* data, int64_t i, const std::complex<T>& value) const {
    T* at = data + (offset + i * stride) * parts;
    at[0] = value.real();
    if (parts == 2) at[1] = value.imag();
  }
};

Result<void> dft(EvalContext& context) {
  const Tensor& given = context.tensor(0);
  const bool inverse = context.attr<int64_t>("inverse", 0) != 0, onesided = context.attr<int64_t>("onesided", 0) != 0;
  // Real signals in double. Complex ones of f32 in f32, as in NumPy: recorded results contain its rounding errors where
  // the exact value is 0, which exceed the tolerance of the comparison.
  const bool complex = given.dims().back() == 2 && !onesided;
  TENON_TRY(input, to_element(given, complex ? carrier_of(given.element()) : kF64));
  TENON_TRY(result, context.output(0));
  TENON_TRY(output, Tensor::allocate(input.element(), result->dims()));
  TENON_TRY(axis, normalize_axis(context.has_operand(2) ? context.tensor(2).int_at(0) : -2, input.rank()));
  const auto numbers = [](const Dims& dims) { return std::span(dims).first(dims.size() - 1); };
  const AxisView from(numbers(input.dims()), static_cast<size_t>(axis)),
      to(numbers(output.dims()), static_cast<size_t>(axis));
  int64_t length = inverse && onesided ? 2 * (from.extent - 1) : from.extent;
  if (context.has_operand(1)) length = context.tensor(1).int_at(0);
  const int64_t taken = std::min(from.extent, inverse && onesided ? length / 2 + 1 : length);
  with_float_carrier(input.element(), [&]<class T>() {
    const Fourier<T> fourier(length, inverse ? 1 : -1);
    const T* in = input.as<T>().data();
    T* out = output.mutable_as<T>().data();
    context.parallel().run(from.lines(), grain_of(8 * length), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const Line source{from.offset(line), from.inner, input.dims().back()};
        const Line target{to.offset(line), to.inner, output.dims().back()};
        std::vector<std::complex<T>> x(static_cast<size_t>(length));
        for (int64_t n = 0; n < taken; ++n) {
          x[static_cast<size_t>(n)] = source.read(in, n);
          // A real signal's spectrum is its own mirror image.
          if (inverse && onesided && n > 0) x[static_cast<size_t>(length - n)] = std::conj(x[static_cast<size_t>(n)]);
        }
        const auto y = fourier(x);
        const T scale = inverse ? static_cast<T>(length) : T(1);
        for (int64_t k = 0; k < to.extent; ++k) target.write(out, k, y[static_cast<size_t>(k)] / scale);
      }
    });
  });
  return store_converted(*result, output);
}

Result<void> stft(EvalContext& context) {
  TENON_TRY(signal, to_element(context.tensor(0), kF64));
  TENON_TRY(result, context.output(0));
  TENON_TRY(output, Tensor::allocate(kF64, result->dims()));
  const int64_t points = signal.dim(1), frames = output.dim(1), bins = output.dim(2);
  const int64_t step = context.tensor(1).int_at(0);
  int64_t length = points;
  std::vector<double> window;
  if (context.has_operand(2)) {
    for (int64_t n = 0; n < context.tensor(2).size(); ++n) window.push_back(context.tensor(2).double_at(n));
    length = context.tensor(2).size();
  }
  if (context.has_operand(3)) length = context.tensor(3).int_at(0);
  window.resize(static_cast<size_t>(length), 1.0);
  const Fourier<double> fourier(length, -1);
  const double* in = signal.as<double>().data();
  double* out = output.mutable_as<double>().data();
  context.parallel().run(signal.dim(0) * frames, grain_of(8 * length), [&](int64_t begin, int64_t end) {
    for (int64_t frame = begin; frame < end; ++frame) {
      const Line source{frame / frames * points + frame % frames * step, 1, signal.dim(2)};
      std::vector<std::complex<double>> x;
      for (int64_t n = 0; n < length; ++n) x.push_back(source.read(in, n) * window[static_cast<size_t>(n)]);
      const auto y = fourier(x);
      for (int64_t k = 0; k < bins; ++k) Line{frame * bins, 1, 2}.write(out, k, y[static_cast<size_t>(k)]);
    }
  });
  return store_converted(*result, output);
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)
Result<void> cosine_window(EvalContext& context, double a0, double a1, double a2) {
  TENON_TRY(out, context.output(0));
  const int64_t size = out->size();
  const int64_t period = context.attr<int64_t>("periodic", 1) != 0 ? size : std::max<int64_t>(1, size - 1);
  for (int64_t n = 0; n < size; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period);
    out->set_double(n, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return {};
}
Result<void> hann(EvalContext& context) { return cosine_window(context, 0.5, 0.5, 0); }
Result<void> hamming(EvalContext& context) { return cosine_window(context, 25.0 / 46, 21.0 / 46, 0); }
Result<void> blackman(EvalContext& context) { return cosine_window(context, 0.42, 0.5, 0.08); }

Result<void> mel_weight_matrix(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const int64_t bins = out->dim(0), filters = out->dim(1);
  const auto length = context.tensor(1).int_at(0), rate = context.tensor(2).int_at(0);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(context.tensor(3).double_at(0)), high = mel(context.tensor(4).double_at(0));
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < filters + 2; ++i) {
    const double at = low + static_cast<double>(i) * (high - low) / static_cast<double>(filters + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    const double corner = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(corner >= 0 && corner < static_cast<double>(bins))) {
      return error(Code::invalid_argument, "corner ", i, " of the mel filters is ", hertz, " Hz, outside the ", bins,
                   " bins of a sample rate of ", rate, " Hz");
    }
    corners.push_back(static_cast<int64_t>(corner));
  }
  for (int64_t bin = 0; bin < bins; ++bin) {
    for (int64_t filter = 0; filter < filters; ++filter) {
      const int64_t left = corners[static_cast<size_t>(filter)], centre = corners[static_cast<size_t>(filter) + 1];
      const int64_t right = corners[static_cast<size_t>(filter) + 2];
      double weight = bin == centre ? 1 : 0;
      if (bin >= left && bin < centre) weight = static_cast<double>(bin - left) / static_cast<double>(centre - left);
      if (bin > centre && bin < right) weight = static_cast<double>(right - bin) / static_cast<double>(right - centre);
      out->set_double(bin * filters + filter, weight);
    }
  }
  return {};
}

const EvaluatorRegistration kSignalRegistered({
    {DFT::kName, dft},
    {STFT::kName, stft},
    {HannWindow::kName, hann},
    {HammingWindow::kName, hamming},
    {BlackmanWindow::kName, blackman},
    {MelWeightMatrix::kName, mel_weight_matrix},
});

}  // namespace
}  // namespace tenon
