// The C++ side of element types: storage types, and exact conversions between all formats.
#pragma once
#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon {

class Tensor;

// The treatment of values that a narrow type cannot represent.
struct ConvertOptions {
  // 8-bit floats: values that are too large or infinite become the largest finite value (true), or infinity, or NaN if
  // the format lacks infinity (the `saturate` attribute of ONNX Cast and QuantizeLinear). Other floats ignore it:
  // f4e2m1 always saturates, the wider ones overflow to infinity.
  bool saturate = true;
  // f8e8m0 only, which holds powers of two: rounds up, down, or to the nearer one (ties up; nearest_even: ties to the
  // even code).
  enum class Rounding : uint8_t { nearest_even, up, down, nearest } e8m0_rounding = Rounding::up;
};

// A float format given by its bits in the low part of an unsigned integer. `decode` is exact; `encode` rounds to
// nearest, ties to even, once (from double: no double rounding). NaN keeps its sign where the format has one; f4e2m1,
// which has no NaN, gives -0, as in the ONNX cases. f8e8m0 has no sign and no zero: it takes the magnitude, and values
// below its least value 2^-127 become that. Formulas: "Float stored in 8 bits", "Float stored in 4 bits" of the ONNX
// documentation, and the OCP Microscaling Formats specification 1.0.
TENON_API double decode_float(ElementType format, uint64_t bits);
TENON_API uint64_t encode_float(ElementType format, double value, const ConvertOptions& options = {});

namespace detail {
// `value` as a double, rounded to odd if 53 bits do not hold it. Rounding that to a format with at most 40 bits of
// significand then gives the same as rounding `value` directly (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd", 2008).
template <std::integral T>
constexpr double odd_double(T value) {
  const bool negative = value < 0;
  uint64_t magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  if (magnitude >> 53) magnitude = (magnitude & ~uint64_t{0xfff}) | ((magnitude & 0xfff) != 0 ? 0x800 : 0);
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}
}  // namespace detail

// 16-bit floats as values. Conversions are exact upwards and round to nearest even downwards.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float value) : bits(round(value)) {}
  explicit f16(double value) : bits(static_cast<uint16_t>(encode_float(kF16, value))) {}
  template <std::integral T>
  explicit f16(T value) : f16(detail::odd_double(value)) {}
  operator float() const;
  static f16 from_bits(uint16_t bits) {
    f16 out;
    out.bits = bits;
    return out;
  }

 private:
  static uint16_t round(float value);
};
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) : bits(round(value)) {}
  explicit bf16(double value) : bits(static_cast<uint16_t>(encode_float(kBF16, value))) {}
  template <std::integral T>
  explicit bf16(T value) : bf16(detail::odd_double(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static bf16 from_bits(uint16_t bits) {
    bf16 out;
    out.bits = bits;
    return out;
  }

 private:
  static uint16_t round(float value);
};

// Independent of the machine's rounding and flush-to-zero modes, except for f16's denormal results (nearest is
// assumed).
inline f16::operator float() const {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
  uint32_t out;
  if (magnitude >= 0x0f800000u) {
    out = magnitude + 0x70000000u;  // infinity and NaN: exponent 31 becomes 255
  } else if (magnitude >= 0x00800000u) {
    out = magnitude + 0x38000000u;  // the biases differ by 127 - 15
  } else {
    // 2^-14 * (1 + fraction) - 2^-14: the denormal's value, computed with normal numbers.
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + 0x38800000u) - 0x1p-14f);
  }
  return std::bit_cast<float>(out | sign);
}

inline uint16_t f16::round(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000u, magnitude = word & 0x7fffffffu;
  uint32_t out;
  if (magnitude > 0x7f800000u) {
    out = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // a quiet NaN with the upper payload
  } else if (magnitude >= 0x477ff000u) {
    out = 0x7c00u;  // 65520, halfway beyond the largest, and above
  } else if (magnitude >= 0x38800000u) {
    out = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // Added to 0.5, whose last place is 2^-24, f16's least denormal: the addition rounds.
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(out | sign);
}

inline uint16_t bf16::round(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(word >> 16 | 0x40u);  // a quiet NaN
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

namespace detail {
template <class T>
struct Storage {
  using type = T;
};
template <>
struct Storage<bool> {
  using type = uint8_t;
};
}  // namespace detail
// The C++ type in memory: T itself, except one byte for bool.
template <class T>
using storage_of = typename detail::Storage<T>::type;

template <class T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, double>)
    return kF64;
  else if constexpr (std::is_same_v<T, float>)
    return kF32;
  else if constexpr (std::is_same_v<T, f16>)
    return kF16;
  else if constexpr (std::is_same_v<T, bf16>)
    return kBF16;
  else if constexpr (std::is_same_v<T, bool>)
    return kBool;
  else if constexpr (std::is_same_v<T, std::string>)
    return kString;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return kC64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return kC128;
  else {
    static_assert(std::is_integral_v<T>, "no element type for this C++ type");
    return {std::is_signed_v<T> ? ElementKind::sint : ElementKind::uint, static_cast<uint8_t>(sizeof(T) * 8)};
  }
}

// True when a tensor of `element` may be viewed as T: uint8_t also views booleans and every one-byte float's bits.
template <class T>
constexpr bool holds_storage(ElementType element) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return element.bits() == 8 && element != kI8;
  else
    return element == element_type_of<T>();
}

// Runs body.template operator()<T>() with the C++ type of `element`, if it has one: f64 f32 f16 bf16, 8- to 64-bit
// integers, bool. False if there is none (8-bit and narrower floats, other widths, strings, complex).
template <class Body>
bool dispatch_number(ElementType element, Body&& body) {
  if (element == kF32) return body.template operator()<float>(), true;
  if (element == kF64) return body.template operator()<double>(), true;
  if (element == kF16) return body.template operator()<f16>(), true;
  if (element == kBF16) return body.template operator()<bf16>(), true;
  if (element == kI64) return body.template operator()<int64_t>(), true;
  if (element == kI32) return body.template operator()<int32_t>(), true;
  if (element == kI16) return body.template operator()<int16_t>(), true;
  if (element == kI8) return body.template operator()<int8_t>(), true;
  if (element == kU64) return body.template operator()<uint64_t>(), true;
  if (element == kU32) return body.template operator()<uint32_t>(), true;
  if (element == kU16) return body.template operator()<uint16_t>(), true;
  if (element == kU8) return body.template operator()<uint8_t>(), true;
  if (element == kBool) return body.template operator()<bool>(), true;
  return false;
}

// Bits of element `index` of a dense bit stream, any width from 1 to 64; the value is not sign-extended.
TENON_API uint64_t load_bits(const std::byte* data, int bits, int64_t index);
TENON_API void store_bits(std::byte* data, int bits, int64_t index, uint64_t value);

// `source` in another element type, as ONNX Cast specifies (cases that it leaves open are decided here):
//   float -> float    nearest even; narrow floats saturate or overflow by `options`
//   float -> integer  truncation towards zero; values out of range saturate, NaN becomes 0 (open in ONNX);
//                     to integers narrower than a byte: nearest even, then the low bits (as in the ONNX cases; open
//                     there for more than 64 bits: saturated to i64 first)
//   integer -> integer  the low bits
//   integer -> float  nearest even, once
//   any -> bool       not zero (NaN is true);   bool -> any  0 or 1
//   string -> number  decimal text, plain or scientific, "INF", "+INF", "-INF", "NaN" in any case; surrounding spaces
//                     are skipped. To an integer: truncated and saturated. To floats narrower than f32: through f64
//   number -> string  the shortest text that parses to the same element; "INF", "-INF", "NaN"; an exponent only below
//                     1e-4 and from 1e16
// An unparsable string is an error that quotes it. Complex converts only to complex. Conversion to the same type
// returns `source` itself, sharing its bytes.
// itself, sharing its bytes.
TENON_API Result<Tensor> convert(const Tensor& source, ElementType to, const ConvertOptions& options = {});

}  // namespace tenon
