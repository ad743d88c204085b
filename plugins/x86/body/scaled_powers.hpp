// Scaled powers of softmax, so that they are never denormal.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, for a body from with_fewer_checks(). A product, a quotient or a power of two whose result is a
// denormal (below 2^-126 but not 0) takes a Xeon 150 cycles and more, and so does an operation on such numbers. Where
// scores are masked by -100, as in shifted windows, softmax took ten times as long. Only sums handle denormals at full
// speed. Powers that are divided by their own sum, of x minus the maximum of its row, are therefore scaled by 2^80, and
// what is computed from them for other readers is scaled back by a sum:
//
//   e = Exp (Sub x, (ReduceMax x))          Exp with attribute `exponent`: e^d 2^80, and where d is less than -105 as
//                                           there, which comes to 0 in the end
//   s = ReduceSum e
//   y = Mul e, (Div 1, s)                   Sub (Fma e, (Div 1, s), 2^-126), 2^-126      s is 2^80 times as large, too
//   y = Div e, s                            Sub (Fma (Div e, t), 2^-80, 2^-126), 2^-126
//   anything else of s                      of t = Mul s, 2^-80
//
// Accuracy: y below 2^-126 is exact but for its last place, like every number there. From there to 2^-101 it is rounded
// twice more; above, adding 2^-126 changes nothing. In rows of more than 2^22 elements denormals may occur again.
snippet::Body with_scaled_powers(snippet::Body body);

}  // namespace tenon::x86
