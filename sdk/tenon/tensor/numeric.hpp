// The C++ side of element types: storage types, and exact conversions between all formats.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon {

class Tensor;

// What happens to values that a narrow type cannot hold.
struct ConvertOptions {
  // 8-bit and 4-bit floats: too large becomes the largest finite value (true), or infinity, else NaN, as the format has it
  // (the `saturate` attribute of ONNX Cast and QuantizeLinear).
  bool saturate = true;
  enum class Rounding : uint8_t { nearest_even, up, down, nearest } e8m0_rounding = Rounding::up;  // for f8e8m0 only
};

// A float format given by its bits in the low part of an unsigned integer. `decode` is exact; `encode` rounds to nearest,
// ties to even, once (from double: no double rounding).
TENON_API double decode_float(ElementType format, uint64_t bits);
TENON_API uint64_t encode_float(ElementType format, double value, const ConvertOptions& options = {});

// 16-bit floats as values. Conversions are exact upwards and round to nearest even downwards.
struct TENON_API f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float value);
  explicit f16(double value);
  template <std::integral T>
  explicit f16(T value) : f16(static_cast<double>(value)) {}
  operator float() const;
  static f16 from_bits(uint16_t bits) { f16 out; out.bits = bits; return out; }
};
struct TENON_API bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value);
  explicit bf16(double value);
  template <std::integral T>
  explicit bf16(T value) : bf16(static_cast<double>(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static bf16 from_bits(uint16_t bits) { bf16 out; out.bits = bits; return out; }
};

namespace detail {
template <class T>
struct Storage { using type = T; };
template <>
struct Storage<bool> { using type = uint8_t; };
}  // namespace detail
// The C++ type in memory: T itself, but one byte for bool.
template <class T>
using storage_of = typename detail::Storage<T>::type;

template <class T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, double>) return kF64;
  else if constexpr (std::is_same_v<T, float>) return kF32;
  else if constexpr (std::is_same_v<T, f16>) return kF16;
  else if constexpr (std::is_same_v<T, bf16>) return kBF16;
  else if constexpr (std::is_same_v<T, bool>) return kBool;
  else if constexpr (std::is_same_v<T, std::string>) return kString;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return kC64;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return kC128;
  else {
    static_assert(std::is_integral_v<T>, "no element type for this C++ type");
    return {std::is_signed_v<T> ? ElementKind::sint : ElementKind::uint, static_cast<uint8_t>(sizeof(T) * 8)};
  }
}

// True when a tensor of `element` may be viewed as T: uint8_t also views booleans and every one-byte float's bits.
template <class T>
constexpr bool holds_storage(ElementType element) {
  if constexpr (std::is_same_v<T, uint8_t>) return element.bits() == 8 && element != kI8;
  else return element == element_type_of<T>();
}

// Runs body.template operator()<T>() with the C++ type of `element`, for those that have one: f64 f32 f16 bf16, 8- to
// 64-bit integers, bool. False when there is none (8-bit and narrower floats, other widths, strings, complex).
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

// `source` in another element type, as ONNX Cast states it:
//   float -> float    nearest even; narrow floats saturate or overflow by `options`
//   float -> integer  truncation towards zero; what does not fit saturates, NaN becomes 0 (ONNX leaves both undefined);
//                     to 4- and 2-bit integers: nearest even, then wrapped or saturated as the ONNX cases show
//   integer -> integer  the low bits
//   any -> bool       not zero;   bool -> any  0 or 1
//   string <-> number decimal text, as ONNX states it
// An unparsable string is an error that quotes it. Complex converts only to complex.
TENON_API Result<Tensor> convert(const Tensor& source, ElementType to, const ConvertOptions& options = {});

}  // namespace tenon
