// e^x and functions of it on f32 lanes: steps shared by several families of emitters.
//
//   n = x / ln 2 rounded to a multiple of 1/16 (avx512) or 1/8 (avx2), r = x - n ln 2, e^x = 2^n (1 + (e^r - 1))
//
// The fraction of 2^n comes from a table in a register, its exponent from integer additions (Tang, "Table-driven
// implementation of the exponential function in IEEE floating-point arithmetic", 1989). Adding and subtracting
// 1.5 * 2^23 / 16 rounds to the multiple. ln 2 is a sum of two floats, whose products with n are exact inside the fused
// multiply-add.
//
// Where e^x - 1 must be accurate for small x, n is an integer: |r| <= ln 2 / 2, and the polynomial is longer.
// Polynomials: minimax, by Sollya's fpminimax (Brisebarre and Chevillard, "Efficient polynomial L-infinity
// approximations", 2007).
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// Selects e^x, or e^-x if `negated`, times 2^exponent.
struct Power {
  bool negated = false;
  int exponent = 0;
};

// power (1 + rest) = e^x 2^exponent, `power` rounded once; rest: relative error of e^r below 2^-27. The result must be
// a normal number, |x| < 2^14. `low`, if not null: a small correction to be added to x. Destroys x; takes a scratch
// vector. Registers differ.
void exponential_parts(VectorCode& c, const Vec& power, const Vec& rest, const Vec& x, const Power& of,
                       const Vec* low = nullptr);
// `rest`, which is r with full precision, becomes e^r - 1. Destroys r (|r| < ln 2 / 16 or / 8) and `scratch`.
void exponential_less_one_near_zero(VectorCode& c, const Vec& rest, const Vec& r, const Vec& scratch);
// `power`, the bits of n + rounding_constant(), becomes 2^(n + exponent); destroys `scratch`.
void power_of_two_steps(VectorCode& c, const Vec& power, int exponent, const Vec& scratch);
// avx512: `power`, the bits of n + rounding_constant(), becomes 2^(n + exponent) (1 + rest (t0 + t1 rest ...)).
// Destroys rest; takes a scratch vector.
void raise(VectorCode& c, const Vec& power, const Vec& n, const Vec& rest, std::span<const float> terms, int exponent);
// The constant whose addition rounds to a multiple of 1/16 or 1/8.
float rounding_constant(const VectorCode& c);

// out = e^x for any x: handles infinities, denormal results and NaN. Error 1.1 ulp. Destroys x; takes three scratch
// vectors. out may be x.
void exponential(VectorCode& c, const Vec& out, const Vec& x);

// x (finite, |x| < 2^21) becomes r for an integral n; also returns n, and 2^n in `power` (-126 <= n <= 127).
void reduce_exponent(VectorCode& c, const Vec& n, const Vec& power, const Vec& x);
// out = e^r, relative error below 2^-26. Registers differ.
void exponential_polynomial(VectorCode& c, const Vec& out, const Vec& r);
// out = e^r - 1, relative error below 2^-25. r is destroyed; registers differ.
void exponential_less_one_polynomial(VectorCode& c, const Vec& out, const Vec& r);

// 2^n in the form that scale() takes: avx2: two factors, because 2^n itself may not be a float; avx512: n.
struct PowerOfTwo {
  Vec n;           // avx512
  Vec half, rest;  // avx2
};
// n is integral, |n| <= 252. avx2 takes one scratch vector and reuses n's register.
PowerOfTwo power_of_two(VectorCode& c, const Vec& n);
// out = x 2^n, rounded once when x is in [1/2, 2).
void scale(VectorCode& c, const Vec& out, const Vec& x, const PowerOfTwo& power);

// Clamps x to [low, high] and keeps NaN; takes a scratch vector.
void clamp_between(VectorCode& c, const Vec& x, float low, float high);

}  // namespace tenon::x86
