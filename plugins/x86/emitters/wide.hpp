// Steps of functions of f64 lanes, for emitters of several families.
#pragma once
#include <span>

#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// Of e^r = 1 + (r + r^2 (c[0] + c[1] r ...)), |r| <= ln 2 / 2: relative error below 2^-57.
std::span<const double> wide_exponential_terms();
// out = c[0] + c[1] x + c[2] x^2 ... Registers differ.
void wide_polynomial(VectorCode& c, const Vec& out, const Vec& x, std::span<const double> terms);
// out = y 2^n for whole n, rounded once when y is in [1/2, 2); |n| <= 1100. Destroys y, and on avx2 n and `scratch`.
// Registers differ, but out may be any of them.
void wide_scale(VectorCode& c, const Vec& out, const Vec& y, const Vec& n, const Vec& scratch);
// x = 2^e (1 + f), 1 + f in [3/4, 3/2), for finite x above 0. On avx512 the exponent of 0 is -inf, of inf it is inf,
// and f of what is below 0 is NaN. `scratch` (avx2) and `mask` are destroyed; registers differ.
void wide_split(VectorCode& c, const Vec& x, const Vec& f, const Vec& e, const Vec& scratch, const Mask& mask);

}  // namespace tenon::x86
