// Products of x and a gate between 0 and 1 that is 1 for large x. Far below 0 the gate underflows where the product
// does not, so it is computed times 2^kGateExponent. x is clamped on both sides, and the excess above the upper bound
// is added at the end, so no intermediate product leaves the range of floats. x = -inf gives NaN (-inf * 0), like the
// formulas.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline constexpr int kGateExponent = 75;
inline constexpr float kGateEnd = 140;  // from here on z e^-z is 0; e^z 2^-kGateExponent is still a float
inline constexpr float kGateFull = 20;  // from here on 1 + e^-z is 1

// bounded = x clamped to `zero`, where the product is 0, and to `full`, where the gate is 1. beyond = bounded - x, but
// 0 for x past `zero`, and NaN for the infinity on that side and for NaN. zero < 0 < full, or full < 0 < zero for a
// falling gate.
void bound_gated(VectorCode& c, const Vec& bounded, const Vec& beyond, const Vec& x, float zero, float full);
// out = x times the gate, from `product`: the gate times 2^kGateExponent times bounded x. Destroys `product`.
void add_beyond(VectorCode& c, const Vec& out, const Vec& product, const Vec& beyond);
// out = x / (1 + e^-z), from the parts of e^-z 2^-kGateExponent (exponential_parts()), with -kGateEnd <= z <= kGateFull
// for bounded x. Destroys `bounded`; takes a scratch vector.
void multiply_by_sigmoid(VectorCode& c, const Vec& out, const Vec& bounded, const Vec& beyond, const Vec& power,
                         const Vec& rest);

}  // namespace tenon::x86
