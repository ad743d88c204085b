#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <tenon/support/str.hpp>
#include <tenon/tensor/element_codec.hpp>
#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {
namespace {

constexpr size_t kRun = 256;  // elements held as carriers at a time

// Converts a 16-bit float to float; other numbers are unchanged.
template <class T>
auto plain(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return static_cast<float>(value);
  else
    return value;
}

template <class To, class From>
storage_of<To> cast_number(From from) {
  const auto value = plain(from);
  if constexpr (std::is_same_v<To, bool>)
    return value != 0 ? 1 : 0;
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<decltype(value)>)
    return detail::saturate_to<To>(value);
  else
    return static_cast<To>(value);
}

// For two types that have C++ types.
template <class From, class To>
void convert_native(const Tensor& source, Tensor& out) {
  const auto in = source.as<storage_of<From>>();
  const auto to = out.mutable_as<storage_of<To>>();
  for (size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_same_v<From, bool>)
      to[i] = cast_number<To>(uint8_t{in[i] != 0});
    else
      to[i] = cast_number<To>(in[i]);
  }
}

bool convert_natively(const Tensor& source, Tensor& out) {
  bool done = false;
  dispatch_number(source.element(), [&]<class From>() {
    done = dispatch_number(out.element(), [&]<class To>() { convert_native<From, To>(source, out); });
  });
  return done;
}

template <class Carrier>
void write_run(Tensor& out, int64_t begin, std::span<const Carrier> values, const ConvertOptions& options) {
  const ElementType to = out.element();
  const bool native = dispatch_number(to, [&]<class To>() {
    auto* data = reinterpret_cast<storage_of<To>*>(out.mutable_data()) + begin;
    for (size_t i = 0; i < values.size(); ++i) data[i] = cast_number<To>(values[i]);
  });
  if (native) return;
  for (size_t i = 0; i < values.size(); ++i)
    store_bits(out.mutable_data(), to.bits(), begin + static_cast<int64_t>(i), detail::to_bits(to, values[i], options));
}

void convert_by_carriers(const Tensor& source, Tensor& out, const ConvertOptions& options) {
  detail::dispatch_carrier(source.element(), [&]<class Carrier>() {
    const detail::ElementReader<Carrier> reader(source);
    std::array<Carrier, kRun> run;
    for (int64_t begin = 0; begin < source.size(); begin += kRun) {
      const auto count = static_cast<size_t>(std::min<int64_t>(kRun, source.size() - begin));
      reader.read(begin, std::span(run).first(count));
      write_run<Carrier>(out, begin, std::span(run).first(count), options);
    }
  });
}

template <class From, class To>
void convert_complex(const Tensor& source, Tensor& out) {
  const auto in = source.as<std::complex<From>>();
  const auto to = out.mutable_as<std::complex<To>>();
  for (size_t i = 0; i < in.size(); ++i) to[i] = std::complex<To>(in[i]);
}

// ---- text ----

// The shortest digits; in plain notation unless that is very long.
template <class T>
std::string float_text(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  const T magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
  char buffer[64];
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr);
}

// The double with the fewest decimal digits that `format` rounds to `bits`: 0.1 for the f16 next to it.
double fewest_digits(ElementType format, uint64_t bits) {
  constexpr int kDigitsEnough = 9;  // for f32, which is wider than all formats that occur here
  const double value = decode_float(format, bits);
  if (!std::isfinite(value)) return value;
  char buffer[32];
  for (int digits = 1; digits < kDigitsEnough; ++digits) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, digits - 1).ptr;
    double candidate = 0;
    std::from_chars(buffer, end, candidate);
    if (encode_float(format, candidate) == bits) return candidate;
  }
  return value;
}

// Whether a number outside the range of double is too large (rather than too small): by the power of ten of its first
// digit.
bool too_large(std::string_view number) {
  const size_t mark = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, mark);
  const size_t first = digits.find_first_of("123456789");
  const size_t point = std::min(digits.find('.'), digits.size());
  if (mark == std::string_view::npos) return first < point;
  std::string_view power = number.substr(mark + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  int64_t exponent = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec != std::errc()) return power[0] != '-';
  // Text is far shorter than 2^62 bytes, so there is no overflow once the exponent is clamped to that.
  exponent = std::clamp<int64_t>(exponent, -(int64_t{1} << 62), int64_t{1} << 62);
  return static_cast<int64_t>(point) - static_cast<int64_t>(first) + exponent > 0;
}

template <class T>
std::optional<T> read_float(std::string_view text) {
  T value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || failure == std::errc::invalid_argument) return std::nullopt;
  if (failure == std::errc()) return value;
  const T magnitude = too_large(text) ? std::numeric_limits<T>::infinity() : T{0};
  return text.starts_with('-') ? -magnitude : magnitude;
}

// Saturated; exact for whole numbers, otherwise through double.
template <std::integral T>
std::optional<T> read_integer(std::string_view text) {
  T value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc() && stop == text.data() + text.size()) return value;
  const auto number = read_float<double>(text);
  return number ? std::optional(detail::saturate_to<T>(*number)) : std::nullopt;
}

// The bits of type `to`, a float, an integer or bool; nothing when the text is not a number.
std::optional<uint64_t> parse_element(std::string_view text, ElementType to, const ConvertOptions& options) {
  text = trim(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  if (to == kF32) {
    const auto value = read_float<float>(text);
    return value ? std::optional<uint64_t>(std::bit_cast<uint32_t>(*value)) : std::nullopt;
  }
  if (to.is_signed_int()) {
    const auto value = read_integer<int64_t>(text);
    if (!value) return std::nullopt;
    const auto max = static_cast<int64_t>(detail::low_mask(to.bits()) >> 1);
    return static_cast<uint64_t>(std::clamp(*value, -max - 1, max));
  }
  if (to.is_unsigned_int()) {
    const auto value = read_integer<uint64_t>(text);
    return value ? std::optional(std::min(*value, detail::low_mask(to.bits()))) : std::nullopt;
  }
  const auto value = read_float<double>(text);
  return value ? std::optional(detail::to_bits(to, *value, options)) : std::nullopt;
}

Result<void> parse_elements(const Tensor& source, Tensor& out, const ConvertOptions& options) {
  constexpr size_t kQuotedBytes = 64;
  const auto texts = source.as<std::string>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto bits = parse_element(texts[i], out.element(), options);
    if (!bits)
      return error(Code::invalid_argument, "element ", i, " of a tensor ", source,
                   " is no number: ", quote(std::string_view(texts[i]).substr(0, kQuotedBytes)),
                   texts[i].size() > kQuotedBytes ? "..." : "");
    store_bits(out.mutable_data(), out.element().bits(), static_cast<int64_t>(i), *bits);
  }
  return {};
}

void print_elements(const Tensor& source, Tensor& out) {
  const auto texts = out.mutable_as<std::string>();
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i] = detail::element_text(source.element(),
                                    load_bits(source.data(), source.element().bits(), static_cast<int64_t>(i)));
}

}  // namespace

std::string detail::element_text(ElementType element, uint64_t bits) {
  if (element == kF32) return float_text(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // A power of two that is parsed with f8e8m0's rounding upwards must be exact.
  if (element == kF64 || element == kF8E8M0) return float_text(decode_float(element, bits));
  if (element.is_float()) return float_text(fewest_digits(element, bits));
  return with_carrier(element, bits, [](auto value) { return str(value); });
}

Result<Tensor> convert(const Tensor& source, ElementType to, const ConvertOptions& options) {
  const ElementType from = source.element();
  if (!source.valid() || !to.valid())
    return error(Code::invalid_argument, "a conversion from ", from, " to ", to, ": no such element type");
  if (from == to) return source;
  if (from.is_complex() != to.is_complex())
    return error(Code::unsupported, "no conversion from ", from, " to ", to, ": complex converts only to complex");
  // Packed elements are merged into the existing bytes; whole bytes need no zeros beforehand.
  TENON_TRY(out, to.byte_addressable() ? Tensor::allocate(to, source.dims()) : Tensor::zeros(to, source.dims()),
            "converting ", source, " to ", to);
  if (from.is_complex()) {
    from == kC64 ? convert_complex<float, double>(source, out) : convert_complex<double, float>(source, out);
  } else if (from.is_string()) {
    TENON_OK(parse_elements(source, out, options), "converting ", source, " to ", to);
  } else if (to.is_string()) {
    print_elements(source, out);
  } else if (!convert_natively(source, out)) {
    convert_by_carriers(source, out, options);
  }
  return out;
}

}  // namespace tenon
