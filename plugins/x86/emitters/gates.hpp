// x times a gate between 0 and 1. Far below 0 the gate is smaller than any float while the product is not yet: it is
// kept times 2^kGateExponent. With small = min(x, kGateUnit) and large = max(x, kGateUnit), gate * small * large is x
// times the gate, and no partial product leaves the range of floats. x = -inf gives NaN (-inf * 0), as the formulas do.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline constexpr int kGateExponent = 79;
inline constexpr float kGateUnit = 0x1p-79f;  // 2^-kGateExponent
inline constexpr float kGateEnd = 140;        // z e^-z is 0 from here on, and e^z 2^-kGateExponent a float
inline constexpr float kGateFull = 30;        // 1 + e^-z is 1

// out = product max(x, kGateUnit), where `product` is the gate times 2^kGateExponent and min(x, kGateUnit). Destroys
// `product`; takes a scratch vector.
void multiply_by_large(VectorCode& c, const Vec& out, const Vec& product, const Vec& x);
// out = x / (1 + e^-z) by the parts of e^-z 2^-kGateExponent (exponential_parts()). `bounded`: x, but not below where
// the result is 0 already, with -kGateEnd < z < kGateFull for it. Destroys all but x; takes two scratch vectors. avx512
// divides by a reciprocal, or `by_divider`: three operations fewer, of which others hide the 10 cycles that it takes.
void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& x, const Vec& bounded, const Vec& power,
                         const Vec& rest, bool by_divider = false);

}  // namespace tenon::x86
