// e^x and what is made of it, on f32 lanes: steps for emitters of several families.
//
//   n = round(x / ln 2), r = x - n ln 2, e^x = 2^n e^r with |r| <= ln 2 / 2.
//
// The rounding is by adding and subtracting 1.5 * 2^23; ln 2 is a sum of two floats, whose products with n are exact in
// the multiply-add. Polynomials: minimax, by Sollya's fpminimax (Brisebarre and Chevillard, "Efficient polynomial
// L-infinity approximations", 2007).
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// x (finite, |x| < 2^21) becomes r, and n is written. Registers differ.
void reduce_exponent(VectorCode& c, const Vec& n, const Vec& x);
// The same, with 2^n in `power` (-126 <= n <= 127).
void reduce_exponent(VectorCode& c, const Vec& n, const Vec& power, const Vec& x);
// out = e^r, relative error below 2^-26. Registers differ.
void exponential_polynomial(VectorCode& c, const Vec& out, const Vec& r);
// out = e^r - 1, relative error below 2^-25. r is destroyed; registers differ.
void exponential_less_one_polynomial(VectorCode& c, const Vec& out, const Vec& r);

// x becomes e^x - 1 for -87 < x < 88. Takes three scratch vectors.
void exponential_less_one(VectorCode& c, const Vec& x);

// 2^n as factors: of two numbers, since 2^n itself may be no float (avx2); avx512 scales by n.
struct PowerOfTwo {
  Vec n;           // avx512
  Vec half, rest;  // avx2
};
// n is rounded already, |n| <= 252. avx2 takes one scratch vector and reuses n's register.
PowerOfTwo power_of_two(VectorCode& c, const Vec& n);
// out = x 2^n, rounded once when x is in [1/2, 2).
void scale(VectorCode& c, const Vec& out, const Vec& x, const PowerOfTwo& power);

// low <= x <= high, NaN stays; for avx512 and avx2 alike by a scratch vector.
void clamp_between(VectorCode& c, const Vec& x, float low, float high);

}  // namespace tenon::x86
