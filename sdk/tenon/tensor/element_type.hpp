// The type of one tensor element: a kind and a width in bits.
//
//   f64 f32 f16 bf16                       IEEE 754 binary formats and the upper half of f32
//   f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz  8-bit floats, as in the ONNX documentation "Float stored in 8 bits"
//   f8e8m0 f4e2m1                          the OCP microscaling scale and 4-bit float
//   i1 .. i64, u1 .. u64                   two's complement and unsigned integers of any width
//   bool                                   one byte, 0 or 1
//   str                                    a std::string
//   c64 c128                               complex of two f32 or two f64
//
// Elements are stored contiguously, little-endian. Elements narrower than a byte, or of a width that is not a power of
// two, form one dense stream of bits, the first element in the lowest bits of the first byte (as ONNX packs 4-bit and
// 2-bit elements). A tensor's storage ends at a whole byte; the bits after the last element are zero.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenon/support/export.hpp>

namespace tenon {

enum class ElementKind : uint8_t {
  none,
  ieee,  // f64, f32, f16
  bf16,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  sint,
  uint,
  boolean,
  string,
  complex,
};

class TENON_API ElementType {
 public:
  constexpr ElementType() = default;
  constexpr ElementType(ElementKind kind, uint8_t bits) : kind_(kind), bits_(bits) {}

  constexpr ElementKind kind() const { return kind_; }
  // The width of an element in memory; 0 for strings, whose C++ objects are not counted in bits.
  constexpr int bits() const { return bits_; }
  constexpr bool is_float() const { return kind_ >= ElementKind::ieee && kind_ <= ElementKind::f4e2m1; }
  constexpr bool is_signed_int() const { return kind_ == ElementKind::sint; }
  constexpr bool is_unsigned_int() const { return kind_ == ElementKind::uint; }
  constexpr bool is_int() const { return is_signed_int() || is_unsigned_int(); }
  constexpr bool is_bool() const { return kind_ == ElementKind::boolean; }
  constexpr bool is_string() const { return kind_ == ElementKind::string; }
  constexpr bool is_complex() const { return kind_ == ElementKind::complex; }
  constexpr bool is_number() const { return is_float() || is_int(); }
  constexpr bool valid() const { return kind_ != ElementKind::none; }
  // True when each element starts at a byte and fills whole bytes.
  constexpr bool byte_addressable() const {
    return bits_ == 8 || bits_ == 16 || bits_ == 32 || bits_ == 64 || bits_ == 128;
  }

  constexpr bool operator==(const ElementType&) const = default;
  constexpr auto operator<=>(const ElementType&) const = default;

  std::string to_string() const;
  static std::optional<ElementType> parse(std::string_view text);

 private:
  ElementKind kind_ = ElementKind::none;
  uint8_t bits_ = 0;
};

inline constexpr ElementType kF64{ElementKind::ieee, 64}, kF32{ElementKind::ieee, 32}, kF16{ElementKind::ieee, 16};
inline constexpr ElementType kBF16{ElementKind::bf16, 16};
inline constexpr ElementType kF8E4M3FN{ElementKind::f8e4m3fn, 8}, kF8E4M3FNUZ{ElementKind::f8e4m3fnuz, 8};
inline constexpr ElementType kF8E5M2{ElementKind::f8e5m2, 8}, kF8E5M2FNUZ{ElementKind::f8e5m2fnuz, 8};
inline constexpr ElementType kF8E8M0{ElementKind::f8e8m0, 8}, kF4E2M1{ElementKind::f4e2m1, 4};
inline constexpr ElementType kI8{ElementKind::sint, 8}, kI16{ElementKind::sint, 16}, kI32{ElementKind::sint, 32};
inline constexpr ElementType kI64{ElementKind::sint, 64}, kI4{ElementKind::sint, 4}, kI2{ElementKind::sint, 2};
inline constexpr ElementType kU8{ElementKind::uint, 8}, kU16{ElementKind::uint, 16}, kU32{ElementKind::uint, 32};
inline constexpr ElementType kU64{ElementKind::uint, 64}, kU4{ElementKind::uint, 4}, kU2{ElementKind::uint, 2};
inline constexpr ElementType kBool{ElementKind::boolean, 8}, kString{ElementKind::string, 0};
inline constexpr ElementType kC64{ElementKind::complex, 64}, kC128{ElementKind::complex, 128};

}  // namespace tenon
