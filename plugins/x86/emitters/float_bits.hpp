// Bit patterns of f32 and f64, by the width of the format.
#pragma once
#include <cstdint>

namespace tenon::x86 {

inline constexpr uint32_t kSign32 = 0x80000000, kInfinity32 = 0x7f800000, kMinusInfinity32 = 0xff800000,
                          kNaN32 = 0x7fc00000, kOne32 = 0x3f800000, kThreeQuarters32 = 0x3f400000;
inline constexpr uint64_t kSign64 = 0x8000000000000000, kInfinity64 = 0x7ff0000000000000,
                          kMinusInfinity64 = 0xfff0000000000000, kNaN64 = 0x7ff8000000000000,
                          kOne64 = 0x3ff0000000000000, kThreeQuarters64 = 0x3fe8000000000000;
// Sign and exponent.
inline constexpr uint32_t kExponentMask32 = 0xff800000;
inline constexpr uint64_t kExponentMask64 = 0xfff0000000000000;
inline constexpr int kMantissaBits32 = 23, kMantissaBits64 = 52;

// Adding these powers of two moves integers into the mantissa.
inline constexpr double kTwo52 = 0x1p52, kTwo63 = 0x1p63;
inline constexpr uint64_t kTwo52Bits = 0x4330000000000000;

}  // namespace tenon::x86
