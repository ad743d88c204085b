// x times a gate between 0 and 1, which is 1 for large x. Far below 0 the gate is smaller than any float while the
// product is not yet: it is kept times 2^kGateExponent. Of x bounded to both sides, and with what x has above the upper
// bound added at the end, no partial product leaves the range of floats. x = -inf gives NaN (-inf * 0), as the formulas
// do.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline constexpr int kGateExponent = 75;
inline constexpr float kGateEnd = 140;  // z e^-z is 0 from here on, and e^z 2^-kGateExponent a float
inline constexpr float kGateFull = 20;  // 1 + e^-z is 1

// bounded = x, not beyond `zero`, where the product is 0, nor `full`, where the gate is 1; beyond = bounded - x, but 0
// for what is beyond `zero`, NaN for its infinity and for NaN. zero < 0 < full, or full < 0 < zero for a gate that
// falls.
void bound_gated(VectorCode& c, const Vec& bounded, const Vec& beyond, const Vec& x, float zero, float full);
// out = x times the gate, of `product`: the gate times 2^kGateExponent and the bounded x. Destroys `product`.
void add_beyond(VectorCode& c, const Vec& out, const Vec& product, const Vec& beyond);
// out = x / (1 + e^-z) by the parts of e^-z 2^-kGateExponent (exponential_parts()), -kGateEnd <= z <= kGateFull for the
// bounded x. Destroys `bounded`; takes a scratch vector.
void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& bounded, const Vec& beyond, const Vec& power,
                         const Vec& rest);

}  // namespace tenon::x86
