// Inside the room: conversions between lanes and numbers, and the bounds of real intervals as floats.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <tenon/tensor/element_type.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::snippet::detail {

inline double real_of(ElementType element, uint64_t bits) { return decode_float(element, bits); }
inline uint64_t bits_of(ElementType element, double value) { return encode_float(element, value); }

// The greatest f32 that is at most `value`, and the least that is at least it. NaN stays.
inline float below(double value) {
  const auto near = static_cast<float>(value);
  return static_cast<double>(near) > value ? std::nextafterf(near, -INFINITY) : near;
}
inline float above(double value) {
  const auto near = static_cast<float>(value);
  return static_cast<double>(near) < value ? std::nextafterf(near, INFINITY) : near;
}

// The lane of f32 or f64 at the end of a real interval, rounded outward.
inline uint64_t low_end(ElementType lane, double value) {
  return lane == kF32 ? std::bit_cast<uint32_t>(below(value)) : std::bit_cast<uint64_t>(value);
}
inline uint64_t high_end(ElementType lane, double value) {
  return lane == kF32 ? std::bit_cast<uint32_t>(above(value)) : std::bit_cast<uint64_t>(value);
}

// The unit in the last place of f32 at a real number, in which JitterRow::max_ulp is measured.
inline double ulp(double value) {
  if (std::abs(value) < 0x1p-126) return 0x1p-149;
  return std::isfinite(value) ? std::ldexp(1.0, std::ilogb(value) - 23) : 0;
}

// The least of v - units * ulp(v) over v in [low, high]: at `low`, or where the unit doubles, just above it.
inline double lowered(double low, double high, double units) {
  const double at_low = low - units * ulp(low);
  if (!(low > 0) || !std::isfinite(low)) return at_low;
  const double power = std::ldexp(1.0, std::ilogb(low) + 1);
  return power <= high ? std::min(at_low, power - units * ulp(power)) : at_low;
}
inline double raised(double low, double high, double units) { return -lowered(-high, -low, units); }

inline int64_t signed_of(ElementType element, uint64_t bits) {
  const int unused = 64 - element.bits();
  return static_cast<int64_t>(bits << unused) >> unused;
}

// Neither is NaN.
inline bool is_less(ElementType element, uint64_t a, uint64_t b) {
  if (element.is_float()) return real_of(element, a) < real_of(element, b);
  return element.is_signed_int() ? signed_of(element, a) < signed_of(element, b) : a < b;
}
inline bool is_nan(ElementType element, uint64_t bits) {
  return element.is_float() && std::isnan(real_of(element, bits));
}
// Whether the values between the ends are known. The two zeros count as different: 1 / x distinguishes them.
inline bool is_one(ElementType element, uint64_t low, uint64_t high) {
  return low == high || (is_nan(element, low) && is_nan(element, high));
}

}  // namespace tenon::snippet::detail
