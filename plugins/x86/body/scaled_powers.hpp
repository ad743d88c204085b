// Powers of softmax that are never below the least normal number.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Of a body from with_fewer_checks(), the same results. A product, a quotient or a power of two that is below 2^-126
// but not 0 takes a Xeon 150 cycles and more, and so does what is made of such: where scores are masked by -100, as in
// windows that are shifted, softmax took ten times as long. Only sums bear such numbers. So powers that their own sum
// divides, of x less the greatest of that row, are 2^80 times as large as they were, and what is made of them for
// others is scaled back by a sum:
//
//   e = Exp (Sub x, (ReduceMax x))          Exp with attribute `exponent`: e^d 2^80, and where d is less than -105 as
//                                           there, which comes to 0 in the end
//   s = ReduceSum e
//   y = Mul e, (Div 1, s)                   Sub (Fma e, (Div 1, s), 2^-126), 2^-126      s is 2^80 times as large, too
//   y = Div e, s                            Sub (Fma (Div e, t), 2^-80, 2^-126), 2^-126
//   anything else of s                      of t = Mul s, 2^-80
//
// What is y below 2^-126 is exact but for its last place, as any number is there; from there to 2^-101 it is rounded
// twice more; above, 2^-126 is nothing beside it. In rows of more than 2^22 elements denormals may come up again.
snippet::Body with_scaled_powers(snippet::Body body);

}  // namespace tenon::x86
