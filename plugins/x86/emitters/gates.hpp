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
// the result is 0 already, with -kGateEnd < z < kGateFull for it. Destroys all but x; takes two scratch vectors. avx2.
void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& x, const Vec& bounded, const Vec& power,
                         const Vec& rest);

// ---- avx512: x times a gate, as max(x, 0) less what the gate takes of |x| ----

// out = |x|, but not more than `size`; NaN becomes anything up to that.
void bounded_magnitude(VectorCode& c, const Vec& out, const Vec& x, float size);
// out = max(x, 0) with the sign of a zero, -0 for what is negative, NaN for -inf and NaN. Registers differ.
void positive_part(VectorCode& c, const Vec& out, const Vec& x);
// out = x / (1 + e^-z) for z of the sign of x: max(x, 0) - a E / (2^kGateExponent + E), where a is |x| and
// E = e^-|z| 2^kGateExponent, 0 <= |z| <= kGateEnd: no denominator or factor leaves the range of floats, and a product
// that does is the result. Destroys a and E; takes two scratch vectors. out may be x.
void multiply_by_gate(VectorCode& c, const Vec& out, const Vec& x, const Vec& a, const Vec& e);

}  // namespace tenon::x86
