// Steps on 64-bit lanes, shared by several families of emitters.
#pragma once
#include <span>

#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// Coefficients of e^r = 1 + (r + r^2 (c[0] + c[1] r ...)), |r| <= ln 2 / 2: relative error below 2^-57.
std::span<const double> wide_exponential_terms();
// out = c[0] + c[1] x + c[2] x^2 ... Registers differ.
void wide_polynomial(VectorCode& c, const Vec& out, const Vec& x, std::span<const double> terms);
// out = y 2^n for integral n, rounded once when y is in [1/2, 2); |n| <= 1100. Destroys y, and on avx2 n and `scratch`.
// Registers differ, but out may be any of them.
void wide_scale(VectorCode& c, const Vec& out, const Vec& y, const Vec& n, const Vec& scratch);
// x = 2^e (1 + f), 1 + f in [3/4, 3/2), for finite x above 0. On avx512 the exponent of 0 is -inf, that of inf is inf,
// and f of negative x is NaN. Destroys `scratch` (avx2) and `mask`; registers differ.
void wide_split(VectorCode& c, const Vec& x, const Vec& f, const Vec& e, const Vec& scratch, const Mask& mask);


// out = a b modulo 2^64, of integers. avx2: two scratch vectors; out may be either factor.
void multiply_64(VectorCode& c, const Vec& out, const Vec& a, const Vec& b);
// out = x in f64, rounded once; x has signed or unsigned integers. avx2: two scratch vectors.
void wide_int_to_f64(VectorCode& c, const Vec& out, const Vec& x, bool is_unsigned);
// avx2: out = x, an integer in f64 below 2^64 and at least -2^63, as 64 bits. Destroys x, which must not be `out`;
// takes a scratch vector.
void whole_to_64(VectorCode& c, const Vec& out, const Vec& x);

}  // namespace tenon::x86
