#include <tenon/tensor/compare.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>

#include <tenon/support/str.hpp>
#include <tenon/tensor/element_codec.hpp>

namespace tenon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool finite(double value) { return std::isfinite(value); }
bool finite(std::complex<double> value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }
template <std::integral T>
bool finite(T) {
  return true;
}

bool nan(double value) { return std::isnan(value); }
bool nan(std::complex<double> value) { return std::isnan(value.real()) || std::isnan(value.imag()); }
template <std::integral T>
bool nan(T) {
  return false;
}

// |a - b|; for integers without overflow.
template <class T>
double distance(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                     : static_cast<uint64_t>(b) - static_cast<uint64_t>(a));
  else
    return std::abs(a - b);
}

template <class T>
double magnitude(T value) {
  if constexpr (std::is_integral_v<T>)
    return std::fabs(static_cast<double>(value));
  else
    return std::abs(value);
}

// Visits pairs of elements, and keeps the statistics and the worst differing pair.
class Scan {
 public:
  explicit Scan(const Tolerance& tolerance) : tolerance_(tolerance) {}

  template <class T>
  void pair(int64_t index, T got, T expected) {
    if (got == expected || (nan(got) && nan(expected))) {
      if (finite(expected)) max_expected_ = std::max(max_expected_, magnitude(expected));
      return;
    }
    if (!finite(got) || !finite(expected)) return differs(index, kInfinity, 0);
    const double difference = distance(got, expected);
    const double limit = tolerance_.atol + tolerance_.rtol * magnitude(expected);
    max_abs_ = std::max(max_abs_, difference);
    max_expected_ = std::max(max_expected_, magnitude(expected));
    if (!(difference <= limit)) differs(index, difference, limit);
  }
  void text(int64_t index, const std::string& got, const std::string& expected) {
    if (got != expected) differs(index, kInfinity, 0);
  }

  Comparison result(const Tensor& got, const Tensor& expected) const {
    Comparison out;
    out.max_abs = max_abs_;
    out.relative_max = incomparable_        ? kInfinity
                       : max_abs_ == 0      ? 0
                       : max_expected_ == 0 ? kInfinity
                                            : max_abs_ / max_expected_;
    out.mismatches = mismatches_;
    out.equal = mismatches_ == 0;
    if (!out.equal) out.difference = describe(got, expected);
    return out;
  }

 private:
  // Pairs are ranked by difference / limit; the first of equal ones is kept.
  void differs(int64_t index, double difference, double limit) {
    incomparable_ = incomparable_ || !std::isfinite(difference);
    const double excess = limit > 0 ? difference / limit : kInfinity;
    const bool worse = mismatches_ == 0 || excess > excess_ || (excess == excess_ && difference > difference_);
    ++mismatches_;
    if (!worse) return;
    worst_ = index, excess_ = excess, difference_ = difference, limit_ = limit;
  }

  std::string describe(const Tensor& got, const Tensor& expected) const;

  Tolerance tolerance_;
  double max_abs_ = 0, max_expected_ = 0;
  bool incomparable_ = false;
  int64_t mismatches_ = 0;
  int64_t worst_ = 0;
  double excess_ = 0, difference_ = 0, limit_ = 0;
};

std::complex<double> complex_at(const Tensor& tensor, int64_t index) {
  const auto i = static_cast<size_t>(index);
  return tensor.element() == kC64 ? std::complex<double>(tensor.as<std::complex<float>>()[i])
                                  : tensor.as<std::complex<double>>()[i];
}

std::string text_at(const Tensor& tensor, int64_t index) {
  if (tensor.element().is_string()) return quote(tensor.as<std::string>()[static_cast<size_t>(index)]);
  if (tensor.element().is_complex()) {
    const auto value = complex_at(tensor, index);
    return str("(", value.real(), ",", value.imag(), ")");
  }
  return detail::element_text(tensor.element(), load_bits(tensor.data(), tensor.element().bits(), index));
}

Dims place_of(const Dims& dims, int64_t index) {
  Dims place(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    place[i] = index % dims[i];
    index /= dims[i];
  }
  return place;
}

std::string Scan::describe(const Tensor& got, const Tensor& expected) const {
  std::string out = str("element ", Shape(place_of(expected.dims(), worst_)), ": ", text_at(got, worst_), " against ",
                        text_at(expected, worst_));
  if (std::isfinite(difference_)) out += str(", |difference| ", difference_, " > ", limit_);
  return out + str("; ", mismatches_, " of ", expected.size(),
                   expected.size() == 1 ? " element differs" : " elements differ");
}

void scan_numbers(Scan& scan, const Tensor& got, const Tensor& expected) {
  detail::dispatch_carrier(expected.element(), [&]<class Carrier>() {
    constexpr size_t kRun = 256;
    const detail::ElementReader<Carrier> reader_got(got), reader_expected(expected);
    std::array<Carrier, kRun> run_got, run_expected;
    for (int64_t begin = 0; begin < expected.size(); begin += kRun) {
      const auto count = static_cast<size_t>(std::min<int64_t>(kRun, expected.size() - begin));
      reader_got.read(begin, std::span(run_got).first(count));
      reader_expected.read(begin, std::span(run_expected).first(count));
      for (size_t i = 0; i < count; ++i) scan.pair(begin + static_cast<int64_t>(i), run_got[i], run_expected[i]);
    }
  });
}

Comparison unlike(std::string difference) {
  Comparison out;
  out.equal = false;
  out.difference = std::move(difference);
  out.relative_max = kInfinity;
  return out;
}

std::string_view kind_of(const Datum& datum) {
  return datum.absent() ? "nothing" : datum.is_tensor() ? "a tensor" : "a sequence";
}

Comparison compare_sequences(const Datum& got, const Datum& expected, const Tolerance& tolerance) {
  const auto &a = got.elements(), &b = expected.elements();
  if (a.size() != b.size()) return unlike(str("a sequence of ", a.size(), " elements against one of ", b.size()));
  Comparison out;
  for (size_t i = 0; i < a.size(); ++i) {
    const Comparison element = compare(a[i], b[i], tolerance);
    if (out.equal && !element.equal) {
      out.equal = false;
      out.difference = str("sequence element ", i, ": ", element.difference);
    }
    out.max_abs = std::max(out.max_abs, element.max_abs);
    out.relative_max = std::max(out.relative_max, element.relative_max);
    out.mismatches += element.mismatches;
  }
  return out;
}

}  // namespace

Comparison compare(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  if (got.element() != expected.element())
    return unlike(str("element type ", got.element(), " against ", expected.element()));
  if (got.dims() != expected.dims())
    return unlike(str("shape ", Shape(got.dims()), " against ", Shape(expected.dims())));
  Scan scan(tolerance);
  if (expected.element().is_string()) {
    const auto a = got.as<std::string>(), b = expected.as<std::string>();
    for (size_t i = 0; i < b.size(); ++i) scan.text(static_cast<int64_t>(i), a[i], b[i]);
  } else if (expected.element().is_complex()) {
    for (int64_t i = 0; i < expected.size(); ++i) scan.pair(i, complex_at(got, i), complex_at(expected, i));
  } else if (expected.valid()) {
    scan_numbers(scan, got, expected);
  }
  return scan.result(got, expected);
}

Comparison compare(const Datum& got, const Datum& expected, const Tolerance& tolerance) {
  if (got.is_tensor() && expected.is_tensor()) return compare(got.tensor(), expected.tensor(), tolerance);
  if (got.is_sequence() && expected.is_sequence()) return compare_sequences(got, expected, tolerance);
  if (got.absent() && expected.absent()) return {};
  return unlike(str(kind_of(got), " against ", kind_of(expected)));
}

int64_t ulp_distance(ElementType format, double a, double b) {
  TENON_CHECK(format == kF64 || format == kF32 || format == kF16 || format == kBF16, "ulps of ", format);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<int64_t>::max();
  const uint64_t sign = uint64_t{1} << (format.bits() - 1);
  const uint64_t x = encode_float(format, a), y = encode_float(format, b);
  const auto x_steps = static_cast<int64_t>(x & ~sign), y_steps = static_cast<int64_t>(y & ~sign);  // from zero
  if ((x & sign) == (y & sign)) return std::abs(x_steps - y_steps);
  int64_t sum = 0;
  return __builtin_add_overflow(x_steps, y_steps, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

}  // namespace tenon
