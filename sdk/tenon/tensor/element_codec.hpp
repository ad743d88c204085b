// Internal to the tensor room: elements of any type as one of three carriers that represent them exactly: double (every
// float), int64_t (signed integers) and uint64_t (unsigned integers, booleans).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::detail {

constexpr uint64_t low_mask(int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// The low `bits` bits of `value` as a two's complement number.
constexpr int64_t sign_extend(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

// Truncated towards zero and saturated; NaN is 0.
template <std::integral T>
T saturate_to(double value) {
  constexpr double kBeyond = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kBeyond) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return std::isnan(value) ? T{0} : static_cast<T>(value);
}

// The bits of a double converted to integer type `to`, by the rules of convert().
inline uint64_t integer_bits(ElementType to, double value) {
  const int bits = to.bits();
  if (bits < 8) return static_cast<uint64_t>(saturate_to<int64_t>(std::nearbyint(value))) & low_mask(bits);
  if (to.is_unsigned_int()) return std::min(saturate_to<uint64_t>(value), low_mask(bits));
  const int64_t max = static_cast<int64_t>(low_mask(bits - 1));
  return static_cast<uint64_t>(std::clamp(saturate_to<int64_t>(value), -max - 1, max)) & low_mask(bits);
}

// The element's bits in type `to`, which is a float, an integer or bool.
template <class Carrier>
uint64_t to_bits(ElementType to, Carrier value, const ConvertOptions& options) {
  if (to.is_bool()) return value != 0 ? 1 : 0;
  if constexpr (std::is_same_v<Carrier, double>) {
    return to.is_float() ? encode_float(to, value, options) : integer_bits(to, value);
  } else {
    if (to.is_int()) return static_cast<uint64_t>(value) & low_mask(to.bits());
    if (to == kF64) return std::bit_cast<uint64_t>(static_cast<double>(value));
    if (to == kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return encode_float(to, odd_double(value), options);
  }
}

// Calls body(value) with the element as its carrier type. `element` is a float, an integer or bool.
template <class Body>
decltype(auto) with_carrier(ElementType element, uint64_t bits, Body&& body) {
  if (element.is_float()) return body(decode_float(element, bits));
  if (element.is_signed_int()) return body(sign_extend(bits, element.bits()));
  return body(element.is_bool() ? uint64_t{bits != 0} : bits);
}

// The decimal text of an element that is a float, an integer or bool: see convert() to strings.
std::string element_text(ElementType element, uint64_t bits);

// Runs body.template operator()<Carrier>() with the carrier type of `element`, a float, an integer or bool.
template <class Body>
void dispatch_carrier(ElementType element, Body&& body) {
  if (element.is_float()) return body.template operator()<double>();
  if (element.is_signed_int()) return body.template operator()<int64_t>();
  body.template operator()<uint64_t>();
}

// Reads ranges of elements of one tensor as carriers. The tensor must outlive the reader.
template <class Carrier>
class ElementReader {
 public:
  explicit ElementReader(const Tensor& source) : element_(source.element()), data_(source.data()) {
    if constexpr (kFloat) {
      if (element_.bits() > 8) return;
      for (size_t code = 0; code < size_t{1} << element_.bits(); ++code) table_[code] = decode_float(element_, code);
    }
  }

  // Elements begin, begin + 1, ...
  void read(int64_t begin, std::span<Carrier> out) const {
    const bool native = dispatch_number(element_, [&]<class T>() {
      if constexpr (kFloat != std::is_integral_v<T>) {
        const auto* in = reinterpret_cast<const storage_of<T>*>(data_) + begin;
        for (size_t i = 0; i < out.size(); ++i) {
          if constexpr (std::is_same_v<T, bool>)
            out[i] = in[i] != 0;
          else
            out[i] = static_cast<Carrier>(in[i]);
        }
      }
    });
    if (native) return;
    for (size_t i = 0; i < out.size(); ++i) {
      const uint64_t bits = load_bits(data_, element_.bits(), begin + static_cast<int64_t>(i));
      if constexpr (kFloat)
        out[i] = table_[bits];
      else if constexpr (std::is_signed_v<Carrier>)
        out[i] = sign_extend(bits, element_.bits());
      else
        out[i] = bits;
    }
  }

 private:
  static constexpr bool kFloat = std::is_same_v<Carrier, double>;
  ElementType element_;
  const std::byte* data_;
  std::array<double, kFloat ? 256 : 0> table_;  // for formats of up to 8 bits
};

}  // namespace tenon::detail
